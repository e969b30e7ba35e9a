// Formulas: where they stand in Markdown ($x$, $$x$$, \(x\), \[x\]), and KaTeX, which is loaded with the first of them.

import { el } from "./dom.js";

// Inline: what opens, what closes, and whether the formula stands on its own line.
const MARKS = [
  ["$$", "$$", "math_display"],
  ["$", "$", "math_inline"],
  ["\\(", "\\)", "math_inline"],
  ["\\[", "\\]", "math_display"],
];
const LIMITS = { throwOnError: false, trust: false, strict: "ignore", maxSize: 20, maxExpand: 300 };

// Where a formula that opens at `from` closes, or -1. "$5 and $10" is money: a dollar closes after no space and before no digit.
function closing(source, from, close) {
  for (let at = source.indexOf(close, from); at > 0; at = source.indexOf(close, at + 1)) {
    if (source[at - 1] === "\\" && close[0] === "$") continue;
    if (close !== "$") return at;
    if (!/\s/.test(source[at - 1]) && !/\d/.test(source[at + 1] || "")) return at;
  }
  return -1;
}

function inlineRule(state, silent) {
  const found = MARKS.find(([open]) => state.src.startsWith(open, state.pos));
  if (!found) return false;
  const [open, close, kind] = found;
  const from = state.pos + open.length;
  if (open === "$" && /[\s$]/.test(state.src[from] || " ")) return false;
  const to = closing(state.src, from, close);
  if (to < 0 || to >= state.posMax || !state.src.slice(from, to).trim()) return false;
  if (!silent) state.push(kind, "", 0).content = state.src.slice(from, to).trim();
  state.pos = to + close.length;
  return true;
}

function blockRule(state, first, last, silent) {
  const lineAt = (line) => state.src.slice(state.bMarks[line] + state.tShift[line], state.eMarks[line]).trimEnd();
  const start = lineAt(first);
  const found = MARKS.find(([open, , kind]) => kind === "math_display" && start.startsWith(open));
  if (!found || state.sCount[first] - state.blkIndent >= 4) return false;
  const [open, close] = found;
  const lines = [];
  for (let line = first; line < last; line += 1) {
    const text = line === first ? start.slice(open.length) : lineAt(line);
    // A block ends with what it is in, such as a list item.
    if (line > first && text && state.sCount[line] < state.blkIndent) return false;
    if (text.endsWith(close)) {
      if (silent) return true;
      lines.push(text.slice(0, -close.length));
      const token = state.push("math_block", "", 0);
      token.content = lines.join("\n").trim();
      token.map = [first, line + 1];
      state.line = line + 1;
      return true;
    }
    if (text.includes(close)) return false;
    lines.push(text);
  }
  return false;
}

export function mathRules(parser) {
  parser.inline.ruler.before("escape", "math", inlineRule);
  parser.block.ruler.before("fence", "math", blockRule, { alt: ["paragraph", "reference", "blockquote", "list"] });
}

let library = null;

function loadKatex() {
  if (library === null) {
    document.head.append(el("link", { rel: "stylesheet", href: "/static/vendor/katex.css" }));
    library = import("./vendor/katex.js").then(() => globalThis.katex);
  }
  return library;
}

// The text of a formula until KaTeX has come, and if it never does.
export function formula(text, display) {
  const place = el(display ? "div" : "span", { class: display ? "formula display" : "formula" }, text);
  loadKatex().then((katex) => katex.render(text, place, { ...LIMITS, displayMode: display }), () => {});
  return place;
}
