"""From the results of the problem families to their report: who wins where, by how much, and at which settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from duelist.experiments.families.problems import Contender
from duelist.experiments.families.standings import (
    Contest,
    FamilyStandings,
    RankedSetting,
    compare_with_rivals,
    compute_standings,
    geometric_mean,
    mean_regret,
    policy_standings,
    rank_settings,
    ratio,
    tail_regret,
)
from duelist.experiments.statistics import paired_difference, standard_error, summary
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import Series, extract_series
from duelist.plotting.families import family_figure
from duelist.plotting.paper import PaperFigure
from duelist.plotting.style import figure_digest
from duelist.reports.claims import Finding, Verdict
from duelist.reports.document import Report, Section
from duelist.reports.paper import Reproduction, settings_sections
from duelist.reports.tables import ReportTable, verdict_table

TAIL_MARGIN = 1.2  # a 95 % quantile up to this many times the rival's counts as no loss
_CAPTION = (
    "Regret after the last round over that of the best tuned baseline of each family; left of the line is better. A mark with "
    "an arrow's head at the right edge lies beyond it. Random play is left out."
)


def family_report(
    results: Mapping[tuple[str, str], Results],
    contenders: Sequence[Contender],
    *,
    command: str,
    seconds: float,
    listing: str = "",
) -> Reproduction:
    """Write the report of the families.

    Args:
        results: complete results by (family, stage). A family without the stage "final" is judged on its design instances.
        contenders: policies to compare with the best tuned baseline of each family.
        command: the command line.
        seconds: wall time of all runs.
        listing: the specs as text.
    """
    families = collect_standings(results, contenders)
    contests = [one for contender in contenders if (one := compare_with_rivals(contender, families)) is not None]
    verdicts = contest_verdicts(contests)
    judged = any(stage == "final" for _, stage in results)
    head = Section("Summary", [_instances(families, judged), *_summary(contests)])
    figures = []
    if any(family.rival is not None for family in families):
        drawing = partial(family_figure, families)
        figures.append(PaperFigure("families", _CAPTION, drawing, figure_digest(families)))
        tables = [contest_table(contests, families)] if contests else []
        tables.append(one_setting_table(families))
        head = Section("Summary", head.paragraphs, tables, figures)
    sections = [
        head,
        Section("Family by family", tables=[family_table(family) for family in families]),
        Section("Every setting", tables=[table for label in _labels(families) if (table := grid_table(label, families))]),
        Section("The verdicts in numbers", tables=[verdict_table(verdicts)] if verdicts else []),
        *settings_sections({f"{name} {stage}": one for (name, stage), one in results.items()}, command, seconds, listing),
    ]
    title = "The problem families" + ("" if judged else ", design instances only")
    return Reproduction(Report(title, sections), figures, verdicts)


def settings_report(
    results: Mapping[tuple[str, str], Results], *, command: str, seconds: float, listing: str = ""
) -> Reproduction:
    """Write the report of a line-up that asks which setting of a policy is best for all families; see `family_report`."""
    families = collect_standings(results)
    tables = [ranking_table(label, families, rank_settings(label, families)) for label in _labels(families)]
    sections = [
        Section("One setting for all families", [_instances(families, judged=False)], tables),
        *settings_sections({name: one for (name, _), one in results.items()}, command, seconds, listing),
    ]
    return Reproduction(Report("One setting for all families", sections), [], [])


def collect_standings(
    results: Mapping[tuple[str, str], Results], contenders: Sequence[Contender] = ()
) -> list[FamilyStandings]:
    """Compute the standings of every family in the results; contenders that are no baselines never count as a rival."""
    under_test = [contender.label for contender in contenders if not contender.baseline]
    families = []
    for name in dict.fromkeys(name for name, _ in results):
        design = results[name, "design"]
        final = results.get((name, "final"), design)
        stages = [(one.spec, extract_series(one.spec, one.table)) for one in (design, final)]
        families.append(compute_standings(name, design.spec.title, stages[0], stages[1], under_test))
    return families


def _labels(families: Sequence[FamilyStandings]) -> list[str]:
    return list(dict.fromkeys(one.label for family in families for one in family.standings))


def _instances(families: Sequence[FamilyStandings], judged: bool) -> str:
    design = sorted({family.design.trials for family in families})
    text = f"{len(families)} families. Every policy plays the same instances with the same noise. "
    if not judged:
        return text + (
            f"Settings were chosen and judged on the same {_span(design)} design instances per family, which flatters policies "
            f"with many settings; nothing here has touched the final instances."
        )
    final = sorted({family.final.trials for family in families})
    return text + (
        f"Settings were chosen by the mean final regret on {_span(design)} design instances per family, and judged on "
        f"{_span(final)} others."
    )


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _summary(contests: Sequence[Contest]) -> list[str]:
    paragraphs = []
    for one in contests:
        worst = max(range(len(one.families)), key=lambda i: one.means[i])
        tail = max(range(len(one.families)), key=lambda i: one.tails[i])
        calm = sum(value <= TAIL_MARGIN for value in one.tails)
        paragraphs.append(
            f"{one.name}, one setting for all: mean regret at most that of the best tuned baseline in {one.wins} of "
            f"{len(one.families)} families; geometric mean of the ratios {one.geometric_mean:.2f}; worst ratio "
            f"{one.means[worst]:.2f} ({one.families[worst]}). Its 95 % quantile is at most {TAIL_MARGIN:g} times the "
            f"baseline's in {calm} of {len(one.families)}; worst {one.tails[tail]:.2f} ({one.families[tail]})."
        )
    return paragraphs


def contest_table(contests: Sequence[Contest], families: Sequence[FamilyStandings]) -> ReportTable:
    """One row per family: the best tuned baseline, and every contender's ratio to it."""
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
                f"{mean_regret(one.default):.0f}" if one.default is not None and len(one.designs) > 1 else "",
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
        standing = family.find(label)
        if standing is None or len(standing.designs) < 2:
            continue
        settings = [_setting(one) for one in standing.designs]
        chosen = min(standing.designs, key=mean_regret)
        cells = [
            f"{mean_regret(one):.0f} ({tail_regret(one):.0f})" + (" *" if one is chosen else "") for one in standing.designs
        ]
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
    """For every contender: is its mean at most the rival's, and its tail at most a little worse?"""
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
                    f"{mean_regret(one.runs[i]):.0f} against {rival.mean:.0f} of {rival.label} ({_setting(rival.chosen)}), "
                    f"{one.means[i]:.2f} times; paired difference {difference.estimate:+.0f} "
                    f"({difference.low:+.0f} to {difference.high:+.0f})",
                )
            )
            tails.append(
                Finding(
                    family,
                    one.tails[i] <= TAIL_MARGIN,
                    f"{tail_regret(one.runs[i]):.0f} against {tail_regret(rival.chosen):.0f}, {one.tails[i]:.2f} times",
                )
            )
        against = "against the best tuned baseline of each family"
        verdicts.append(Verdict(f"{one.name}: mean regret at most the rival's", against, tuple(means)))
        verdicts.append(Verdict(f"{one.name}: 95 % quantile at most {TAIL_MARGIN:g} times the rival's", against, tuple(tails)))
    return verdicts


def _setting(series: Series) -> str:
    return series.setting_text or "default"


def _mean(series: Series) -> str:
    return f"{mean_regret(series):.0f} ± {_error(series):.0f}"


def _error(series: Series) -> float:
    return float(standard_error(series.final_regret))


def ranking_table(label: str, families: Sequence[FamilyStandings], ranked: Sequence[RankedSetting]) -> ReportTable:
    """Every setting with its loss in every family."""
    names = [family.name for family in families if family.find(label) is not None]
    rows = [
        (
            one.text,
            f"{one.loss:.2f}",
            f"{max(one.losses):.2f}",
            f"{geometric_mean(one.tails):.2f}",
            *(f"{loss:.2f}" for loss in one.losses),
        )
        for one in ranked
    ]
    return ReportTable(
        f"{label}: every setting over all families",
        ("setting", "loss", "worst", "tail", *names),
        tuple(rows),
        "Mean final regret on the design instances over that of the best setting of the family: the geometric mean over "
        "families, the worst, and each. tail: the same of 95 % quantiles, over that of the setting with the best mean.",
    )


def one_setting_table(families: Sequence[FamilyStandings]) -> ReportTable:
    """For every policy its best single setting by the design instances, judged on the final ones."""
    rows = []
    for label in dict.fromkeys(one.label for family in families for one in family.standings):
        rivals = [family.rival for family in families if family.find(label) is not None]
        top = rank_settings(label, families)[0]
        runs = [standing.final_at(standing.designs[top.index]) for standing in policy_standings(label, families)]
        pairs = [(run, rival.chosen) for run, rival in zip(runs, rivals, strict=True) if run is not None and rival is not None]
        means = [ratio(mean_regret(run), mean_regret(rival)) for run, rival in pairs]
        tails = [ratio(tail_regret(run), tail_regret(rival)) for run, rival in pairs]
        wins = sum(value <= 1.0 for value in means)
        rows.append((geometric_mean(means), label, top.text, wins, len(means), max(means), max(tails)))
    return ReportTable(
        "One setting for all families",
        ("policy", "setting", "geometric mean of ratios", "at most 1", "worst ratio", "worst ratio of 95 %"),
        tuple(
            (label, text, f"{mean:.2f}", f"{wins} of {count}", f"{worst:.2f}", f"{tail:.2f}")
            for mean, label, text, wins, count, worst, tail in sorted(rows)
        ),
        "What a user gets who cannot tune: the setting of each policy with the best geometric mean over the families, chosen "
        "on the design instances, against the best tuned baseline of each family.",
    )
