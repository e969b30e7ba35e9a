"""RCDB: MaxPairUCB whose fit trusts a duel less, the less was known about its pair, so that flipped votes do little harm.

    w_i       = min(1, alpha / |z_i|_{Sigma_i^-1}),   z_i = x_i - y_i
    theta_hat = argmin lambda_fit/2 |theta|^2 + sum_i w_i log(1 + exp(-o_i <theta, z_i>))
    Sigma     = lambda I + sum_i w_i z_i z_i^T
    (x, y)    = argmax over pairs of <theta_hat, x + y> + radius |x - y|_{Sigma^-1}

A flipped vote moves the estimate by at most w |z|_{Sigma^-1} <= alpha in the norm of Sigma, and C of them by at most C alpha,
which no longer depends on the pairs that the adversary waits for. With a budget of C flips the theory has alpha = sqrt(d) / C.

Answers may be late. A duel then has its weight from the moment of the question, and `weigh` says from which matrix: that of the
duels answered by then, or that of all duels asked by then (the weights of RCDP-UCB).

References: Di, He & Gu (2024), Nearly Optimal Algorithms for Contextual Dueling Bandits from Adversarial Feedback; Oh (2026),
Robust Linear Dueling Bandits with Post-serving Context under Unknown Delays and Adversarial Corruptions, for RCDP-UCB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.kernels.rules.pairs import Fit, Ridges, max_pair_lanes, refit_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import FitInfo, UCBPolicy, UCBState, duel_counts, expect_answers
from duelist.typing import FloatArray, IntArray

WEIGH = ("answered", "asked")


def uncertainty_weights(contrast: FloatArray, whitener: FloatArray, alpha: FloatArray) -> FloatArray:
    """min(1, alpha / width), (lanes,); an arm against itself has weight 1.

    Args:
        contrast: (lanes, dim) z.
        whitener: (lanes, dim, dim) inverse Cholesky factor of Sigma.
        alpha: (lanes,) or one number.

    Example:
        >>> uncertainty_weights(np.array([[4.0, 0.0], [0.0, 0.5]]), np.tile(np.eye(2), (2, 1, 1)), np.array(1.0)).tolist()
        [0.25, 1.0]
    """
    width = np.linalg.norm(np.einsum("lij,lj->li", whitener, contrast), axis=1)
    return np.asarray(alpha / np.maximum(width, alpha))


@dataclass(frozen=True, kw_only=True)
class RCDB(UCBPolicy):
    """Play the pair with the largest optimistic sum of utilities, and weigh each vote by how well its pair was known.

    Args:
        radius: weight of the width; a sequence is one per lane.
        alpha: width above which a duel counts less than one; a sequence is one per lane. The theory has sqrt(d) / C for C
            flipped votes; a very large alpha is MaxPairUCB.
        weigh: which duels make the matrix of a weight: those "answered" when the pair is asked for (RCDB), or all that were
            "asked" (RCDP-UCB). They differ where answers are late.
        ridge: lambda, of Sigma.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
        fit_ridge: lambda_fit, of the fit; None for that of Sigma. The paper has kappa lambda.
        warmup: rounds of random pairs first; "theory" for d K.

    Example:
        >>> import duelist
        >>> from duelist.policies import RCDB
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(RCDB(radius=5.0), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 7.0
    alpha: PerLane = 1.0
    weigh: str = "answered"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("alpha", self.alpha, above=0.0)
        one_of("weigh", self.weigh, WEIGH)

    def start(self, problem: Problem, streams: Streams) -> UCBState:
        """Nothing learnt: theta = 0 and Sigma = lambda I."""
        per_lane("alpha", self.alpha, problem.lanes)
        return super().start(problem, streams)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The pair with the largest optimistic sum; what its vote will count travels in its note."""
        duels, after = self.choose_by(max_pair_lanes, state, actions, streams)
        return self._noted(duels, state), after

    def choose_with_pending(
        self, state: UCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, UCBState]:
        """`choose` with the widths that there will be when the pending duels are answered, each with its weight."""
        weights = [self._weights(duels, state) for duels in pending]
        scaled = [_scaled(duels, weight) for duels, weight in zip(pending, weights, strict=True)]
        expected = expect_answers(state, scaled)
        duels, after = self.choose_by(max_pair_lanes, expected, actions, streams)
        noted = self._noted(duels, expected if self.weigh == "asked" else state)
        return noted, after._replace(gram=state.gram, whitener=state.whitener)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes with their weights and fit again."""
        weights = self._weights(duels, state)
        history = state.history.append(actions, duels, outcomes, weights=weights)
        fit = Fit(state.theta.copy(), state.whitener.copy(), state.gram.copy(), state.info.unconverged.copy())
        ridges = Ridges(state.settings.fit_ridge, state.settings.ridge)
        refit_lanes(fit, _scaled(duels, weights).contrast, duel_counts(history), ridges, False)
        return state._replace(
            history=history, theta=fit.theta, gram=fit.gram, whitener=fit.whitener, info=FitInfo(fit.unconverged)
        )

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """One by one: a vote without a note has its weight from the votes before it."""
        for actions, duels, outcomes in rounds:
            state = self.learn(state, actions, duels, outcomes)
        return state

    def _noted(self, duels: Duels, state: UCBState) -> Duels:
        weights = uncertainty_weights(duels.contrast, state.whitener, np.asarray(self.alpha, dtype=np.float64))
        return duels._replace(note=weights[:, None])

    def _weights(self, duels: Duels, state: UCBState) -> FloatArray:
        """(lanes,) the weights that a duel was asked with; one that this policy did not ask for has that of now."""
        note = self._noted(duels, state).note if duels.note is None else duels.note
        if note is None or note.shape != (len(state.theta), 1) or not ((note > 0.0) & (note <= 1.0)).all():
            raise InvalidInputError(
                f"the note of an RCDB duel must be ({len(state.theta)}, 1) weights above 0 and at most 1; got {note!r}. Return "
                f"the duels that choose gave, or duels without a note."
            )
        return np.ascontiguousarray(note[:, 0])


def _scaled(duels: Duels, weights: FloatArray) -> Duels:
    """Duels whose contrasts are sqrt(w) z, which is what a matrix of weighted contrasts takes in."""
    return duels._replace(features=duels.features * np.sqrt(weights)[:, None, None])
