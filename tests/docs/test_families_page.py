"""The page about which policy to use is filled from a report, and from nothing else."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from duelist.experiments.families.problems import family_names

ROOT = Path(__file__).parents[2]
REPORT = """# The problem families

## Summary

16 families.

Foresight, one setting for all.

### Against the best tuned baseline

| family | ratio |
|---|---|
| tiny | 0.90 |

How to read it.

### One setting for all families

| policy | mean |
|---|---|
| MaxInP | 1.10 |

What a user gets.

![A caption](families.png)

## Family by family
"""


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "families_page.py"))


def test_the_page_takes_over_summary_tables_and_figure_and_keeps_the_rest(tool: dict[str, Any]) -> None:
    page = f"# A page\n\nBefore.\n\n{tool['START']}\n\nOld words.\n\n{tool['END']}\n\nAfter.\n"
    filled = tool["fill_page"](page, REPORT)
    assert filled.startswith("# A page\n\nBefore.\n\n")
    assert filled.endswith("\n\nAfter.\n")
    assert "Old words" not in filled
    for words in ("16 families.", "| tiny | 0.90 |", "How to read it.", "| MaxInP | 1.10 |", "results/families/families.png"):
        assert words in filled
    assert "Family by family" not in filled
    assert tool["fill_page"](filled, REPORT) == filled


def test_the_page_has_the_marks_and_names_every_family(tool: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "which-policy.md").read_text(encoding="utf-8")
    assert text.index(tool["START"]) < text.index(tool["END"])
    assert [name for name in family_names() if f"`{name}`" not in text] == []
