"""Bring the results of the field into the documents: the report, its figures, and the summary of one page.

    duelist reproduce field --out results/field
    python benchmarks/field_page.py results/field

copies the report and the figures to docs/results/field and replaces the text between the marks in docs/which-policy.md. Nothing
in those places is written by hand.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE, HOME = DOCS / "which-policy.md", DOCS / "results" / "field"
START, END = "<!-- field: written by benchmarks/field_page.py -->", "<!-- end of field -->"
TABLE = "The best rule of every problem"


def extract_summary(report: str) -> list[str]:
    """The paragraphs of the report's first section, up to its first table."""
    text = report.split("## Which rule for which problem\n", 1)[1].split("\n### ", 1)[0]
    return [paragraph for paragraph in text.strip().split("\n\n") if paragraph]


def extract_table(report: str, title: str) -> str:
    """One table of the report with its note, without its heading."""
    text = report.split(f"### {title}\n\n", 1)[1]
    return "\n\n".join(text.split("\n\n")[:2])


def fill_page(page: str, report: str) -> str:
    """The page with the summary, the table and the figure of a report between its marks."""
    before, rest = page.split(START, 1)
    _, after = rest.split(END, 1)
    parts = [
        *extract_summary(report),
        extract_table(report, TABLE),
        "![Mean regret of every rule over that of the best rule of each problem](results/field/field-overview.png)",
        "Every problem, setting and failure: [the report](results/field/report.md).",
    ]
    return before + "\n\n".join([START, *parts, END]) + after


def main() -> None:
    source = Path(sys.argv[1])
    report = (source / "report.md").read_text(encoding="utf-8")
    page = fill_page(PAGE.read_text(encoding="utf-8"), report)
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    for path in [source / "report.md", *sorted(source.glob("field-*.png"))]:
        shutil.copyfile(path, HOME / path.name)
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.name} and {HOME.name}/ are up to date with {source / 'report.md'}")


if __name__ == "__main__":
    main()
