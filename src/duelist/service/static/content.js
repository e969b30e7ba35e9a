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
    const image = el("img", { src: candidate.content, alt: `${word("candidate")} ${letter}, ${word("an_image")}`, referrerpolicy: "no-referrer" });
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
