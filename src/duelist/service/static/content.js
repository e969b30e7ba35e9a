// What voters see of an item: text, Markdown, or an image by its address.

import { el } from "./dom.js";
import { markdown } from "./markdown.js";

export function show(place, candidate, letter) {
  place.replaceChildren();
  place.className = "content";
  if (candidate.format === "markdown") {
    place.append(...markdown(candidate.content));
  } else if (candidate.format === "image" && /^https?:\/\//.test(candidate.content)) {
    const image = el("img", { src: candidate.content, alt: `Candidate ${letter}, an image`, referrerpolicy: "no-referrer" });
    image.addEventListener("error", () => {
      place.replaceChildren(el("p", { class: "quiet" }, `The image at ${candidate.content} cannot be loaded.`));
    });
    place.append(image);
  } else {
    place.classList.add("plain");
    place.textContent = candidate.content;
  }
}

export const inShort = (candidate) => (candidate.format === "image" ? "an image" : candidate.content.replace(/\s+/g, " ").slice(0, 140));
