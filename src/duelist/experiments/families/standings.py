"""Standings: every policy in every problem family, its setting chosen on design instances and its regret judged on final ones.

A policy with a grid is a *tuned* policy: it plays the setting with the smallest mean regret on the design instances. The rival
of a contender in a family is the tuned baseline with the smallest mean on the final instances, so the choice of the rival
favours the baselines.

One setting for all families: a setting's loss in a family is its mean regret over that of the policy's best setting there.
Settings are ranked by the geometric mean of their losses over the families, on the design instances. Only the chosen settings,
those best for all families and defaults play the final instances.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.experiments.families.problems import Contender
from duelist.experiments.sweep.parameters import build, list_parameters
from duelist.experiments.sweep.policy_spec import PolicySpec
from duelist.experiments.sweep.series import Series, select
from duelist.experiments.sweep.spec import Spec
from duelist.policies.registry import policy_class

FLOOR = "Uniform"  # random play: never a baseline


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One policy in one family.

    Attributes:
        label: of the policy in the line-up.
        policy: its registered name.
        chosen: final runs at the setting chosen on the design instances.
        default: final runs at the policy's default setting; None where its grid leaves that out.
        finals: final runs at every setting that played them.
        designs: design runs at every setting.
        at_edge: whether the chosen setting is a number, and the smallest or largest of its grid.
    """

    label: str
    policy: str
    chosen: Series
    default: Series | None
    finals: tuple[Series, ...] = field(repr=False)
    designs: tuple[Series, ...] = field(repr=False)
    at_edge: bool

    def final_at(self, design: Series) -> Series | None:
        """Return the final runs at the setting of some design runs; None if that setting did not play them."""
        return next((one for one in self.finals if _key(one) == _key(design)), None)

    @property
    def mean(self) -> float:
        """Mean final regret at the chosen setting."""
        return mean_regret(self.chosen)


@dataclass(frozen=True, kw_only=True)
class FamilyStandings:
    """All policies in one family.

    Attributes:
        name: of the family.
        title: the family in a few words.
        design: spec of the instances on which settings are chosen.
        final: spec of the instances that judge.
        standings: one per policy, in the order of the line-up.
        under_test: labels of the policies that are compared with baselines and are none themselves.
    """

    name: str
    title: str
    design: Spec
    final: Spec
    standings: tuple[Standing, ...] = field(repr=False)
    under_test: frozenset[str] = frozenset()

    def find(self, label: str) -> Standing | None:
        """Return the standing of one policy; None if it did not play."""
        return next((one for one in self.standings if one.label == label), None)

    @property
    def rival(self) -> Standing | None:
        """The best tuned baseline; None if no baseline played."""
        baselines = [one for one in self.standings if one.policy != FLOOR and one.label not in self.under_test]
        return min(baselines, key=lambda one: one.mean) if baselines else None


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A contender with one setting for all families, against the best tuned baseline of each.

    Attributes:
        name: of the contender.
        families: names of the families.
        rivals: the best tuned baseline of each family.
        means: mean final regret over that of the rival, in each family.
        tails: 95 % quantile of final regret over that of the rival.
        runs: the contender's runs in each family.
    """

    name: str
    families: tuple[str, ...]
    rivals: tuple[Standing, ...]
    means: tuple[float, ...]
    tails: tuple[float, ...]
    runs: tuple[Series, ...] = field(repr=False)

    @property
    def wins(self) -> int:
        """Families in which the contender's mean is at most the rival's."""
        return sum(ratio <= 1.0 for ratio in self.means)

    @property
    def geometric_mean(self) -> float:
        """Of the ratios of means."""
        return geometric_mean(self.means)


def compute_standings(
    name: str,
    title: str,
    design: tuple[Spec, Sequence[Series]],
    final: tuple[Spec, Sequence[Series]],
    under_test: Collection[str] = (),
) -> FamilyStandings:
    """Choose settings on one stage and judge them on the other; the chosen ones must have played both.

    Args:
        name: of the family.
        title: the family in a few words.
        design: spec and series of the instances on which settings are chosen.
        final: spec and series of the instances that judge. The same pair twice chooses in hindsight.
        under_test: labels of the policies that are no baselines.
    """
    (design_spec, chosen_on), (final_spec, judged_on) = design, final
    standings = []
    for policy in final_spec.policies:
        candidates = select(list(chosen_on), label=policy.label)
        runs = select(list(judged_on), label=policy.label)
        by_setting = {_key(one): one for one in runs}
        best = min(candidates, key=mean_regret, default=None)
        if best is None or _key(best) not in by_setting:
            raise InvalidInputError(f"{policy.label} did not play its chosen setting on both stages of the family {name}.")
        standings.append(
            Standing(
                label=policy.label,
                policy=policy.policy,
                chosen=by_setting[_key(best)],
                default=by_setting.get(_default_key(policy)),
                finals=tuple(runs),
                designs=tuple(candidates),
                at_edge=_at_edge(best, candidates),
            )
        )
    return FamilyStandings(
        name=name,
        title=title,
        design=design_spec,
        final=final_spec,
        standings=tuple(standings),
        under_test=frozenset(under_test),
    )


def compare_with_rivals(contender: Contender, families: Sequence[FamilyStandings]) -> Contest | None:
    """Compare a contender with the best tuned baseline of every family in which both played; None if there is none."""
    rows = []
    for family in families:
        own, rival = family.find(contender.label), family.rival
        runs = None if own is None else own.default if contender.default_setting else own.chosen
        if runs is not None and rival is not None:
            rows.append((family, rival, runs))
    if not rows:
        return None
    return Contest(
        name=contender.name or contender.label,
        families=tuple(family.name for family, _, _ in rows),
        rivals=tuple(rival for _, rival, _ in rows),
        means=tuple(ratio(mean_regret(runs), rival.mean) for _, rival, runs in rows),
        tails=tuple(ratio(tail_regret(runs), tail_regret(rival.chosen)) for _, rival, runs in rows),
        runs=tuple(runs for _, _, runs in rows),
    )


def mean_regret(series: Series) -> float:
    """Mean final regret."""
    return float(series.final_regret.mean())


def tail_regret(series: Series) -> float:
    """95 % quantile of final regret."""
    return float(np.quantile(series.final_regret, 0.95))


def ratio(above: float, below: float) -> float:
    """Divide two regrets; two regrets of zero are equal, with ratio 1."""
    if below > 0.0:
        return above / below
    return 1.0 if above <= 0.0 else math.inf


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean of numbers from 0 up.

    Example:
        >>> geometric_mean([0.5, 2.0])
        1.0
    """
    if min(ratios) <= 0.0:
        return 0.0
    return math.exp(sum(math.log(one) for one in ratios) / len(ratios))


def _key(series: Series) -> tuple[Any, ...]:
    return tuple(series.setting.values())


def _default_key(policy: PolicySpec) -> tuple[Any, ...]:
    default = list_parameters(build("policy", policy_class(policy.policy), policy.parameters))
    return tuple(default[name] for name in policy.grid)


def _at_edge(best: Series, candidates: Sequence[Series]) -> bool:
    values = [one.setting.values() for one in candidates]
    if len(values) < 3 or len(best.setting) != 1:
        return False
    numbers = [next(iter(value)) for value in values]
    own = next(iter(best.setting.values()))
    return own in (min(numbers), max(numbers))


@dataclass(frozen=True, kw_only=True)
class RankedSetting:
    """One setting of a policy over all families.

    Attributes:
        index: its place in the grid.
        text: the setting in words.
        losses: design mean over that of the policy's best setting, in each family.
        tails: 95 % quantile over that of the setting with the best mean, in each family.
    """

    index: int
    text: str
    losses: tuple[float, ...]
    tails: tuple[float, ...]

    @property
    def loss(self) -> float:
        """Geometric mean of the losses."""
        return geometric_mean(self.losses)


def rank_settings(label: str, families: Sequence[FamilyStandings]) -> list[RankedSetting]:
    """Rank the settings of a policy, the best for all families first."""
    standings = policy_standings(label, families)
    best = [min(standing.designs, key=mean_regret) for standing in standings]
    ranked = []
    for index, one in enumerate(standings[0].designs):
        runs = [standing.designs[index] for standing in standings]
        ranked.append(
            RankedSetting(
                index=index,
                text=one.setting_text or "default",
                losses=tuple(ratio(mean_regret(run), mean_regret(top)) for run, top in zip(runs, best, strict=True)),
                tails=tuple(ratio(tail_regret(run), tail_regret(top)) for run, top in zip(runs, best, strict=True)),
            )
        )
    return sorted(ranked, key=lambda setting: setting.loss)


def policy_standings(label: str, families: Sequence[FamilyStandings]) -> list[Standing]:
    """The standing of one policy in each family that it plays."""
    return [standing for family in families if (standing := family.find(label)) is not None]


def final_specs(finals: Mapping[str, Spec], designed: Sequence[FamilyStandings]) -> dict[str, Spec]:
    """Cut the grids of the final specs to the settings that a report needs.

    Args:
        finals: final specs with full grids, by family.
        designed: standings on the design instances of these families.
    """
    labels = dict.fromkeys(one.label for family in designed for one in family.standings)
    for_all = {label: rank_settings(label, designed)[0].index for label in labels}
    cut = {}
    for family in designed:
        spec = finals[family.name]
        standings = {one.label: one for one in family.standings}
        policies = [_cut(policy, standings[policy.label], for_all[policy.label]) for policy in spec.policies]
        cut[family.name] = replace(spec, policies=policies)
    return cut


def _cut(policy: PolicySpec, standing: Standing, for_all: int) -> PolicySpec:
    runs = [standing.chosen, standing.designs[for_all], *([standing.default] if standing.default else [])]
    wanted: dict[str, set[Any]] = {name: {run.setting[name] for run in runs} for name in policy.grid}
    return replace(policy, grid={name: [v for v in values if v in wanted[name]] for name, values in policy.grid.items()})
