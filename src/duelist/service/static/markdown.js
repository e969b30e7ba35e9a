// A small part of Markdown, straight to elements. What is not understood is shown as it was written; HTML always is.

import { el } from "./dom.js";

const INLINE = /(`+)([\s\S]+?)\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s])?)\*\*|\*([^\s*](?:[^*]*[^\s*])?)\*|\[([^\]\n]+)\]\(([^()\s]+)\)|(https?:\/\/[^\s<>()[\]]+[^\s<>()[\].,;:!?'"])/;
const LIST_ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DEPTH = 6;

// Only these lead somewhere harmless; javascript: and data: stay text.
function safeAddress(text) {
  try {
    const address = new URL(text);
    return ["http:", "https:", "mailto:"].includes(address.protocol) ? address.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  return el("a", { href: address, rel: "noopener noreferrer nofollow", target: "_blank" }, ...children);
}

function inline(text, depth = 0) {
  const parts = [];
  let rest = text;
  while (rest) {
    const found = depth < DEPTH ? INLINE.exec(rest) : null;
    if (!found) {
      parts.push(rest);
      break;
    }
    const [whole, , code, strong, soft, label, target, bare] = found;
    if (found.index) parts.push(rest.slice(0, found.index));
    const address = safeAddress(target || bare || "");
    if (code !== undefined) parts.push(el("code", {}, code.trim()));
    else if (strong !== undefined) parts.push(el("strong", {}, ...inline(strong, depth + 1)));
    else if (soft !== undefined) parts.push(el("em", {}, ...inline(soft, depth + 1)));
    else if (label !== undefined && address) parts.push(link(address, inline(label, depth + 1)));
    else if (bare !== undefined && address) parts.push(link(address, [bare]));
    else parts.push(whole);
    rest = rest.slice(found.index + whole.length);
  }
  return parts;
}

function paragraph(lines) {
  const children = [];
  lines.forEach((line, i) => {
    if (i) children.push(line.startsWith("\u0000") ? el("br") : " ");
    children.push(...inline(line.replace("\u0000", "").trim()));
  });
  return el("p", {}, ...children);
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

function table(lines) {
  const row = (line, name) => el("tr", {}, ...cells(line).map((cell) => el(name, {}, ...inline(cell))));
  return el("table", {}, el("thead", {}, row(lines[0], "th")), el("tbody", {}, ...lines.slice(2).map((line) => row(line, "td"))));
}

function list(lines, depth) {
  const ordered = /\d/.test(LIST_ITEM.exec(lines[0])[2]);
  const margin = LIST_ITEM.exec(lines[0])[1].length;
  const items = [];
  for (const line of lines) {
    const found = LIST_ITEM.exec(line);
    if (found && found[1].length <= margin + 1) items.push([found[3]]);
    else items.at(-1).push(line);
  }
  return el(
    ordered ? "ol" : "ul",
    {},
    ...items.map(([first, ...more]) => el("li", {}, ...inline(first), ...(more.length ? blocks(more, depth + 1) : []))),
  );
}

function takeWhile(lines, from, test) {
  let to = from;
  while (to < lines.length && test(lines[to])) to += 1;
  return to;
}

const startsBlock = (line) => /^\s*(#{1,6}\s|```|>|([-*_])\s*(\2\s*){2,}$)/.test(line) || LIST_ITEM.test(line);

function blocks(lines, depth = 0) {
  const out = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    const heading = /^\s*(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (!line.trim()) {
      i += 1;
    } else if (/^\s*```/.test(line)) {
      const end = takeWhile(lines, i + 1, (l) => !/^\s*```\s*$/.test(l));
      out.push(el("pre", { tabindex: "0" }, el("code", {}, lines.slice(i + 1, end).join("\n"))));
      i = end + 1;
    } else if (heading) {
      out.push(el(`h${Math.min(heading[1].length + 2, 5)}`, {}, ...inline(heading[2])));
      i += 1;
    } else if (/^\s*([-*_])\s*(\1\s*){2,}$/.test(line)) {
      out.push(el("hr"));
      i += 1;
    } else if (/^\s*>/.test(line) && depth < DEPTH) {
      const end = takeWhile(lines, i, (l) => /^\s*>/.test(l));
      out.push(el("blockquote", {}, ...blocks(lines.slice(i, end).map((l) => l.replace(/^\s*>\s?/, "")), depth + 1)));
      i = end;
    } else if (LIST_ITEM.test(line) && depth < DEPTH) {
      const end = takeWhile(lines, i, (l) => LIST_ITEM.test(l) || /^\s{2,}\S/.test(l));
      out.push(list(lines.slice(i, end), depth));
      i = end;
    } else if (line.includes("|") && /^\s*\|?[\s:|-]*-[\s:|-]*$/.test(lines[i + 1] || "") && (lines[i + 1] || "").includes("|")) {
      const end = takeWhile(lines, i, (l) => l.includes("|"));
      out.push(table(lines.slice(i, end)));
      i = end;
    } else {
      const end = Math.max(i + 1, takeWhile(lines, i + 1, (l) => l.trim() && !startsBlock(l)));
      const kept = lines.slice(i, end).map((l, n) => (n && /( {2,}|\\)$/.test(lines[i + n - 1]) ? `\u0000${l}` : l).replace(/\\$/, ""));
      out.push(paragraph(kept));
      i = end;
    }
  }
  return out;
}

export const markdown = (text) => blocks(text.replace(/\r\n?/g, "\n").replaceAll("\u0000", "").split("\n"));
