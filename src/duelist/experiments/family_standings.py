"""How every policy stands in every problem family: setting chosen on design instances, regret judged on final ones.

A policy with a grid is a *tuned* policy: of its settings the one with the smallest mean regret on the design instances plays
for it. The rival of a contender in a family is the tuned baseline with the smallest mean on the final instances, so the choice
of the policy itself favours the baselines. Not every setting has to play the final instances: see
`duelist.experiments.family_finals`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.experiments.parameters import built, resolved
from duelist.experiments.series import Series, select
from duelist.experiments.spec import Spec
from duelist.experiments.spec_parts import PolicySpec
from duelist.policies.registry import POLICIES

NEW_POLICY = "Foresight"  # what the baselines are compared with: every other policy is a baseline
FLOOR = "Uniform"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """One policy in one family.

    Attributes:
        label: what the line-up calls the policy.
        policy: its registered name.
        chosen: final runs at the setting chosen on the design instances.
        default: final runs at the policy's default setting; None where its grid leaves that out.
        finals: final runs at every setting that played them.
        designs: design runs at every setting.
        at_edge: whether a setting that was chosen among numbers is the smallest or largest of them.
    """

    label: str
    policy: str
    chosen: Series
    default: Series | None
    finals: tuple[Series, ...] = field(repr=False)
    designs: tuple[Series, ...] = field(repr=False)
    at_edge: bool

    def final_at(self, design: Series) -> Series | None:
        """The final runs at the setting of some design runs, if it played them."""
        return next((one for one in self.finals if _key(one) == _key(design)), None)

    @property
    def mean(self) -> float:
        """Mean final regret at the chosen setting."""
        return mean_of(self.chosen)


@dataclass(frozen=True, kw_only=True)
class FamilyStandings:
    """All policies in one family, in the order of the line-up."""

    name: str
    title: str
    design: Spec
    final: Spec
    standings: tuple[Standing, ...] = field(repr=False)

    def of(self, label: str) -> Standing | None:
        """The standing of one policy, if it played."""
        return next((one for one in self.standings if one.label == label), None)

    @property
    def rival(self) -> Standing | None:
        """The best tuned baseline; None if no baseline played."""
        baselines = [one for one in self.standings if one.policy not in (NEW_POLICY, FLOOR)]
        return min(baselines, key=lambda one: one.mean) if baselines else None


@dataclass(frozen=True, kw_only=True)
class Contest:
    """A contender with one setting for all families, against the best tuned baseline of each.

    Attributes:
        name: who contends.
        families: names of the families.
        rivals: the best tuned baseline of each.
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


def family_standings(
    name: str, title: str, design: tuple[Spec, Sequence[Series]], final: tuple[Spec, Sequence[Series]]
) -> FamilyStandings:
    """Choose settings on one stage and judge them on the other; the chosen ones must be on both.

    Args:
        name: of the family.
        title: what it is.
        design: spec and series of the instances on which settings are chosen.
        final: spec and series of the instances that judge. The same pair twice chooses in hindsight.
    """
    (design_spec, chosen_on), (final_spec, judged_on) = design, final
    standings = []
    for policy in final_spec.policies:
        candidates = select(list(chosen_on), label=policy.label)
        runs = select(list(judged_on), label=policy.label)
        by_setting = {_key(one): one for one in runs}
        best = min(candidates, key=mean_of, default=None)
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
    return FamilyStandings(name=name, title=title, design=design_spec, final=final_spec, standings=tuple(standings))


def contest(name: str, label: str, families: Sequence[FamilyStandings], *, default: bool = False) -> Contest | None:
    """One policy against the best tuned baseline of every family in which both played; None if there is none.

    Args:
        name: what tables call the contender.
        label: the policy.
        families: where.
        default: play its default setting instead of the chosen one.
    """
    rows = []
    for family in families:
        own, rival = family.of(label), family.rival
        runs = None if own is None else own.default if default else own.chosen
        if runs is not None and rival is not None:
            rows.append((family, rival, runs))
    if not rows:
        return None
    return Contest(
        name=name,
        families=tuple(family.name for family, _, _ in rows),
        rivals=tuple(rival for _, rival, _ in rows),
        means=tuple(ratio(mean_of(runs), rival.mean) for _, rival, runs in rows),
        tails=tuple(ratio(tail_of(runs), tail_of(rival.chosen)) for _, rival, runs in rows),
        runs=tuple(runs for _, _, runs in rows),
    )


def mean_of(series: Series) -> float:
    """Mean final regret."""
    return float(series.final.mean())


def tail_of(series: Series) -> float:
    """95 % quantile of final regret."""
    return float(np.quantile(series.final, 0.95))


def ratio(above: float, below: float) -> float:
    """A ratio of regrets; regret that is zero on both sides is equal."""
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
    default = resolved(built("policy", POLICIES[policy.policy], policy.parameters))
    return tuple(default[name] for name in policy.grid)


def _at_edge(best: Series, candidates: Sequence[Series]) -> bool:
    values = [one.setting.values() for one in candidates]
    if len(values) < 3 or len(best.setting) != 1:
        return False
    numbers = [next(iter(value)) for value in values]
    own = next(iter(best.setting.values()))
    return own in (min(numbers), max(numbers))
