// What voters see of an item: text, Markdown, or an image by its address.

import { el } from "./dom.js";
import { markdown } from "./markdown.js";
import { word } from "./words.js";

export function show(place, candidate, letter) {
  place.replaceChildren();
  place.className = "content";
  if (candidate.format === "markdown") {
    place.append(...markdown(candidate.content));
  } else if (candidate.format === "image" && /^https?:\/\//.test(candidate.content)) {
    const image = el("img", { src: candidate.content, alt: letter ? `${word("candidate")} ${letter}, ${word("an_image")}` : word("an_image"), referrerpolicy: "no-referrer" });
    image.addEventListener("error", () => {
      place.replaceChildren(el("p", { class: "quiet" }, word("no_image", { address: candidate.content })));
    });
    place.append(image);
  } else {
    place.classList.add("plain");
    place.textContent = candidate.content;
  }
}

export const inShort = (candidate) => (candidate.format === "image" ? word("an_image") : candidate.content.replace(/\s+/g, " ").slice(0, 140));

// What the candidates answer, above them: nothing, a content like theirs, or a conversation, whose turns are Markdown.
export function showPrompt(section, place, prompt) {
  section.hidden = !prompt;
  document.body.classList.toggle("has-prompt", Boolean(prompt));
  if (!prompt) return;
  if (prompt.format === "conversation") {
    place.className = "content";
    place.replaceChildren(...prompt.messages.map(({ role, content }) => el("div", { class: "turn" }, el("p", { class: "role" }, role), ...markdown(content))));
  } else {
    show(place, prompt, "");
  }
  section.scrollTop = 0;
}
