"""What MkDocs does beside rendering docs/: reference pages, the table of policies, and links to files outside docs/.

The package is read and never imported, so building the site needs no compiler and no extra of duelist.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "duelist"
ROOMS_MARK = "<!-- the rooms, filled in by the site -->"
POLICIES_MARK = "<!-- the policies, filled in by the site -->"

REGISTRY = PACKAGE / "policies" / "algorithms" / "__init__.pyi"  # the list of policies
_FLOOR = "The floor that others are compared with"

_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*`\[])")
_CITATION = re.compile(r"((?:[A-Z][\w'-]+(?:, | & | \(\d{4}\), ))+)\*([^*]+)\*")


# Rooms and policies, read from the package


def rooms() -> list[str]:
    """Every folder of the package that is a room: it holds Python, and its name is not private."""
    return sorted(path.parent.name for path in PACKAGE.glob("[!_]*/__init__.py"))


def _first_line(room: str) -> str:
    """What the docstring of a room, or of a folder in one, says first."""
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def _has_exports(room: str) -> bool:
    """Whether a room says what it exports. One that does not shows its files instead."""
    if (PACKAGE / room / "__init__.pyi").exists():
        return True
    return "__all__" in (PACKAGE / room / "__init__.py").read_text(encoding="utf-8")


def _reference(room: str) -> str:
    """The reference page of a room, as Markdown."""
    files = "" if _has_exports(room) else "      show_submodules: true\n"
    return f"---\ntitle: {room}\n---\n\n::: duelist.{room}\n    options:\n      heading_level: 1\n{files}"


def policies_by_shelf() -> dict[str, list[str]]:
    """The policies of the registry, in its order, by what the docstring of their shelf says; those beside the shelves last."""
    found: dict[str, list[str]] = {}
    for node in ast.parse(REGISTRY.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            shelf = node.module.partition(".algorithms.")[2].rpartition(".")[0]
            found.setdefault(shelf, []).extend(alias.name for alias in node.names if _has_page(alias.name))
    beside = {_FLOOR: found.pop("", [])}
    return {_shelf_title(shelf): names for shelf, names in found.items()} | beside


def _shelf_title(shelf: str) -> str:
    return _first_line(f"policies/algorithms/{shelf}").removesuffix(".").removesuffix(": one paper, one file")


def _has_page(policy: str) -> bool:
    return (ROOT / "docs" / "policies" / f"{policy.lower()}.md").exists()


# What is filled in


def _introduction(page: Path) -> tuple[str, str]:
    """The heading of a page, and the text under it up to the next heading, on one line."""
    heading, _, rest = page.read_text(encoding="utf-8").partition("\n")
    text = re.split(r"^#|^```|^    ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return heading.removeprefix("# ").strip(), " ".join(text.split())


def _policy_row(page: Path) -> str:
    name, text = _introduction(page)
    cited = _CITATION.search(text)
    idea = _SENTENCE.split(text)[0]
    paper = f"{cited[1].rstrip(', ')}, *{cited[2]}*" if cited else "that of [FGTS](fgts.md)" if "the paper" in idea else "none"
    if cited and cited[0] in idea:  # the paper has a column of its own
        idea = idea[: idea.index(cited[0])].rstrip().removesuffix("Algorithm 1 of").rstrip(" ,") + "."
    return f"| [{name}]({page.name}) | {idea} | {paper} |"


def _policy_table() -> str:
    """One table per shelf, then the pages of what is not registered."""
    folder = ROOT / "docs" / "policies"
    groups = {title: [folder / f"{name.lower()}.md" for name in names] for title, names in policies_by_shelf().items()}
    registered = {page for pages in groups.values() for page in pages}
    groups["Others"] = [page for page in sorted(folder.glob("*.md")) if page.name != "index.md" and page not in registered]
    tables = [
        "\n".join([f"## {title}", "", "| policy | idea | paper |", "|---|---|---|", *map(_policy_row, pages)])
        for title, pages in groups.items()
        if pages
    ]
    return "\n\n".join(tables)


def _room_table() -> str:
    rows = [f"| [`duelist.{room}`]({room}.md) | {_first_line(room)} |" for room in rooms()]
    return "\n".join(["| room | what is in it |", "|---|---|", *rows])


# Links that leave docs/


def _outside_links(markdown: str, source: str, repository: str) -> str:
    """Point links to files outside docs/, which the site does not hold, at the repository."""

    def pointed(found: re.Match[str]) -> str:
        opening, target, anchor, closing = found[1], found[2], found[3] or "", found[4]
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), target))
        if "://" in target or target.startswith(("/", "mailto:")) or path.startswith("docs/") or not (ROOT / path).exists():
            return found[0]
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{opening}{repository}/{kind}/main/{path}{anchor}{closing}"

    return _LINK.sub(pointed, markdown)


# What MkDocs calls


def _pages_of(folder: str, docs: Path) -> Iterator[str]:
    """Every page of a folder of docs/, its index first; for reference/, those that are made here too."""
    pages = {path.relative_to(docs).as_posix() for path in (docs / folder).rglob("*.md")}
    if folder == "reference/":
        pages |= {f"reference/{room}.md" for room in rooms()}
    return iter(sorted(pages, key=lambda page: (not page.endswith("index.md"), page)))


def _filled_nav(entry: Any, docs: Path) -> Any:
    if isinstance(entry, str) and entry.endswith("/"):
        return list(_pages_of(entry, docs))
    if isinstance(entry, dict):
        return {title: _filled_nav(value, docs) for title, value in entry.items()}
    if isinstance(entry, list):
        return [_filled_nav(value, docs) for value in entry]
    return entry


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in the place of a navigation entry that ends in a slash."""
    config.nav = _filled_nav(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add one reference page per room."""
    for room in rooms():
        files.append(File.generated(config, f"reference/{room}.md", content=_reference(room)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Fill in the tables, and repair links that leave docs/."""
    if POLICIES_MARK in markdown:
        markdown = markdown.replace(POLICIES_MARK, _policy_table())
    if ROOMS_MARK in markdown:
        markdown = markdown.replace(ROOMS_MARK, _room_table())
    return _outside_links(markdown, page.file.src_uri, (config.repo_url or "").rstrip("/"))
