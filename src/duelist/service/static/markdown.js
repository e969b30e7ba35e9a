// Markdown to elements. markdown-it reads it; its tokens become elements one by one, so no text is ever parsed as HTML and
// the page needs no sanitiser. HTML in the text stays text.

import { el } from "./dom.js";
import { formula, mathRules } from "./math.js";
import MarkdownIt from "./vendor/markdown-it.js";

const parser = new MarkdownIt({ html: false, linkify: true }).use(mathRules);
// As on GitHub: www.example.org is a link and example.org is none, so that README.md and setup.py stay names of files.
parser.linkify.set({ fuzzyEmail: false, fuzzyLink: false }).add("www.", {
  validate: (text, at) => (/^[a-z0-9-]+(\.[a-z0-9-]+)+(?:[/?#][^\s<>]*[^\s<>.,;:!?'")*_~])?/i.exec(text.slice(at)) || [""])[0].length,
  normalize: (match) => { match.url = `http://${match.url}`; },
});

// Without the line break at its end, which nobody sees.
const code = (token) => el("pre", { tabindex: "0" }, el("code", {}, token.content.replace(/\n$/, "")));
const TASK = /^\[([ xX])\]\s+/;
const ALIGNED = /text-align:(left|center|right)/;

// Only these lead somewhere harmless; javascript:, data: and addresses on this service stay text.
function safeAddress(text) {
  try {
    const address = new URL(text);
    return ["http:", "https:", "mailto:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function link(token) {
  const address = safeAddress(token.attrGet("href") || "");
  return address ? el("a", { href: address, title: token.attrGet("title"), rel: "noopener noreferrer nofollow", target: "_blank" }) : el("span");
}

function image(token) {
  const address = safeAddress(token.attrGet("src") || "");
  const alt = token.content;
  if (!address || address.startsWith("mailto:")) return el("span", {}, alt);
  return el("img", { src: address, alt, title: token.attrGet("title"), referrerpolicy: "no-referrer" });
}

function cell(token) {
  const found = ALIGNED.exec(token.attrGet("style") || "");
  return el(token.tag, { class: found ? `to-${found[1]}` : null });
}

// What opens: the element that the tokens up to its end go into.
const OPEN = {
  // The page has its own first and second headings.
  heading_open: (token) => el(`h${Math.min(Number(token.tag.slice(1)) + 2, 6)}`),
  ordered_list_open: (token) => el("ol", { start: token.attrGet("start") }),
  s_open: () => el("del"),
  link_open: link,
  th_open: cell,
  td_open: cell,
};

// What stands alone.
const SINGLE = {
  text: (token) => token.content,
  text_special: (token) => token.content,
  softbreak: () => "\n",
  hardbreak: () => el("br"),
  code_inline: (token) => el("code", {}, token.content),
  code_block: code,
  fence: (token) => (token.info.trim() === "math" ? formula(token.content, true) : code(token)),
  hr: () => el("hr"),
  image,
  math_inline: (token) => formula(token.content, false),
  math_display: (token) => formula(token.content, true),
  math_block: (token) => formula(token.content, true),
};

// "[ ] milk" at the start of a list item is a box that nobody can tick.
function markTask(place, children) {
  const found = place.closest("li")?.textContent === "" && children[0]?.type === "text" ? TASK.exec(children[0].content) : null;
  if (!found) return children;
  place.closest("li").className = "task";
  place.append(el("input", { type: "checkbox", disabled: true, checked: found[1] !== " ", "aria-label": found[1] === " " ? "to do" : "done" }), " ");
  const [first, ...rest] = children;
  return [{ ...first, content: first.content.replace(TASK, "") }, ...rest];
}

function build(tokens, top) {
  const open = [top];
  for (const token of tokens) {
    const place = open.at(-1);
    if (token.type === "inline") build(markTask(place, token.children), place);
    else if (token.nesting < 0) open.pop();
    else if (token.nesting === 0) place.append((SINGLE[token.type] || SINGLE.text)(token));
    else {
      // The paragraphs of a tight list are not shown as such.
      const element = token.hidden ? place : (OPEN[token.type] || ((one) => el(one.tag)))(token);
      if (element !== place) place.append(element);
      open.push(element);
    }
  }
  return top;
}

export const markdown = (text) => [...build(parser.parse(text.replaceAll("\u0000", ""), {}), el("div")).childNodes];
