"""From the results of the paper's experiments to their report: verdicts, tables, figures, settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duelist.experiments.statistics import BandKind
from duelist.experiments.sweep.code_digest import versions
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import PAPER_ALPHA, Series, extract_series, select
from duelist.experiments.sweep.spec import Spec
from duelist.plotting.paper import PaperFigure, alpha_figures, comparison_figures, sweep_figures
from duelist.reports.claims import (
    CLEAR_SHARE,
    COMPARABLE_RATIO,
    LARGE_MARGIN,
    NO_COST_RATIO,
    ROBUST_RATIO,
    SUBSTANTIAL_RATIO,
    Verdict,
    figure1_verdicts,
    figure2_verdicts,
    warm_up_verdicts,
)
from duelist.reports.document import Report, Section
from duelist.reports.tables import ReportTable, final_table, tuning_table, verdict_table
from duelist.theory.floors import regret_floor

PAPER_ROUNDS, PAPER_TRIALS = 2500, 30
_REFERENCE = f"FGTS with exact sampling at alpha = {PAPER_ALPHA:g}"


@dataclass(frozen=True)
class Reproduction:
    """The report, its figures and its verdicts."""

    report: Report
    figures: list[PaperFigure]
    verdicts: list[Verdict]
    caveat: str = ""


_CITATION = (
    "The paper: Xuheng Li, Heyang Zhao and Quanquan Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, 2024, "
    "arXiv:2404.06013, https://arxiv.org/abs/2404.06013."
)
_BIBTEX = """@article{li2024feelgood,
  title   = {Feel-Good Thompson Sampling for Contextual Dueling Bandits},
  author  = {Li, Xuheng and Zhao, Heyang and Gu, Quanquan},
  journal = {arXiv preprint arXiv:2404.06013},
  year    = {2024}
}"""


def reproduction_report(results: Mapping[str, Results], *, command: str, seconds: float, band: BandKind = "sd") -> Reproduction:
    """Write the report of "figure1" with "appendix", of "figure2", or of all three.

    Args:
        results: complete results by spec name.
        command: the command line.
        seconds: wall time of all runs.
        band: what is shaded around the means of figures.
    """
    sections: list[Section] = []
    verdicts: list[Verdict] = []
    figure1: list[Series] = []
    if "figure1" in results:
        figure1 = extract_series(results["figure1"].spec, results["figure1"].table)
        verdicts += figure1_verdicts(figure1)
        sections.append(_comparison_section("Figure 1", results["figure1"], figure1, band))
    if "appendix" in results:
        appendix = extract_series(results["appendix"].spec, results["appendix"].table)
        own = [one for one in figure1 if one.policy == "FGTS"]
        verdicts += warm_up_verdicts(figure1 + appendix)
        sections.append(_comparison_section("Appendix: further baselines", results["appendix"], own + appendix, band))
    if "figure2" in results:
        figure2 = extract_series(results["figure2"].spec, results["figure2"].table)
        verdicts += figure2_verdicts(figure2)
        sections.append(_alpha_section("Figure 2", results["figure2"], figure2, band))
    caveat = _caveat(list(results.values()))
    words = [_CITATION, *_summary(verdicts), *([caveat] if caveat else [])]
    head = Section("What did and did not reproduce", words, [verdict_table(verdicts)])
    tail = [*settings_sections(results, command, seconds), Section("Citation", [_CITATION], listing=_BIBTEX)]
    report = Report("FGTS.CDB: the paper's experiments, run again", [head, *sections, *tail])
    return Reproduction(report, [figure for section in sections for figure in section.figures], verdicts, caveat)


def sweep_report(results: Results, *, command: str, seconds: float, band: BandKind = "sd") -> Reproduction:
    """The report of any other sweep: tables, figures and settings, without verdicts on the paper."""
    spec = results.spec
    series = extract_series(spec, results.table)
    first = series[0]

    def reference(one: Series) -> Series | None:
        return next(iter(select(series, environment=one.environment)), None)

    against = f"{first.label} ({first.setting_text})" if first.setting else first.label
    tables = [final_table("Final regret", _sort_by_environment(series), reference, against)]
    if any(policy.tune for policy in spec.policies):
        tables.append(tuning_table(extract_series(spec, results.table, stage="tune"), spec.tuning.criterion))
    figures = sweep_figures(spec.name, spec.title, series, band=band)
    section = Section("Results", _instances(results), tables, figures)
    tail = settings_sections({spec.name: results}, command, seconds)
    return Reproduction(Report(spec.title or spec.name, [section, *tail]), figures, [])


def _comparison_section(heading: str, results: Results, series: list[Series], band: BandKind) -> Section:
    spec = results.spec
    tuning = extract_series(spec, results.table, stage="tune")
    paper_values = sorted(
        {value for policy in spec.policies for grids in policy.tune.values() for value in grids.get("paper", ())}
    )
    figures = comparison_figures(spec.name, spec.title, series, tuning, paper_values, band=band)
    exact = next((one.label for one in series if one.policy == "FGTS"), "")

    def reference(one: Series) -> Series | None:
        return next(iter(select(series, label=exact, environment=one.environment)), None)

    tables = [final_table(f"{heading}: final regret", _sort_by_environment(series), reference, _REFERENCE)]
    if tuning:
        tables.append(tuning_table(tuning, spec.tuning.criterion))
    return Section(heading, [*_instances(results), *floor_words(spec)], tables, figures)


def floor_words(spec: Spec) -> list[str]:
    """What no policy can beat, where arms are at all corners: there the bound is close, and takes a few seconds."""
    if spec.environment.kind != "LinearDuels":
        return []
    points = [point for point in spec.environment.points() if set(point) == {"dim", "arms"}]
    floors = [regret_floor(**point, rounds=spec.rounds, instances=24) for point in points if point["arms"] == 2 ** point["dim"]]
    return [
        f"No policy whatever has a mean regret below {floor.value:.1f} (standard error {floor.standard_error:.1f}) with "
        f"{floor.assumptions[0]}, over all directions of theta. A mean over {spec.trials} of them may be lower by chance."
        for floor in floors
    ]


def _alpha_section(heading: str, results: Results, series: list[Series], band: BandKind) -> Section:
    def reference(one: Series) -> Series | None:
        exact = series[0].label
        return next(iter(select(series, label=exact, environment=one.environment, alpha=PAPER_ALPHA)), None)

    tables = [final_table(f"{heading}: final regret", _sort_by_environment(series), reference, _REFERENCE)]
    words = [*_instances(results), "The paper's text names no values of alpha other than 0.1: this grid is ours."]
    return Section(heading, words, tables, alpha_figures(results.spec.name, results.spec.title, series, band=band))


def _sort_by_environment(series: list[Series]) -> list[Series]:
    places = list(dict.fromkeys(str(one.environment) for one in series))
    return sorted(series, key=lambda one: places.index(str(one.environment)))


def _instances(results: Results) -> list[str]:
    spec = results.spec
    text = (
        f"{spec.trials} trials of {spec.rounds} rounds, seed {spec.seed}: every policy plays the same instances with the "
        f"same noise."
    )
    if any(policy.tune for policy in spec.policies):
        first, last = spec.tuning.first_trial, spec.tuning.first_trial + spec.tuning.trials - 1
        text += (
            f" Tuned parameters are chosen by the {spec.tuning.criterion} final regret over {spec.tuning.trials} other "
            f"instances (trials {first} to {last})."
        )
    return [text]


def _caveat(results: Sequence[Results]) -> str:
    """What a reader must know of a run that is smaller than the paper's; empty for one that is not."""
    rounds, trials = min(one.spec.rounds for one in results), min(one.spec.trials for one in results)
    if rounds >= PAPER_ROUNDS and trials >= PAPER_TRIALS:
        return ""
    return (
        f"This run has {rounds} rounds and {trials} trials, the paper {PAPER_ROUNDS} and {PAPER_TRIALS}: its verdicts are "
        f"about this size and mean nothing for the paper."
    )


def _summary(verdicts: Sequence[Verdict]) -> list[str]:
    paragraphs = []
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        by_outcome: dict[str, list[str]] = {}
        for verdict in verdicts:
            if verdict.claim == claim:
                by_outcome.setdefault(verdict.outcome, []).append(verdict.conditions)
        outcomes = [f"{outcome.capitalize()}: {' | '.join(conditions)}." for outcome, conditions in by_outcome.items()]
        paragraphs.append(f"“{claim}.” {' '.join(outcomes)}")
    paragraphs.append(
        f"The paper prints no numbers, so its words are given thresholds. A large margin: the best baseline's mean regret is "
        f"at least {LARGE_MARGIN:g} times that of FGTS.CDB and the paired 95 % interval excludes zero. Comparable: at most "
        f"{COMPARABLE_RATIO:g} times the best baseline's mean, or the paired interval has zero in it. Smallest sd: smaller "
        f"than every baseline's in {CLEAR_SHARE:.0%} of bootstrap resamples; in {1 - CLEAR_SHARE:.0%} or fewer it did not "
        f"hold, and in between it is not decided. Robust in alpha: the worst mean is at most "
        f"{ROBUST_RATIO:g} times the best. Doing well at alpha = 0: at most {NO_COST_RATIO:g} times the mean at alpha = "
        f"{PAPER_ALPHA:g}. As well as a warm-up: of the two means the larger is at most {SUBSTANTIAL_RATIO:g} times the "
        f"smaller, or the paired interval has zero in it: too few trials to tell also count as no impact. On the paper's grids "
        f"CoLSTIM counts as the paper tunes it, by its perturbation; rows with another tuned parameter are in the tables only."
    )
    return paragraphs


def settings_sections(results: Mapping[str, Results], command: str, seconds: float, listing: str = "") -> list[Section]:
    """Sections with settings, versions and times; `listing` replaces the specs where those would be too long."""
    rows = [
        (
            one.spec.id,
            one.spec.hash,
            str(one.spec.seed),
            str(one.computed),
            str(one.reused),
            f"{one.seconds:.1f} s",
            f"{one.block_seconds:.1f} s",
        )
        for one in results.values()
    ]
    times = ReportTable(
        "Experiments",
        ("experiment", "hash", "seed", "blocks computed", "blocks reused", "wall time", "processor time"),
        tuple(rows),
        "A block that an earlier or interrupted run had finished is reused; its processor time is counted, its wall time is "
        "not. Drawing is not in these times.",
    )
    costs = ReportTable(
        "Processor time by policy",
        ("experiment", "policy", "processor time"),
        tuple(
            (one.spec.id, label, f"{cost:.1f} s")
            for one in results.values()
            for label, cost in sorted(one.policy_seconds.items(), key=lambda item: -item[1])
        ),
        "Tuning included. Compiling counts where it happened in the run.",
    )
    versions_ = ReportTable("Versions", ("what", "version"), tuple(versions().items()))
    problems = [f"Computed again: {problem}" for one in results.values() for problem in one.problems]
    specs: dict[str, Any] = {name: one.spec.to_mapping() for name, one in results.items()}
    return [
        Section(
            "Settings, versions and time",
            [f"Time taken: {seconds:.0f} s for computing, the figures not counted.", *problems],
            [times, *([costs] if costs.rows and not listing else []), versions_],
        ),
        Section("Command", listing=command),
        Section("Specs", listing=listing or json.dumps(specs, indent=1)),
    ]
