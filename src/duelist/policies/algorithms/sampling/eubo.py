"""EUBO: the pair whose better arm is expected to be best.

    (x, y) = argmax over pairs of E max(u_x, u_y),    u_x = <theta, x>,  theta ~ N(theta_hat, H^-1),

which has a closed form: with gap = E u_x - E u_y >= 0, s = |x - y|_{H^-1} and t = gap / s,

    E max(u_x, u_y) = E u_x + s (phi(t) - t Phi(-t)),

phi and Phi the standard normal density and distribution. If answers are never wrong, this pair is the best single question
before a recommendation; with noisy ones it is so up to a constant that the noise decides.

Reference: Astudillo, Lin, Bakshy & Frazier (2023), qEUBO: A Decision-Theoretic Acquisition Function for Preferential Bayesian
Optimization, with q = 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from duelist.actions.finite import ActionSet
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.rules.expected_best import expected_best_lanes
from duelist.policies.parts.confidence import UCBState, beside_offsets, new_pairs, offer_candidates, warn_of_many_pairs
from duelist.policies.parts.normal_belief import PendingWidths
from duelist.policies.parts.same_arm import require_finite


@dataclass(frozen=True, kw_only=True)
class EUBO(PendingWidths):
    """Play the pair whose better arm has the highest expected utility.

    It looks for the arm to recommend and counts only the better of the two. So an arm meets itself only where nothing is left
    to learn, and average regret grows with every round.

    Args:
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import EUBO
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(EUBO(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_weak_regret.mean() < 50)
        True
    """

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The pair with the highest expected best."""
        candidates = offer_candidates(self, actions, state.theta, streams, state.asked)
        arms = require_finite(self, actions)
        warn_of_many_pairs(self, arms)
        belief = beside_offsets(arms, state.bounds)
        first, second = new_pairs(arms.lanes)
        expected_best_lanes(first, second, candidates, belief, state.settings.different)
        return duels_between(arms, first, second), state._replace(asked=state.asked + 1)
