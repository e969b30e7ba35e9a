"""The tables of the problem families, as text cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from duelist.experiments.claims import Finding, Verdict
from duelist.experiments.family_standings import (
    Contest,
    FamilyStandings,
    mean_of,
    ratio,
    tail_of,
)
from duelist.experiments.report_tables import ReportTable
from duelist.experiments.series import Series
from duelist.experiments.statistics import paired_difference, spread, summary

TAIL_MARGIN = 1.2  # a 95 % quantile up to so many times the rival's is no catastrophe


def contest_table(contests: Sequence[Contest], families: Sequence[FamilyStandings]) -> ReportTable:
    """One row a family: the best tuned baseline, and every contender's ratio to it."""
    rows = []
    for family in families:
        if family.rival is None:
            continue
        rival = family.rival
        cells = [family.name, family.title, f"{rival.label} ({_setting(rival.chosen)})", _mean(rival.chosen)]
        for one in contests:
            if family.name not in one.families:
                cells += ["", "", ""]
                continue
            i = one.families.index(family.name)
            cells += [_mean(one.runs[i]), f"{one.means[i]:.2f}", f"{one.tails[i]:.2f}"]
        rows.append(tuple(cells))
    last = ["geometric mean", "", "", ""]
    for one in contests:
        last += ["", f"{one.geometric_mean:.2f}", ""]
    headings = ["family", "", "best tuned baseline", "its mean"]
    for one in contests:
        headings += [one.name, "ratio", "ratio of 95 %"]
    return ReportTable(
        "Against the best tuned baseline",
        tuple(headings),
        (*rows, tuple(last)),
        "Mean final regret with its standard error. The baseline's setting was chosen on the design instances; which baseline "
        "is best, on the final ones. ratio: of means; below 1 the contender did better. ratio of 95 %: of the 95 % quantiles.",
    )


def family_table(family: FamilyStandings) -> ReportTable:
    """Every policy of one family, best first."""
    rows = []
    for one in sorted(family.standings, key=lambda one: one.mean):
        numbers = summary(one.chosen)
        rows.append(
            (
                one.label,
                _setting(one.chosen) + (" (edge of its grid)" if one.at_edge else ""),
                f"{numbers.mean:.0f}",
                f"{_error(one.chosen):.0f}",
                f"{numbers.median:.0f}",
                f"{numbers.q95:.0f}",
                "" if family.rival is None else f"{ratio(numbers.mean, family.rival.mean):.2f}",
                f"{mean_of(one.default):.0f}" if one.default is not None and len(one.designs) > 1 else "",
            )
        )
    return ReportTable(
        f"{family.name}: {family.title}",
        ("policy", "setting chosen", "mean", "s.e.", "median", "95 %", "ratio", "mean at its default"),
        tuple(rows),
        f"{family.final.trials} instances, {family.final.rounds} rounds.",
    )


def grid_table(label: str, families: Sequence[FamilyStandings]) -> ReportTable | None:
    """One policy at every setting of its grid in every family; None without a grid."""
    rows = []
    settings: list[str] = []
    for family in families:
        standing = family.of(label)
        if standing is None or len(standing.designs) < 2:
            continue
        settings = [_setting(one) for one in standing.designs]
        chosen = min(standing.designs, key=mean_of)
        cells = [f"{mean_of(one):.0f} ({tail_of(one):.0f})" + (" *" if one is chosen else "") for one in standing.designs]
        rows.append((family.name, *cells))
    if not rows:
        return None
    return ReportTable(
        f"{label} at every setting",
        ("family", *settings),
        tuple(rows),
        "Mean final regret on the design instances, 95 % quantile in brackets. * chosen.",
    )


def contest_verdicts(contests: Sequence[Contest]) -> list[Verdict]:
    """For every contender: is its mean at most the rival's, and is its tail no catastrophe?"""
    verdicts = []
    for one in contests:
        means, tails = [], []
        for i, family in enumerate(one.families):
            rival = one.rivals[i]
            difference = paired_difference(one.runs[i], rival.chosen).t
            means.append(
                Finding(
                    family,
                    one.means[i] <= 1.0,
                    f"{mean_of(one.runs[i]):.0f} against {rival.mean:.0f} of {rival.label} ({_setting(rival.chosen)}), "
                    f"{one.means[i]:.2f} times; paired difference {difference.estimate:+.0f} "
                    f"({difference.low:+.0f} to {difference.high:+.0f})",
                )
            )
            tails.append(
                Finding(
                    family,
                    one.tails[i] <= TAIL_MARGIN,
                    f"{tail_of(one.runs[i]):.0f} against {tail_of(rival.chosen):.0f}, {one.tails[i]:.2f} times",
                )
            )
        against = "against the best tuned baseline of each family"
        verdicts.append(Verdict(f"{one.name}: mean regret at most the rival's", against, tuple(means)))
        verdicts.append(Verdict(f"{one.name}: 95 % quantile at most {TAIL_MARGIN:g} times the rival's", against, tuple(tails)))
    return verdicts


def _setting(series: Series) -> str:
    return series.setting_text or "default"


def _mean(series: Series) -> str:
    return f"{mean_of(series):.0f} ± {_error(series):.0f}"


def _error(series: Series) -> float:
    return spread(series.final) / math.sqrt(len(series.final))
