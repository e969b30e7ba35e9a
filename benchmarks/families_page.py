"""Bring the results of the problem families into the documents: the report, its figure, and the tables of one page.

    duelist reproduce families --out results/families
    python benchmarks/families_page.py results/families

copies the report and the figure to docs/results/families and replaces the text between the marks in docs/which-policy.md.
Nothing in those places is written by hand.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE, HOME = DOCS / "which-policy.md", DOCS / "results" / "families"
START, END = "<!-- families: written by benchmarks/families_page.py -->", "<!-- end of families -->"
TABLES = ("Against the best tuned baseline", "One setting for all families")


def extract_summary(report: str) -> list[str]:
    """The paragraphs of the report's summary, up to its first table."""
    text = report.split("## Summary\n", 1)[1].split("\n### ", 1)[0]
    return [paragraph for paragraph in text.strip().split("\n\n") if paragraph]


def extract_table(report: str, title: str) -> str:
    """One table of the report with its note, without its heading."""
    text = report.split(f"### {title}\n\n", 1)[1]
    return "\n\n".join(text.split("\n\n")[:2])


def fill_page(page: str, report: str) -> str:
    """The page with the summary, the tables and the figure of a report between its marks."""
    before, rest = page.split(START, 1)
    _, after = rest.split(END, 1)
    parts = [
        *extract_summary(report),
        *(extract_table(report, title) for title in TABLES),
        "![Regret of every policy over that of the best tuned baseline, family by family](results/families/families.png)",
        "Every family, setting and version: [the report](results/families/report.md).",
    ]
    return before + "\n\n".join([START, *parts, END]) + after


def main() -> None:
    source = Path(sys.argv[1])
    report = (source / "report.md").read_text(encoding="utf-8")
    page = fill_page(PAGE.read_text(encoding="utf-8"), report)
    HOME.mkdir(parents=True, exist_ok=True)
    for name in ("report.md", "families.png"):
        shutil.copyfile(source / name, HOME / name)
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.name} and {HOME.name}/ are up to date with {source / 'report.md'}")


if __name__ == "__main__":
    main()
