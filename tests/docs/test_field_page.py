"""The page about the field is filled from a report, and the README's table of policies is short and true."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from duelist.experiments.field.problems import problem_kinds
from duelist.policies.registry import POLICIES, policy_shelf

ROOT = Path(__file__).parents[2]
REPORT = """# The field

## Which rule for which problem

24 rules.

Matrix: DoubleTS 1.10.

### The best rule of every problem

| problem | best rule |
|---|---|
| cycle | SCB |

How to read it.

![A caption](field-overview.png)

## What failed
"""


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "field_page.py"))


def test_the_page_takes_over_summary_table_and_figure_and_keeps_the_rest(tool: dict[str, Any]) -> None:
    page = f"Before.\n\n{tool['START']}\n\nOld words.\n\n{tool['END']}\n\nAfter.\n"
    filled = tool["fill_page"](page, REPORT)
    assert filled.startswith("Before.\n\n")
    assert filled.endswith("\n\nAfter.\n")
    assert "Old words" not in filled
    for words in ("Matrix: DoubleTS 1.10.", "| cycle | SCB |", "How to read it.", "results/field/field-overview.png"):
        assert words in filled
    assert "What failed" not in filled
    assert tool["fill_page"](filled, REPORT) == filled


def test_the_page_is_that_of_the_report_and_the_report_has_every_kind(tool: dict[str, Any]) -> None:
    report = (ROOT / "docs" / "results" / "field" / "report.md").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "which-policy.md").read_text(encoding="utf-8")
    assert tool["fill_page"](page, report) == page
    for kind, meaning in problem_kinds().items():
        assert f"## {kind.capitalize()}: {meaning}" in report


def test_the_table_of_policies_in_the_readme_fits_a_screen_and_has_a_row_per_shelf() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## Policies\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) <= 10
    shelves = []
    for row in rows:
        named = re.findall(r"\[(\w+)\]\(docs/policies/(\w+)\.md\)", row)
        assert named
        assert all(page == name.lower() and name in POLICIES for name, page in named)
        (shelf,) = {policy_shelf(POLICIES[name]) for name, _ in named}
        shelves.append(shelf)
    assert len(set(shelves)) == len(shelves)
