"""From results on real votes to their report: do the conclusions of the synthetic families hold on what people chose?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from duelist.experiments.families.problems import Contender
from duelist.experiments.families.standings import FLOOR, FamilyStandings, Standing, compare_with_rivals, mean_regret
from duelist.experiments.statistics import summary
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import Series
from duelist.plotting.families import family_figure
from duelist.plotting.paper import PaperFigure
from duelist.plotting.style import figure_digest
from duelist.reports.claims import Verdict, lower_mean_finding
from duelist.reports.document import Report, Section
from duelist.reports.families import collect_standings, contest_table, family_table
from duelist.reports.paper import Reproduction, settings_sections
from duelist.reports.tables import ReportTable, verdict_table

_ABOUT = (
    "A policy asks about two items; the answer is a vote that somebody gave on these two, drawn from half of the votes of the "
    "set, or, for a pair without votes, drawn from that half's Bradley-Terry fit. Regret is measured by the same fit. Settings "
    "were chosen on the other half (other voters, where voters are known). The truth is the same in every trial; trials differ "
    "by the votes that are drawn and by the policy's own random numbers, so intervals say nothing about other sets of items."
)
_CAPTION = (
    "Regret after the last round over that of the best tuned baseline of each set of votes; left of the line is better. A mark "
    "with an arrow's head at the right edge lies beyond it. Random play is left out."
)


def real_report(
    results: Mapping[tuple[str, str], Results], contenders: Sequence[Contender], *, command: str, seconds: float
) -> Reproduction:
    """Write the report of the experiments on real votes; see `family_report` for the arguments."""
    sets = collect_standings(results, contenders)
    contests = [one for contender in contenders if (one := compare_with_rivals(contender, sets)) is not None]
    verdicts = [verdict for contender in contenders for verdict in default_verdicts(contender, sets)]
    figure = PaperFigure("real", _CAPTION, partial(family_figure, sets), figure_digest(sets))
    sections = [
        Section("Summary", [_ABOUT], [default_table(contenders, sets), contest_table(contests, sets)], [figure]),
        Section("Set by set", tables=[family_table(one) for one in sets]),
        Section("The verdicts in numbers", tables=[verdict_table(verdicts)]),
        *settings_sections({f"{name} {stage}": one for (name, stage), one in results.items()}, command, seconds),
    ]
    return Reproduction(Report("Real votes", sections), [figure], verdicts)


def default_runs(contender: Contender, standings: FamilyStandings) -> Series | None:
    """The runs of a contender at the setting that a user gets who does not tune."""
    own = standings.find(contender.label)
    return None if own is None else own.default or own.chosen


def best_default(standings: FamilyStandings, contenders: Sequence[str]) -> Standing | None:
    """The baseline with the smallest mean at its default; random play and contenders are none."""
    baselines = [
        one for one in standings.standings if one.default is not None and one.policy != FLOOR and one.label not in contenders
    ]
    return min(baselines, key=lambda one: _default_mean(one), default=None)


def _default_mean(standing: Standing) -> float:
    assert standing.default is not None
    return mean_regret(standing.default)


def default_verdicts(contender: Contender, sets: Sequence[FamilyStandings]) -> list[Verdict]:
    """Is a contender, untuned, below random play, and below the best baseline that is not tuned either?"""
    name = contender.name or contender.label
    random, baseline = [], []
    for one in sets:
        runs, floor = default_runs(contender, one), one.find(FLOOR)
        best = best_default(one, _contenders(one))
        if runs is None:
            continue
        if floor is not None:
            random.append(lower_mean_finding(one.name, runs, floor.chosen, f"of {FLOOR}"))
        if best is not None and best.default is not None:
            baseline.append(lower_mean_finding(one.name, runs, best.default, f"of {best.label}"))
    claims = (("below random play", random), ("below the best baseline at its default", baseline))
    return [Verdict(f"{name}: mean regret {claim}", "nothing tuned", tuple(found)) for claim, found in claims if found]


def _contenders(standings: FamilyStandings) -> list[str]:
    """Foresight, and FGTS at whatever setting."""
    return [one.label for one in standings.standings if one.policy in ("FGTS", "Foresight")]


def default_table(contenders: Sequence[Contender], sets: Sequence[FamilyStandings]) -> ReportTable:
    """One row per set: every contender untuned, the best baseline at its default, and random play."""
    rows = []
    for one in sets:
        best, floor = best_default(one, _contenders(one)), one.find(FLOOR)
        cells = [one.name, one.title]
        for contender in contenders:
            runs = default_runs(contender, one)
            cells.append("" if runs is None else _numbers(runs))
        cells.append("" if best is None or best.default is None else f"{best.label}: {_numbers(best.default)}")
        cells.append("" if floor is None else f"{mean_regret(floor.chosen):.0f}")
        rows.append(tuple(cells))
    names = [contender.name or contender.label for contender in contenders]
    return ReportTable(
        "Nothing tuned",
        ("votes", "", *names, "best baseline at its default", FLOOR),
        tuple(rows),
        "Mean final regret, with median and 95 % quantile in brackets.",
    )


def _numbers(series: Series) -> str:
    numbers = summary(series)
    return f"{numbers.mean:.1f} ({numbers.median:.1f}, {numbers.q95:.1f})"
