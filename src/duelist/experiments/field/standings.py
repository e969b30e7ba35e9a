"""Who stands where on a problem of the field, and what failed: from result tables to numbers.

Settings are chosen on the design instances and judged on the final ones, as in the problem families. Where recommendations are
judged, the regret of a run is the mean over its recommendations of what the recommended arm costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from duelist.experiments.families.standings import (
    FLOOR,
    FamilyStandings,
    Standing,
    compute_standings,
    geometric_mean,
    ratio,
)
from duelist.experiments.field.problems import FieldProblem
from duelist.experiments.statistics import paired_difference
from duelist.experiments.sweep.series import Series, select
from duelist.experiments.sweep.spec import PolicySpec, Spec

LEARNT_NOTHING = 0.9  # of random play's regret: from here up a rule has learnt next to nothing


@dataclass(frozen=True)
class Missing:
    """A rule without numbers on a problem, and why."""

    problem: str
    label: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ProblemStandings:
    """All rules on one problem.

    Attributes:
        problem: what was played.
        standings: of the rules that have numbers; rules beyond their assumptions are never the best.
        missing: rules that have none.
    """

    problem: FieldProblem
    standings: FamilyStandings
    missing: tuple[Missing, ...] = ()

    @property
    def ranked(self) -> list[Standing]:
        """Rules from the smallest mean regret to the largest."""
        return sorted(self.standings.standings, key=lambda one: one.mean)

    @property
    def floor(self) -> Standing | None:
        """Random play; None where it has no numbers."""
        return next((one for one in self.standings.standings if one.policy == FLOOR), None)

    def ratio_to_best(self, one: Standing) -> float:
        """Mean regret over that of the best rule; NaN where there is no best."""
        return float("nan") if self.standings.rival is None else ratio(one.mean, self.standings.rival.mean)

    def close_to_best(self) -> list[Standing]:
        """Rules, the best left out, whose paired difference from the best has an interval that reaches zero."""
        best = self.standings.rival
        if best is None:
            return []
        others = [one for one in self.ranked if one is not best and one.policy != FLOOR]
        return [one for one in others if paired_difference(one.chosen, best.chosen).t.low <= 0.0]

    def learnt_nothing(self) -> list[Standing]:
        """Rules whose mean regret is about that of random play, or above it."""
        floor = self.floor
        if floor is None:
            return []
        return [one for one in self.ranked if one is not floor and one.mean >= LEARNT_NOTHING * floor.mean]


def compute_problem(
    problem: FieldProblem, design: tuple[Spec, Sequence[Series]], final: tuple[Spec, Sequence[Series]]
) -> ProblemStandings:
    """Choose settings on the design instances and judge them on the final ones.

    Args:
        problem: what was played.
        design: spec and series; a rule of which a setting is missing, because a block failed, has no numbers.
        final: likewise. The same pair twice chooses in hindsight.
    """
    missing: dict[str, Missing] = {}
    stages = []
    for spec, played in (design, final):
        judged = [one for series in played if (one := _judged(series, problem)) is not None]
        stages.append((spec, judged))
        for policy in spec.policies:
            wanted = len(policy.grid_points())
            if len(select(list(played), label=policy.label)) < wanted:
                missing.setdefault(policy.label, Missing(problem.name, policy.label, "a block failed"))
            elif len(select(judged, label=policy.label)) < wanted:
                missing.setdefault(policy.label, Missing(problem.name, policy.label, "recommends nothing"))
    judged_labels = {policy.label for policy in final[0].policies}
    for policy in design[0].policies:
        if policy.label not in judged_labels:
            missing.setdefault(policy.label, Missing(problem.name, policy.label, "no numbers on its design instances"))
    beyond = [rule.label for rule in problem.players() if problem.is_beyond(rule)]
    design_spec, final_spec = (_without(spec, missing) for spec, _ in stages)
    chosen_on, judged_on = (judged for _, judged in stages)
    if design_spec is None or final_spec is None:
        nobody = FamilyStandings(name=problem.name, title=problem.title, design=design[0], final=final[0], standings=())
        return ProblemStandings(problem=problem, standings=nobody, missing=tuple(missing.values()))
    standings = compute_standings(problem.name, problem.title, (design_spec, chosen_on), (final_spec, judged_on), beyond)
    return ProblemStandings(problem=problem, standings=standings, missing=tuple(missing.values()))


def cut_to_chosen(final: Spec, designed: ProblemStandings) -> Spec | None:
    """The final spec with the settings that the design instances chose, and defaults; None where no rule has numbers."""
    spec = _without(final, {one.label: one for one in designed.missing})
    if spec is None:
        return None
    standings = {one.label: one for one in designed.standings.standings}
    return replace(spec, policies=[_cut(policy, standings[policy.label]) for policy in spec.policies])


def _cut(policy: PolicySpec, standing: Standing) -> PolicySpec:
    runs = [standing.chosen, *([standing.default] if standing.default else [])]
    wanted: dict[str, set[Any]] = {name: {run.setting[name] for run in runs} for name in policy.grid}
    return replace(policy, grid={name: [v for v in values if v in wanted[name]] for name, values in policy.grid.items()})


def _judged(series: Series, problem: FieldProblem) -> Series | None:
    """The series with the regret that the problem judges; None where it has none."""
    if problem.regret == "weak":
        return replace(series, final_regret=series.final_weak_regret)
    if not problem.simple_every:
        return series
    if series.simple_regret is None or series.simple_rounds is None or np.isnan(series.simple_regret).any():
        return None
    return replace(
        series, rounds=series.simple_rounds, regret=series.simple_regret, final_regret=series.simple_regret.mean(axis=1)
    )


def _without(spec: Spec, missing: Mapping[str, Missing]) -> Spec | None:
    players = [policy for policy in spec.policies if policy.label not in missing]
    return replace(spec, policies=players) if players else None


@dataclass(frozen=True)
class KindRow:
    """One rule over the problems of a kind that it plays within its assumptions.

    Attributes:
        label: of the rule.
        ratios: mean regret over that of the best rule, problem by problem.
        problems: names of these.
    """

    label: str
    ratios: tuple[float, ...]
    problems: tuple[str, ...]

    @property
    def mean(self) -> float:
        """Geometric mean of the ratios."""
        return geometric_mean(self.ratios)


def rank_kind(problems: Sequence[ProblemStandings]) -> list[KindRow]:
    """Rules over problems of one kind, the best first; those that played most of the problems before the others."""
    found: dict[str, list[tuple[str, float]]] = {}
    for one in problems:
        if one.standings.rival is None:
            continue
        for standing in one.standings.standings:
            if standing.label not in one.standings.under_test and standing.policy != FLOOR:
                found.setdefault(standing.label, []).append((one.problem.name, one.ratio_to_best(standing)))
    rows = [KindRow(label, tuple(r for _, r in pairs), tuple(n for n, _ in pairs)) for label, pairs in found.items()]
    return sorted(rows, key=lambda row: (-len(row.ratios), row.mean))
