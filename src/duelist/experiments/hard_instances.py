"""Policies on the hard instances of the lower bound, beside the bounds themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from duelist.core.checks import whole_number
from duelist.environments.hard_duels import HardDuels
from duelist.experiments.simulate import simulate
from duelist.policies.base import Policy
from duelist.theory.conditions import Bound
from duelist.theory.lower import lower_bound


@dataclass(frozen=True, kw_only=True)
class HardResult:
    """One policy on the hard instances of one size.

    Attributes:
        policy: its name.
        dim: d.
        horizon: T.
        mean: final average regret, mean over draws of theta* and over the noise.
        standard_error: of that mean.
        lower: the lower bound with its conditions.
    """

    policy: str
    dim: int
    horizon: int
    mean: float
    standard_error: float
    lower: Bound

    @property
    def margin(self) -> float:
        """By how many standard errors the mean lies above the lower bound."""
        return (self.mean - self.lower.value) / self.standard_error if self.standard_error > 0 else math.inf


def play_hard_instances(
    policies: Mapping[str, Policy],
    *,
    dim: int,
    horizons: Sequence[int],
    bound: float = 1.0,
    draws: int = 64,
    seed: int = 0,
    actions: Literal["ball", "corners"] = "corners",
    workers: int | None = None,
) -> list[HardResult]:
    """Mean regret over draws of theta* from the hard class, for every policy and horizon.

    Args:
        policies: by name.
        dim: d.
        horizons: each T makes its own class of instances.
        bound: B, the largest |theta| that the lower bound's conditions allow for.
        draws: instances a policy and horizon, at least 2.
        seed: names all random numbers; every policy meets the same instances.
        actions: "ball", or "corners" for policies that need a finite set.
        workers: threads; None for one a core.

    Example:
        >>> import duelist
        >>> (result,) = play_hard_instances({"uniform": duelist.Uniform()}, dim=2, horizons=[300], draws=8)
        >>> result.lower.holds, result.mean > result.lower.value
        (True, True)
    """
    whole_number("draws", draws, at_least=2)
    results = []
    for horizon in horizons:
        environment = HardDuels(dim=dim, horizon=horizon, actions=actions)
        lower = lower_bound(dim=dim, horizon=horizon, bound=bound)
        for name, policy in policies.items():
            run = simulate(policy, environment, rounds=horizon, trials=draws, seed=seed, workers=workers)
            final = run.final_regret
            error = float(final.std(ddof=1)) / math.sqrt(draws)
            results.append(
                HardResult(policy=name, dim=dim, horizon=horizon, mean=float(final.mean()), standard_error=error, lower=lower)
            )
    return results
