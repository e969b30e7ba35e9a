// Building the page from values. Text always goes in as text: nothing here, or anywhere else, parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) element.addEventListener(event, handler);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
export const byId = (id) => document.getElementById(id);

// The same message twice must be heard twice, so the region is emptied first.
export function announce(text) {
  const region = byId("live");
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 30);
}

export function complain(place, error) {
  place.hidden = false;
  place.textContent = error.message || String(error);
}

// With a space that does not break.
export const percent = (share) => `${(100 * share).toFixed(0)}\u00a0%`;

// "certain" must not appear as 100 % when it is 99.7 %.
export function certainty(share) {
  if (share === null) return "–";
  if (share > 0.995) return "over 99\u00a0%";
  if (share < 0.005) return "under 1\u00a0%";
  return percent(share);
}
