"""Bring the results of the paper's experiments into the documents: the report, its figures, and the table in the README.

    duelist reproduce all --out results/paper
    python benchmarks/paper_page.py results/paper

copies the report and the figures to docs/results/paper and replaces the text between the marks in README.md. Nothing in those
places is written by hand, and a test compares the README with the report.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
README, HOME = ROOT / "README.md", ROOT / "docs" / "results" / "paper"
START, END = "<!-- claims: written by benchmarks/paper_page.py -->", "<!-- end of claims -->"
EXACT, RECIPE = "FGTS (exact sampling)", "FGTS (paper's sampler)"
# How the baselines were tuned, by the words of the report, with the words of the README.
TUNED = {
    "paper's grid and ridge 0.001": "the paper's grid, ridge 0.001",
    "paper's grid": "the paper's grid, ridge 1",
    "finer grid": "a finer grid, ridge 1",
}
# The numbers of each claim: those of FGTS and those it is held against.
PAIRS = {
    "FGTS.CDB wins by a large margin": r"(\d+) against (\d+)",
    "FGTS.CDB is comparable with the baselines": r"(\d+) against (\d+)",
    "FGTS.CDB has the smallest sd": r"sd (\d+) against (\d+)",
}
ALONE = {
    "FGTS.CDB is robust in alpha": (r"worst over best ([\d.]+)", "worst mean over best, alpha 0 to 10"),
    "FGTS.CDB does well at alpha = 0": (r"(\d+) at alpha 0 against (\d+)", "alpha 0 against 0.1"),
}


class Row(NamedTuple):
    """A row of the report's table of verdicts."""

    claim: str
    conditions: str
    outcome: str
    numbers: str


def extract_verdicts(report: str) -> list[Row]:
    """The rows of the table of verdicts."""
    table = report.split("### The verdicts in numbers\n\n", 1)[1].split("\n\n", 1)[0]
    return [Row(*(cell.strip() for cell in line.strip("| ").split(" | "))) for line in table.splitlines()[2:]]


def cell_for(rows: list[Row], claim: str, conditions: str, pattern: str) -> str:
    """The outcome in words, then the numbers of the three dimensions; where the chains failed their check, that."""
    found = [row for row in rows if row.claim == claim and row.conditions == conditions]
    if not found:
        return "the check of the chains failed"
    groups = re.findall(pattern, found[0].numbers)
    columns = [groups] if isinstance(groups[0], str) else list(zip(*groups, strict=True))
    return f"{found[0].outcome}: {' against '.join(' / '.join(column) for column in columns)}"


def claims_table(report: str) -> str:
    """What held, for both samplers, with the numbers at d = 5 / 10 / 15."""
    rows = extract_verdicts(report)
    lines = ["| claim | baselines tuned on | exact sampling | the paper's recipe |", "|---|---|---|---|"]
    for claim, pattern in PAIRS.items():
        for grid, words in TUNED.items():
            cells = [cell_for(rows, claim, f"{label}; baselines: {grid}", pattern) for label in (EXACT, RECIPE)]
            lines.append(f"| {claim.removeprefix('FGTS.CDB ')} | {words} | {' | '.join(cells)} |")
    for claim, (pattern, words) in ALONE.items():
        cells = [cell_for(rows, claim, label, pattern) for label in (EXACT, RECIPE)]
        lines.append(f"| {claim.removeprefix('FGTS.CDB ')} | {words} | {' | '.join(cells)} |")
    ridge = [row for row in rows if row.claim.startswith("A ridge of 0.001")]
    held = sum(row.outcome == "held" for row in ridge)
    lines.append(f"| a ridge of 0.001 does as well as a warm-up | {len(ridge)} comparisons | held in {held} | |")
    return "\n".join(lines)


def fill_page(page: str, report: str) -> str:
    """The page with the table of claims between its marks."""
    before, rest = page.split(START, 1)
    _, after = rest.split(END, 1)
    return f"{before}{START}\n\n{claims_table(report)}\n\n{END}{after}"


def main() -> None:
    source = Path(sys.argv[1])
    report = (source / "report.md").read_text(encoding="utf-8")
    README.write_text(fill_page(README.read_text(encoding="utf-8"), report), encoding="utf-8")
    HOME.mkdir(parents=True, exist_ok=True)
    for path in [source / "report.md", *sorted(source.glob("*.png"))]:
        shutil.copyfile(path, HOME / path.name)
    print(f"README.md and {HOME.name}/ are up to date with {source / 'report.md'}")


if __name__ == "__main__":
    main()
