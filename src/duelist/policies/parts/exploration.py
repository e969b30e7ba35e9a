"""What rules of pure exploration on linear utilities share: a fit with its curvature, and a score per pair of different arms.

theta_hat = argmin  lambda/2 |theta|^2 + sum_i log(1 + exp(-y_i <theta, z_i>)),    H its curvature at theta_hat
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import PerLane, Problem, check_per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.rules.pairs import Bounds, Candidates, best_pairs, pair_geometry
from duelist.policies.base import Round
from duelist.policies.parts.confidence import (
    FittedPolicy,
    UCBState,
    expect_answers,
    learn_ucb,
    learn_ucb_many,
    offer_candidates,
    report_ucb,
    start_ucb,
    warn_of_many_pairs,
)
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class ExplorationPolicy(FittedPolicy[UCBState]):
    """A policy that plays the pair of different arms with the largest score, and recommends the best arm of its fit.

    Args:
        ridge: lambda of the fit and of H; a sequence is one per lane.
    """

    ridge: PerLane = 1.0

    def __post_init__(self) -> None:
        check_per_lane("ridge", self.ridge, above=0.0)

    def score_pairs(self, candidates: Candidates, bounds: Bounds, geometry: tuple[FloatArray, FloatArray]) -> FloatArray:
        """(lanes, n_arms, n_arms) how much a duel of the two is wanted, given utilities and widths in the norm of H^-1."""
        raise NotImplementedError

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        return start_ucb(problem, 0.0, self.ridge, "different")

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The pair with the largest score, the arm with the higher estimate first."""
        finite = require_finite(self, actions)
        candidates = offer_candidates(self, actions, state.theta, streams, state.asked)
        warn_of_many_pairs(self, finite)
        bounds = state.bounds
        geometry = pair_geometry(candidates.columns, bounds.theta, bounds.whitener)
        scores = self.score_pairs(candidates, bounds, geometry)
        scores[:, np.arange(finite.n_arms), np.arange(finite.n_arms)] = -np.inf
        first, second = best_pairs(scores, geometry[0], candidates.priority)
        return duels_between(finite, first, second), state._replace(asked=state.asked + 1)

    def choose_with_pending(
        self, state: UCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, UCBState]:
        """`choose` with the curvature that there will be when the pending duels are answered."""
        duels, after = self.choose(expect_answers(state, pending, local=True), actions, streams)
        return duels, after._replace(gram=state.gram, whitener=state.whitener)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_ucb(state, actions, duels, outcomes, local=True)

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """Append all outcomes and fit once."""
        return learn_ucb_many(state, rounds, local=True)

    def weighs_offsets(self) -> bool:
        """What an arm costs says nothing of what is known about it, and a verdict is about utilities alone."""
        return False

    def recommend(self, state: UCBState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the estimate."""
        return actions.best(state.theta[:, None]).row[:, 0]

    def report(self, state: UCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and how many distinct contrasts a fit reads."""
        return report_ucb(state)
