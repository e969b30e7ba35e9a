"""From the results of the field to its report: which rule for which problem, by how much, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from duelist.experiments.families.standings import FLOOR, Standing, mean_regret
from duelist.experiments.field.problems import field_problems, problem_kinds, problems_text
from duelist.experiments.field.rules import field_rules, rules_text, rules_without_entry
from duelist.experiments.field.standings import LEARNT_NOTHING, ProblemStandings, compute_problem, rank_kind
from duelist.experiments.statistics import standard_error, summary
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import extract_series
from duelist.plotting.field import interval_figure, overview_figure, recommendation_figure
from duelist.plotting.paper import PaperFigure
from duelist.plotting.style import figure_digest
from duelist.reports.document import Report, Section
from duelist.reports.paper import Reproduction, settings_sections
from duelist.reports.tables import ReportTable

_BEYOND = " †"
_SHOWN = 3  # rules of a kind that a sentence names


def field_report(
    results: Mapping[tuple[str, str], Results],
    *,
    command: str,
    seconds: float,
    reduced: bool = False,
) -> Reproduction:
    """Write the report of the field.

    Args:
        results: by (problem, stage); blocks may have failed. A problem without the stage "final" is judged on its design
            instances.
        command: the command line.
        seconds: wall time of all runs.
        reduced: whether problems, rounds, instances or grids are fewer than the files say.
    """
    problems = collect_problems(results)
    by_kind = {kind: [one for one in problems if one.problem.kind == kind] for kind in problem_kinds()}
    by_kind = {kind: members for kind, members in by_kind.items() if members}
    caveat = _caveat(results, reduced)
    figures = [PaperFigure("field-overview", _OVERVIEW, partial(overview_figure, problems), figure_digest(problems))]
    head = Section(
        "Which rule for which problem",
        [_instances(problems), *([caveat] if caveat else []), *(_kind_words(kind, one) for kind, one in by_kind.items())],
        [best_table(problems)],
        figures[:],
    )
    sections = [head, Section("What failed", _failure_words(results), [failure_table(problems)])]
    for kind, members in by_kind.items():
        drawn = [PaperFigure(f"field-{kind}", _INTERVALS, partial(interval_figure, members), figure_digest(members))]
        if any(one.problem.simple_every for one in members):
            drawn.append(
                PaperFigure(
                    "field-recommendations", _CURVES, partial(recommendation_figure, members), figure_digest(members, 1)
                )
            )
        tables = [kind_table(kind, members), *(problem_table(one) for one in members)]
        sections.append(Section(f"{kind.capitalize()}: {problem_kinds()[kind]}", tables=tables, figures=drawn))
        figures += drawn
    listing = f"{problems_text()}\n{rules_text()}"
    sections += [
        Section("What the rules assume", tables=[rule_table()]),
        *settings_sections({f"{name} {stage}": one for (name, stage), one in results.items()}, command, seconds, listing),
    ]
    return Reproduction(
        Report("The field: every rule on every problem that its assumptions allow", sections), figures, [], caveat
    )


_OVERVIEW = (
    "Mean regret over that of the best rule of each problem, at the setting that the design instances chose. Darker is worse; "
    "an empty cell is a problem that the rule's assumptions do not allow; † a rule beyond its assumptions."
)
_INTERVALS = (
    "Regret of every rule on the final instances: the line goes from the 5 % to the 95 % quantile, the thick part from the "
    "25 % to the 75 %; the bar is the median, the dot the mean. Logarithmic axes, which end at a hundredth of the best mean. "
    "† beyond its assumptions."
)
_CURVES = (
    "What the recommended arm costs after n duels or slates: mean over the final instances, of the eight rules with the best "
    "mean over n, the best first. What is less than a hundredth of the highest point is drawn at the lower edge."
)


def collect_problems(results: Mapping[tuple[str, str], Results]) -> list[ProblemStandings]:
    """Standings of every problem in the results, in the order of the file."""
    known = field_problems()
    collected = []
    for name in (name for name in known if (name, "design") in results):
        design = results[name, "design"]
        final = results.get((name, "final"), design)
        stages = [(one.spec, extract_series(one.spec, one.table)) for one in (design, final)]
        collected.append(compute_problem(known[name], stages[0], stages[1]))
    return collected


def _instances(problems: Sequence[ProblemStandings]) -> str:
    labels = {one.label for problem in problems for one in problem.standings.standings}
    design = sorted({one.standings.design.trials for one in problems})
    final = sorted({one.standings.final.trials for one in problems})
    return (
        f"{len(labels)} rules on {len(problems)} problems of {len({one.problem.kind for one in problems})} kinds. On one "
        f"problem all play the same instances with the same noise. Settings were chosen by the mean regret on {_span(design)} "
        f"design instances, and judged on {_span(final)} others."
    )


def _span(counts: Sequence[int]) -> str:
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _caveat(results: Mapping[tuple[str, str], Results], reduced: bool) -> str:
    if not reduced:
        return ""
    rounds, trials = max(one.spec.rounds for one in results.values()), max(one.spec.trials for one in results.values())
    return (
        f"This run is smaller than the full one: at most {rounds} rounds and {trials} instances per problem. Its numbers are "
        f"about this size; what is best at the start of a run need not be best later."
    )


def _kind_words(kind: str, problems: Sequence[ProblemStandings]) -> str:
    ranked = rank_kind(problems)
    most = max((len(row.ratios) for row in ranked), default=0)
    full = [row for row in ranked if len(row.ratios) == most][:_SHOWN]
    many = f"geometric mean of the ratios to the best over {most} problems" if most > 1 else "ratio to the best"
    told = ", ".join(f"{row.label} {row.mean:.2f}" for row in full)
    text = f"{kind.capitalize()} ({problem_kinds()[kind]}): {told or 'no rule has numbers'}; {many}."
    elsewhere = [row for row in ranked if len(row.ratios) < most and min(row.ratios) <= 1.0]
    if elsewhere:
        best = "; ".join(f"{row.label} on {row.problems[row.ratios.index(min(row.ratios))]}" for row in elsewhere)
        text += f" Best on single problems, of rules that cannot play them all: {best}."
    nothing = sorted({one.label for problem in problems for one in problem.learnt_nothing()})
    if nothing:
        text += f" No better than random play on at least one of them: {', '.join(nothing)}."
    return text


def best_table(problems: Sequence[ProblemStandings]) -> ReportTable:
    """One row per problem: the best rule, and those that cannot be told from it."""
    rows = []
    for one in problems:
        best, floor = one.standings.rival, one.floor
        if best is None:
            rows.append((one.problem.name, one.problem.title, "none", "", "", "", ""))
            continue
        close = ", ".join(_label(one, each) for each in one.close_to_best())
        share = f"{best.mean / floor.mean:.2f}" if floor is not None and floor.mean > 0 else ""
        default = mean_regret(best.default) if best.default is not None else None
        name = f"{best.label} ({best.chosen.setting_text})" if best.chosen.setting else best.label
        rows.append(
            (
                one.problem.name,
                one.problem.title,
                name,
                f"{_number(best.mean)} ± {_number(float(standard_error(best.chosen.final_regret)))}",
                "" if default is None else _number(default),
                share,
                close or "none",
            )
        )
    return ReportTable(
        "The best rule of every problem",
        ("problem", "", "best rule", "its mean", "at its default", "of random play", "not told apart from it"),
        tuple(rows),
        "Mean regret with its standard error; which rule is best was read off the final instances, which flatters it. Not told "
        "apart: the 95 % interval of the paired difference from the best reaches zero. † beyond its assumptions.",
    )


def failure_table(problems: Sequence[ProblemStandings]) -> ReportTable:
    """Rules without numbers, and rules that learnt nothing."""
    rows = [(one.problem, one.label, one.reason) for problem in problems for one in problem.missing if one.label != FLOOR]
    for problem in problems:
        floor = problem.floor
        for one in problem.learnt_nothing():
            assert floor is not None
            share = one.mean / floor.mean if floor.mean > 0 else 1.0
            rows.append((problem.problem.name, _label(problem, one), f"{share:.2f} of random play's regret"))
    missing = [rule for rule in field_rules() if not rule.installed]
    rows += [("all", rule.label, "a library that it needs is not installed") for rule in missing]
    return ReportTable(
        "Rules without numbers, and rules that learnt nothing",
        ("problem", "rule", "what"),
        tuple(rows),
        f"A rule has learnt nothing where its mean regret is at least {LEARNT_NOTHING:g} of random play's. † beyond its "
        f"assumptions.",
    )


def _failure_words(results: Mapping[tuple[str, str], Results]) -> list[str]:
    failures = [str(failure) for one in results.values() for failure in one.failures]
    if not failures:
        return ["Every block was played."]
    return [f"{len(failures)} block(s) failed:", *failures]


def kind_table(kind: str, problems: Sequence[ProblemStandings]) -> ReportTable:
    """Every rule over the problems of a kind."""
    names = [one.problem.name for one in problems]
    rows = []
    for row in rank_kind(problems):
        by_name = dict(zip(row.problems, row.ratios, strict=True))
        cells = [f"{by_name[name]:.2f}" if name in by_name else "" for name in names]
        rows.append((row.label, f"{row.mean:.2f}", *cells))
    return ReportTable(
        f"{kind.capitalize()}: ratios to the best rule",
        ("rule", "geometric mean", *names),
        tuple(rows),
        "Mean regret over that of the best rule, within the assumptions of each; rules that played most of the problems first.",
    )


def problem_table(one: ProblemStandings) -> ReportTable:
    """Every rule on one problem, best first."""
    rows = []
    for standing in one.ranked:
        numbers = summary(standing.chosen)
        default = standing.default if len(standing.designs) > 1 else None
        edge = " (edge of its grid)" if standing.at_edge else ""
        rows.append(
            (
                _label(one, standing),
                (standing.chosen.setting_text or "default") + edge,
                _number(numbers.mean),
                _number(float(standard_error(standing.chosen.final_regret))),
                _number(numbers.median),
                _number(numbers.q05),
                _number(numbers.q95),
                f"{one.ratio_to_best(standing):.2f}",
                "" if default is None else _number(mean_regret(default)),
            )
        )
    what = "Weak regret: what the best of those shown costs" if one.problem.regret == "weak" else "Regret"
    if one.problem.simple_every:
        what = "Mean over recommendations of what the recommended arm costs"
    return ReportTable(
        f"{one.problem.name}: {one.problem.title}",
        ("rule", "setting chosen", "mean", "s.e.", "median", "5 %", "95 %", "ratio", "mean at its default"),
        tuple(rows),
        f"{what}; {one.standings.final.trials} instances, {one.standings.final.rounds} rounds. † beyond its assumptions.",
    )


def rule_table() -> ReportTable:
    """What every rule needs of a problem, and its grid."""
    without = rules_without_entry()
    rows = []
    for rule in field_rules():
        grid = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in rule.grid.items())
        note = " (derived)" if rule.policy in without else ""
        rows.append((rule.label, rule.shelf or "floor", ", ".join(sorted(rule.needs)) or "nothing", (grid or "default") + note))
    return ReportTable(
        "Needs and grids",
        ("rule", "shelf", "needs", "grid"),
        tuple(rows),
        "Derived: the rule has no entry in rules.toml; its shelf says what it needs, and its grid goes around a default.",
    )


def _label(problem: ProblemStandings, one: Standing) -> str:
    return one.label + (_BEYOND if one.label in problem.standings.under_test and one.policy != FLOOR else "")


def _number(value: float) -> str:
    """Three digits for small numbers, whole ones for large."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
