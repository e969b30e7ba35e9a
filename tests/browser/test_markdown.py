"""Markdown on the page against GitHub's own parser: the same elements, the same text, for forty answers of ordinary shape."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import cmarkgfm  # type: ignore[import-untyped]
import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Watched
from tests.browser.llm_answers import ANSWERS
from tests.support.services import Running

pytestmark = pytest.mark.slow

# Formulas are no part of GitHub's Markdown parser: it gets a word for each, and the page's formulas are read as that word.
_FORMULA = re.compile(
    r"\$\$(?:.+?)\$\$|\\\[(?:.+?)\\\]|\\\((?:.+?)\\\)|(?<![`\w])\$(?=[^\s\d])[^$`]+?(?<=\S)\$(?!\d)", re.DOTALL
)
_VOID = {"br", "hr", "img", "input"}
_ATTRIBUTES = {"a": ("href", "title"), "img": ("src", "alt", "title"), "ol": ("start",), "input": ("type", "checked")}
_RENDER = """async (text) => {
  const { markdown } = await import("/static/markdown.js");
  const place = document.createElement("div");
  place.append(...markdown(text));
  for (const one of place.querySelectorAll(".formula")) {
    const plain = document.createElement(one.tagName === "DIV" ? "p" : "span");
    plain.textContent = "FORMULA";
    one.replaceWith(...(one.tagName === "DIV" ? [plain] : plain.childNodes));
  }
  return place.innerHTML;
}"""


class _Tree(HTMLParser):
    """What HTML says: nested [tag, attributes that matter, children], with text as it is read."""

    def __init__(self, *, page: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.page = page
        self.root: list[Any] = ["root", (), []]
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        kept = [(name, given[name] or "") for name in _ATTRIBUTES.get(tag, ()) if given.get(name) is not None]
        if tag in {"th", "td"}:
            kept = [("align", given.get("align") or (given.get("class") or "to-").removeprefix("to-"))]
        if not self.page and re.fullmatch("h[1-6]", tag):
            tag = f"h{min(int(tag[1]) + 2, 6)}"  # the page has two levels of its own
        element: list[Any] = [tag, tuple((name, value.rstrip("/") if name == "href" else value) for name, value in kept), []]
        self.open[-1][2].append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1][2].append(data)


def _tidy(element: list[Any], *, verbatim: bool = False) -> list[Any]:
    """The same tree with runs of text joined, and spaces between blocks, which nobody sees, left out."""
    tag, attributes, children = element
    verbatim = verbatim or tag == "pre"
    kept: list[Any] = []
    for child in children:
        if isinstance(child, list):
            kept.append(_tidy(child, verbatim=verbatim))
        elif kept and isinstance(kept[-1], str):
            kept[-1] += child
        else:
            kept.append(child)
    if tag == "code" and verbatim and kept:
        kept[-1] = kept[-1].rstrip("\n")  # of a fence that never closes; nobody sees it
    if not verbatim:
        kept = [re.sub(r"\s+", " ", one).strip() if isinstance(one, str) else one for one in kept]
    return [tag, attributes, [one for one in kept if one != ""]]


def _tree(html: str, *, page: bool) -> list[Any]:
    parser = _Tree(page=page)
    parser.feed(html)
    return _tidy(parser.root)


def _reference(text: str) -> list[Any]:
    return _tree(cmarkgfm.github_flavored_markdown_to_html(_FORMULA.sub("FORMULA", text)), page=False)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_looks_as_on_github(page: Page, service: Running, name: str) -> None:  # noqa: ARG001 - the page's service
    page.goto("/")
    text = ANSWERS[name]
    assert _tree(page.evaluate(_RENDER, text), page=True) == _reference(text)


def test_the_comparison_sees_a_difference() -> None:
    assert len(ANSWERS) == 40
    assert _reference("1. a\n\n2. b") != _reference("1. a\n\n1) b")
    assert _reference("- [x] a") != _reference("- [ ] a")
    assert _reference("[a](https://example.org)") != _reference("[a](https://example.com)")


def test_formulas_are_set_by_katex_under_the_strict_policy(page: Page, service: Running, watched: Watched) -> None:
    text = (
        ANSWERS["displayed mathematics"]
        + "\n\n"
        + ANSWERS["inline mathematics"]
        + "\n\n$\\notacommand$ and $\\href{javascript:alert(1)}{x}$"
    )
    arena = service.create(items=[{"name": name, "content": text, "format": "markdown"} for name in "xy"])
    page.goto(f"/arena/{arena}")
    content = page.locator("#left-content")
    content.locator(".katex").nth(4).wait_for()
    assert content.locator(".katex-display").count() == 2
    assert content.locator(".katex-error").count() == 0
    assert content.locator("math mfrac").count() == 1
    assert content.locator("a").count() == 0, "a formula links nowhere"
    assert "It costs $5 or $10." in content.inner_text()
    assert page.evaluate("document.fonts.ready.then(() => document.fonts.check('16px KaTeX_Main'))")
    assert watched.faults == []
