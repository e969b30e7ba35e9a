"""BETC-GLM: ask about every pair until all are known well enough, then play the best by the estimate.

    theta_hat = argmin lambda/2 |theta|^2 + sum_i log(1 + exp(-o_i <theta, z_i>)),   V = lambda I + sum_i z_i z_i^T
    B(i)      = mean over the other arms j of s(<theta_hat, x_i - x_j>)
    tau rounds of random pairs; then
    (x, y)    = the pair with the largest |x - y|_{V^-1}    while that is above epsilon,
    x = y     = argmax B                                    from then on.

epsilon = scale d^(1/6) T^(-1/3) takes about d / epsilon^2 duels, and d^(2/3) T^(2/3) is the order of the regret, which no rule
can better: a duel between the best arm and a far worse one may be the only one that tells who is best by Borda score.
With the contrast of two arms as the feature of their pair, B grows with <theta_hat, x>: both have the same best arm.

Reference: Wu, Jin, Di, Lou, Farnoud & Gu (2024), Borda Regret Minimization for Generalized Linear Dueling Bandits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import whole_number
from duelist.core.lanes import PerLane, Problem, check_per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.rules.pairs import colstim_lanes, max_pair_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import (
    FittedPolicy,
    UCBState,
    check_ucb,
    expect_answers,
    learn_ucb,
    learn_ucb_many,
    new_pairs,
    offer_candidates,
    random_pairs,
    report_ucb,
    start_ucb,
    warn_of_many_pairs,
)
from duelist.policies.parts.same_arm import require_finite
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray


@stored("betc-glm-state")
class BETCGLMState(NamedTuple):
    """The fit, whose radius is the scale of epsilon; and T, 0 where it is not known."""

    fit: UCBState
    horizon: int


@dataclass(frozen=True, kw_only=True)
class BETCGLM(FittedPolicy[BETCGLMState]):
    """Explore until every pair is known to epsilon, then play the arm of the highest Borda score.

    Args:
        scale: factor of epsilon; more explores less. A sequence is one per lane.
        warmup: tau, rounds of random pairs first; None for 2 d.
        ridge: lambda, of the fit and of V.
        horizon: T; None takes the simulation's, and where it is unknown the rounds asked so far.
        same_arm: "allow" lets the best arm meet itself, "different" plays it against the second best; "auto" allows it in
            simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import BETCGLM
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(BETCGLM(), env, rounds=1000, trials=2, seed=0)
        >>> rows = run.first[:, -1] == run.second[:, -1]
        >>> bool(rows.all())
        True
    """

    scale: PerLane = 1.0
    warmup: int | None = None
    ridge: PerLane = 1.0
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("scale", self.scale, above=0.0)
        check_ucb(1.0, self.ridge, self.same_arm, warmup=self.warmup or 0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> BETCGLMState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        return BETCGLMState(start_ucb(problem, self.scale, self.ridge, self.same_arm), self.horizon or problem.horizon or 0)

    def choose(self, state: BETCGLMState, actions: ActionSet, streams: Streams) -> tuple[Duels, BETCGLMState]:
        """A random pair, the widest pair while it is wider than epsilon, or the best arm."""
        fit, finite = state.fit, require_finite(self, actions)
        candidates = offer_candidates(self, actions, fit.theta, streams, fit.asked)
        after = state._replace(fit=fit._replace(asked=fit.asked + 1))
        if fit.asked < (2 * finite.dim if self.warmup is None else self.warmup):
            return duels_between(finite, *random_pairs(candidates)), after
        warn_of_many_pairs(self, finite)
        widest, best = new_pairs(finite.lanes), new_pairs(finite.lanes)
        nothing, bounds = np.zeros_like(fit.theta), fit.bounds
        # Without utilities the largest optimistic sum is the largest width; without a radius the challenger is the best arm.
        max_pair_lanes(*widest, candidates, bounds._replace(theta=nothing), True)
        flat = bounds._replace(radius=np.zeros(finite.lanes))
        colstim_lanes(*best, candidates, flat, np.zeros_like(candidates.priority), fit.settings.different)
        contrast = duels_between(finite, *widest).contrast
        width = np.linalg.norm(np.einsum("lij,lj->li", fit.whitener, contrast), axis=1)
        explore = width > self._epsilon(state, finite.dim)
        rows = (np.where(explore, one, other) for one, other in zip(widest, best, strict=True))
        return duels_between(finite, *rows), after

    def choose_with_pending(
        self, state: BETCGLMState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, BETCGLMState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        fit = state.fit
        duels, after = self.choose(state._replace(fit=expect_answers(fit, pending)), actions, streams)
        return duels, after._replace(fit=after.fit._replace(gram=fit.gram, whitener=fit.whitener))

    def learn(self, state: BETCGLMState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> BETCGLMState:
        """Append the outcomes and fit again."""
        return state._replace(fit=learn_ucb(state.fit, actions, duels, outcomes, local=False))

    def learn_many(self, state: BETCGLMState, rounds: Iterable[Round]) -> BETCGLMState:
        """Append all outcomes and fit once."""
        return state._replace(fit=learn_ucb_many(state.fit, rounds, local=False))

    def estimated_utilities(self, state: BETCGLMState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the estimated Borda scores."""
        utilities = actions.utilities(state.fit.theta)
        wins = win_probability(utilities[:, :, None] - utilities[:, None])
        return np.asarray((wins.sum(axis=2) - 0.5) / (actions.n_arms - 1))

    def recommend(self, state: BETCGLMState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the estimate."""
        return actions.best(state.fit.theta[:, None]).row[:, 0]

    def weighs_offsets(self) -> bool:
        """A Borda score is a probability, to which no cost can be added."""
        return False

    def report(self, state: BETCGLMState) -> dict[str, FloatArray]:
        """Fits that did not converge, and the size of the statistics."""
        return report_ucb(state.fit)

    def _epsilon(self, state: BETCGLMState, dim: int) -> FloatArray:
        rounds = state.horizon or state.fit.asked + 1
        return np.asarray(state.fit.settings.radius * dim ** (1 / 6) * rounds ** (-1 / 3))
