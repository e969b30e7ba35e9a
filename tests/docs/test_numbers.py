"""Numbers in the README are those of the results: generated from them, or compared with them here."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import duelist
from duelist.cli.run import DEFAULT_LINE_UP
from duelist.experiments import family_names, load_shipped_spec

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "policies" / "fgts.md").read_text(encoding="utf-8")
REPORT = (ROOT / "docs" / "results" / "paper" / "report.md").read_text(encoding="utf-8")
FAMILIES = (ROOT / "docs" / "results" / "families" / "report.md").read_text(encoding="utf-8")


def read_table(report: str, title: str) -> list[list[str]]:
    text = report.split(f"### {title}\n\n", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


@pytest.fixture(scope="module")
def tool() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "paper_page.py"))


def test_the_table_of_claims_is_that_of_the_report(tool: dict[str, Any]) -> None:
    assert tool["fill_page"](README, REPORT) == README
    assert tool["claims_table"](REPORT).count("|") > 60, "the table is there"


def test_every_chain_of_the_report_that_is_called_exact_passed_its_check() -> None:
    assert "FGTS (exact sampling)" in REPORT
    assert "check of the chains failed" not in REPORT


def test_the_sizes_are_those_of_the_spec() -> None:
    spec = load_shipped_spec("figure1")
    words = f"{spec.rounds} rounds, {spec.environment.parameters['arms']} arms, {spec.trials} trials"
    assert f"{words}, every baseline tuned on {spec.tuning.trials} other instances" in README


@pytest.mark.slow
def test_the_demo_ends_where_the_readme_says() -> None:
    said = re.search(r"\(d = 10, 20 trials\) CoLSTIM ends at a mean regret of (\d+), FGTS at (\d+)", README)
    assert said is not None
    assert "--dim 10 --arms 32 --rounds 2500 --trials 20 --seed 0" in (ROOT / "Makefile").read_text(encoding="utf-8")
    environment = duelist.LinearDuels(dim=10, arms=32)
    policies: tuple[Any, ...] = (duelist.CoLSTIM(), duelist.FGTS())
    for policy, mean in zip(policies, said.groups(), strict=True):
        run = duelist.simulate(policy, environment, rounds=2500, trials=20, seed=0)
        assert round(float(run.final_regret.mean())) == int(mean)


def test_random_choice_pays_eleven_times_as_much() -> None:
    assert "Uniform pays eleven times as much" in README
    environment = duelist.LinearDuels(dim=5, arms=16)
    ours, random = (
        duelist.simulate(policy, environment, rounds=500, trials=10, seed=0).final_regret.mean()
        for policy in (duelist.FGTS(), duelist.Uniform())
    )
    assert round(float(random / ours)) == 11


def test_the_feel_good_term_pays_in_as_many_families_as_the_readme_says() -> None:
    rows = {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in read_table(FAMILIES, "FGTS at every setting")}
    better = [name for name, (without, _, with_, _) in rows.items() if with_ < without]
    assert f"lowers mean regret in {len(better)} of our {len(rows)}" in README
    named = re.search(r"on the design instances: ([a-z, -]+)\.", PAGE)
    assert named is not None
    assert re.split(", | and ", named.group(1)) == better
    assert set(rows) == set(family_names())


def test_the_demo_compares_as_many_policies_as_the_readme_says() -> None:
    assert len(DEFAULT_LINE_UP) == 8
    assert "compare eight policies" in README


def test_the_page_of_fgts_has_the_numbers_of_the_report() -> None:
    in_report = {}
    for title in ("Figure 1: final regret", "Figure 2: final regret", "Appendix: further baselines: final regret"):
        for row in read_table(REPORT, title):
            in_report[row[0].removeprefix("d = "), row[1], row[3]] = row[4:9]
    rows = re.findall(r"^\| (5|10|15) \| `([^`]+)` \| (.+) \|$", PAGE, flags=re.MULTILINE)
    names = {
        "FGTS": ("FGTS (exact sampling)", ""),
        "FGTS:alpha=0": ("FGTS (exact sampling)", "alpha 0"),
        "FGTS:sampler=paper": ("FGTS (paper's sampler)", ""),
        "Uniform": ("Uniform", ""),
    }
    compared = [
        [cell.strip() for cell in cells.split("|")] == in_report[dim, *names[name]]
        for dim, name, cells in rows
        if name in names
    ]
    assert compared == [True] * 12
