"""The tables of a report, as text cells: computed here once, written as HTML or Markdown elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from duelist.experiments.statistics import growth_exponent, paired_difference, summary
from duelist.experiments.sweep.series import GRIDS, Series, environment_text, select
from duelist.reports.claims import Verdict


@dataclass(frozen=True)
class ReportTable:
    """A table of text cells.

    Attributes:
        title: what it shows.
        headings: one per column.
        rows: text cells, which may have several lines.
        note: how to read it.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def verdict_table(verdicts: Sequence[Verdict]) -> ReportTable:
    """One row per claim and condition: whether it held, and the numbers in every environment."""
    rows = []
    for verdict in verdicts:
        numbers = "\n".join(f"{finding.environment}: {finding.words}" for finding in verdict.findings)
        rows.append((verdict.claim, verdict.conditions, verdict.outcome, numbers))
    return ReportTable("The verdicts in numbers", ("claim", "under", "outcome", "numbers"), tuple(rows))


def final_table(
    title: str, series: Sequence[Series], reference: Callable[[Series], Series | None], reference_name: str
) -> ReportTable:
    """Final regret of every series, with its paired difference to a reference where there is one."""
    rows = []
    for one in series:
        numbers = summary(one)
        against = reference(one)
        difference = "" if against is None or against is one else _interval(paired_difference(one, against).t)
        exponent = growth_exponent(one)
        rows.append(
            (
                environment_text(one.environment),
                one.title,
                GRIDS.get(one.grid, one.grid),
                one.setting_text,
                *(f"{value:.0f}" for value in numbers),
                difference,
                f"{exponent.estimate:.2f} ({exponent.low:.2f} to {exponent.high:.2f})",
            )
        )
    return ReportTable(
        title,
        ("", "policy", "tuned in", "setting", "mean", "sd", "median", "5 %", "95 %", "weak", "difference", "growth"),
        tuple(rows),
        "Cumulative average regret after the last round, over trials. weak: mean regret of the better of the two arms. "
        f"difference: mean of trial-by-trial differences to {reference_name}, with its 95 % t interval; above zero, that did "
        "better. growth: fitted exponent of mean regret in the number of rounds, with its 95 % "
        "bootstrap interval.",
    )


def tuning_table(series: Sequence[Series], criterion: str) -> ReportTable:
    """The regret of every value of the tuned parameters on the tuning instances."""
    values = sorted({value for one in series for value in one.setting.values()})
    rows = []
    for place in {str(one.environment): one.environment for one in series}.values():
        for label in dict.fromkeys(one.label for one in series):
            own = select(list(series), label=label, environment=place)
            means = {next(iter(one.setting.values())): one for one in own}
            cells = [f"{_criterion(means[value], criterion):.0f}" if value in means else "" for value in values]
            rows.append((environment_text(place), label, ", ".join(own[0].setting) if own else "", *cells))
    return ReportTable(
        f"Tuning: {criterion} final regret by the value of the tuned parameter",
        ("", "policy", "tuned", *(f"{value:g}" for value in values)),
        tuple(rows),
        "On the tuning instances, which are apart from the test instances. The paper's grid is 0.01, 0.1, 1, 10.",
    )


def _criterion(series: Series, criterion: str) -> float:
    numbers = summary(series)
    return numbers.median if criterion == "median" else numbers.mean


def _interval(interval: tuple[float, float, float]) -> str:
    estimate, low, high = interval
    return f"{estimate:+.0f} ({low:+.0f} to {high:+.0f})"
