"""IDS: information-directed sampling of pairs. What a duel may cost, squared, against what it tells.

    x*        the best arm under theta_hat
    delta     = max over arms of <theta_hat, w - x*> + radius |w - x*|          what another arm may be better by
    regret    = delta + <theta_hat, x* - w> / 2                                 of the pair (x*, w); that of (x*, x*) is delta
    gain      = 1/2 log(1 + s'(<theta_hat, x* - w>) |x* - w|^2)                 information about theta

in the norm of H^-1, the covariance of a normal belief. A coin that shows (x*, w) with probability p, and else (x*, x*), which
costs delta and tells nothing, has the information ratio (delta + p g)^2 / (p gain), g = <theta_hat, x* - w> / 2. It is least at
p = min(1, delta / g), and the w with the least ratio is played with its p.

Reference: Kirschner & Krause (2021), Bias-Robust Bayesian Optimization via Dueling Bandits; Russo & Van Roy (2018), Learning to
Optimize via Information-Directed Sampling, for the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.lanes import PerLane, Problem, check_per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.parts.confidence import UCBState, start_ucb
from duelist.policies.parts.leader import leading_arm
from duelist.policies.parts.normal_belief import PendingWidths
from duelist.policies.parts.open_duels import logistic_slope
from duelist.policies.parts.same_arm import require_finite

_NOTHING_TOLD = 1e300  # the ratio of a pair without information: above all others


@dataclass(frozen=True, kw_only=True)
class IDS(PendingWidths):
    """Play the best arm against the one with the least squared regret per information, or against itself.

    Args:
        radius: how many standard deviations another arm may be better than it seems; a sequence is one per lane.
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        same_arm: "allow" lets the best arm meet itself, "different" does not; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import IDS
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(IDS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("radius", self.radius, above=0.0)

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """The prior."""
        return start_ucb(problem, self.radius, self.ridge, self.same_arm)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The best arm and the arm of the least information ratio, or the best arm and itself."""
        arms, lane = require_finite(self, actions), np.arange(len(state.theta))
        utilities = arms.utilities(state.theta)
        priority = arms.random_priority(streams, "ties", state.asked)
        leader = leading_arm(utilities, priority)
        contrasts = arms.features - arms.features[lane, leader][:, None]
        white = np.matmul(contrasts, state.whitener.transpose(0, 2, 1))
        squared = np.einsum("lkd,lkd->lk", white, white)
        behind = utilities[lane, leader][:, None] - utilities
        delta = (state.settings.radius[:, None] * np.sqrt(squared) - behind).max(axis=1, keepdims=True)
        slope = logistic_slope(np.matmul(contrasts, state.theta[:, :, None])[:, :, 0])
        gain = 0.5 * np.log1p(slope * squared)
        half = 0.5 * behind
        # The least of (delta + p g)^2 / p, at p = delta / g where that is below 1.
        least = np.where(half > delta, 4.0 * delta * half, (delta + half) ** 2)
        if state.settings.different:
            least = (delta + half) ** 2
        # An arm that would tell nothing comes after all others, and the best arm itself last of all.
        tells = gain > 0.0
        scores = -np.divide(least, gain, out=np.full_like(gain, _NOTHING_TOLD), where=tells)
        scores[lane, leader] = -np.inf
        partner = leading_arm(scores, priority)
        if not state.settings.different:
            odds = streams.uniforms("ids coin", state.asked) * half[lane, partner]
            shown = (odds < delta[:, 0]) & tells[lane, partner]
            partner = np.where(shown, partner, leader)
        return duels_between(arms, leader, partner), state._replace(asked=state.asked + 1)
