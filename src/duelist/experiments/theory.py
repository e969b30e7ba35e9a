"""The theory in experiments: the regret of every round split as in the proof, and policies on the hard instances.

With theta_j the draw that chose arm a_j, phi_j its features and a* the best arm,

    BE_j = <theta_j - theta*, phi_j - phi_{3-j}>                               Bellman error: how wrong the draw is on the pair
    FG_j = max_a <theta_j, phi_a - phi_{3-j}> - <theta*, phi* - phi_{3-j}>     Feel-Good part: how optimistic the draw is

    r* - (r_1 + r_2) / 2 = ( BE_1 + BE_2 - FG_1 - FG_2 ) / 2

in every round, for every pair of draws: an identity, not a bound. BE_j - FG_j is what arm j alone costs. A policy pays for
errors that its optimism does not cover.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Section 7.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.base import Environment, show_duels
from duelist.environments.hard import HardDuels
from duelist.experiments.simulation import simulate
from duelist.history.duels import Duels
from duelist.policies.base import Policy
from duelist.theory.conditions import Bound
from duelist.theory.linear_bounds import lower_bound
from duelist.typing import FloatArray

# Relative to the largest utility of the round: two arms this close are the same choice to rounding.
_ROUNDING = 1e-9


@runtime_checkable
class LinearTruth(Protocol):
    """An instance whose utilities are linear in a known theta (lanes, dim)."""

    @property
    def theta(self) -> FloatArray:
        """(lanes, dim) the truth."""


@dataclass(frozen=True, kw_only=True)
class Decomposition:
    """A run with its regret split round by round.

    Attributes:
        policy: the hyper-parameters that played.
        environment: the recipe of the instances.
        bellman: (trials, rounds, 2) Bellman error BE of either draw.
        feel_good: (trials, rounds, 2) Feel-Good part FG of either draw.
        regret: (trials, rounds) average regret of each round, as the environment reports it.
    """

    policy: Any
    environment: Any
    bellman: FloatArray = field(repr=False)
    feel_good: FloatArray = field(repr=False)
    regret: FloatArray = field(repr=False)

    @property
    def from_errors(self) -> FloatArray:
        """(trials, rounds) what the Bellman errors contribute, (BE_1 + BE_2) / 2."""
        return np.asarray(self.bellman.mean(axis=2))

    @property
    def from_optimism(self) -> FloatArray:
        """(trials, rounds) what the Feel-Good parts contribute, -(FG_1 + FG_2) / 2."""
        return np.asarray(-self.feel_good.mean(axis=2))

    @property
    def residual(self) -> float:
        """The largest |regret - (BE_1 + BE_2 - FG_1 - FG_2) / 2| of any round: rounding error only."""
        return float(np.abs(self.regret - self.from_errors - self.from_optimism).max())


def decompose(
    policy: Policy[Any], environment: Environment, *, rounds: int, trials: int | Sequence[int] = 30, seed: int = 0
) -> Decomposition:
    """Play a policy that samples and record the parts of its regret. The run is that of `simulate` with the same arguments.

    Args:
        policy: one whose arms are the best arms of its two draws, as `FGTS` is unless it must avoid equal arms.
        environment: one with linear utilities.
        rounds: duels per trial.
        trials: number of trials, or the trial numbers themselves.
        seed: names all random numbers.

    Example:
        >>> import duelist
        >>> split = decompose(duelist.FGTS(), duelist.LinearDuels(dim=5, arms=8), rounds=20, trials=2)
        >>> split.residual < 1e-9
        True
    """
    whole_number("rounds", rounds, at_least=1)
    numbers = range(whole_number("trials", trials, at_least=1)) if isinstance(trials, int) else trials
    streams = Streams(seed, numbers)
    instance = environment.instance(streams)
    if not isinstance(instance, LinearTruth):
        raise InvalidInputError(
            f"splitting the regret needs linear utilities: an instance with a theta (lanes, dim). Those of "
            f"{type(environment).__name__} have none."
        )
    lanes = len(streams)
    bellman, feel_good, regret = np.empty((lanes, rounds, 2)), np.empty((lanes, rounds, 2)), np.empty((lanes, rounds))
    state = policy.start(Problem(dim=environment.dim, lanes=lanes, horizon=rounds), streams)
    for t in range(rounds):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        bellman[:, t], feel_good[:, t] = split_regret(instance.theta, _draws(policy, state, lanes), actions, duels)
        regret[:, t] = instance.regret(actions, duels).average
        seen = show_duels(instance, t, duels)
        state = policy.learn(state, actions, seen, instance.outcomes(t, seen))
    return Decomposition(policy=policy, environment=environment, bellman=bellman, feel_good=feel_good, regret=regret)


def split_regret(truth: FloatArray, draws: FloatArray, actions: ActionSet, duels: Duels) -> tuple[FloatArray, FloatArray]:
    """Bellman errors and Feel-Good parts of one round, each (lanes, 2).

    Args:
        truth: (lanes, dim) theta*.
        draws: (lanes, 2, dim) the two draws, whose best arms were played.
        actions: the round's action set.
        duels: what was played.
    """
    adversary = duels.features[:, ::-1]
    best = actions.best(draws).value
    chosen = _products(draws, duels.features)
    if (best - chosen > _ROUNDING * (1.0 + np.abs(best))).any():
        raise InvalidInputError(
            "the regret splits this way only where each draw's best arm is played, and here another arm was. "
            'Play FGTS with same_arm="allow".'
        )
    truths = np.repeat(truth[:, None], 2, axis=1)
    best_true = actions.best(truth[:, None]).value
    bellman = _products(draws - truths, duels.features - adversary)
    feel_good = (best - _products(draws, adversary)) - (best_true - _products(truths, adversary))
    return bellman, feel_good


def _products(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ljd,ljd->lj", left, right))


def _draws(policy: Policy[Any], state: Any, lanes: int) -> FloatArray:
    """The two draws behind the pair just chosen, (lanes, 2, dim)."""
    position = getattr(getattr(state, "chains", None), "position", None)
    if not isinstance(position, np.ndarray) or position.shape[:2] != (lanes, 2):
        raise InvalidInputError(
            f"splitting the regret needs a policy that plays the best arms of two draws, as FGTS does; "
            f"{type(policy).__name__} draws no parameters."
        )
    return position


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
        """How many standard errors the mean lies above the lower bound."""
        return (self.mean - self.lower.value) / self.standard_error if self.standard_error > 0 else math.inf


def play_hard_instances(
    policies: Mapping[str, Policy[Any]],
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
        draws: instances per policy and horizon, at least 2.
        seed: names all random numbers; every policy meets the same instances.
        actions: "ball", or "corners" for policies that need a finite set.
        workers: threads; None for one per core.

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
