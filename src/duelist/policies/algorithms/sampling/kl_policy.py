"""KLPolicy: sample arms from the KL-regularised optimum of the estimated utilities, with exact propensities.

    pi(k) proportional to pi_ref(k) exp(<theta_hat, x_k> / temperature)

maximises E_pi <theta_hat, x> - temperature KL(pi | pi_ref). The first arm is drawn from pi, the second from pi or from pi_ref.
The reference is uniform over the arms. The estimate is used as it is, without a bonus: the randomness of pi is what explores.

Reference: Wu, Shi, Yang & Shen (2025), Greedy Sampling Is Provably Efficient for RLHF, in its Bradley-Terry case.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.parts.confidence import UCBState, offer_candidates
from duelist.policies.parts.normal_belief import NormalPolicy
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import FloatArray, IntArray

SECONDS = ("policy", "reference")


def _first_of_equals(arms: FiniteActions, without: IntArray | None = None) -> FloatArray:
    """(lanes, n_arms) 0 for the lowest row of every content, -inf for the others and for the rows `without` (lanes,).

    Equal arms have equal random numbers, so the lowest of them is drawn for all.
    """
    same = arms.fingerprints[:, :, None] == arms.fingerprints[:, None, :]
    lanes = np.arange(arms.lanes)
    if without is not None:
        same[lanes, :, without] = False
    chosen = np.argmax(same, axis=2) == np.arange(arms.n_arms)
    if without is not None:
        chosen[lanes, without] = False
    return np.where(chosen, 0.0, -np.inf)


def _softmax_at(logits: FloatArray, rows: IntArray) -> FloatArray:
    """(lanes,) the probability of one row each under the softmax of logits (lanes, n_arms)."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(weights[np.arange(len(rows)), rows] / weights.sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class KLPolicy(NormalPolicy):
    """Draw both arms from a softmax of the estimated utilities, or the second from the reference.

    Args:
        temperature: weight of the divergence from the reference, in units of utility; a sequence is one per lane. Near 0 the
            best arm by the estimate is played alone, and large values play the reference.
        second: where the second arm is drawn from: "policy" or "reference".
        ridge: lambda, of the fit; a sequence is one per lane.
        same_arm: "allow" lets an arm meet itself, "different" draws the second from the others; "auto" allows it in
            simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import KLPolicy
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(KLPolicy(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 200)
        True
    """

    temperature: PerLane = 0.5
    second: str = "policy"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("temperature", self.temperature, above=0.0)
        one_of("second", self.second, SECONDS)

    def start(self, problem: Problem, streams: Streams) -> UCBState:
        """Nothing learnt: the reference."""
        per_lane("temperature", self.temperature, problem.lanes)
        return super().start(problem, streams)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """Two arms, drawn by the largest of logits and Gumbel noise."""
        arms = require_finite(self, actions)
        offer_candidates(self, actions, state.theta, streams, state.asked)
        logits = self._logits(state, arms)
        lanes = np.arange(arms.lanes)
        first = np.argmax(logits + self._noise(arms, streams, "kl first", state.asked), axis=1)
        scores = self._second_logits(logits) + self._noise(arms, streams, "kl second", state.asked)
        if state.settings.different:
            scores[lanes, first] = -np.inf
        second = np.argmax(scores, axis=1)
        return duels_between(arms, first, second), state._replace(asked=state.asked + 1)

    def pair_probability(self, state: UCBState, actions: ActionSet, duels: Duels) -> FloatArray:
        """(lanes,) how likely these pairs were, in this order: exact while nothing was learnt since they were chosen."""
        arms = require_finite(self, actions)
        logits = self._logits(state, arms)
        first, second = np.asarray(duels.first), np.asarray(duels.second)
        chance = _softmax_at(logits + _first_of_equals(arms), first)
        without = first if state.settings.different else None
        return np.asarray(chance * _softmax_at(self._second_logits(logits) + _first_of_equals(arms, without), second))

    def _logits(self, state: UCBState, arms: FiniteActions) -> FloatArray:
        return np.asarray(arms.utilities(state.theta) / np.reshape(self.temperature, (-1, 1)))

    def _second_logits(self, logits: FloatArray) -> FloatArray:
        return logits if self.second == "policy" else np.zeros_like(logits)

    @staticmethod
    def _noise(arms: FiniteActions, streams: Streams, name: str, asked: int) -> FloatArray:
        return np.asarray(-np.log(-np.log(arms.random_priority(streams, name, asked))))
