"""MaxInP: the most informative pair of the arms that may still be best.

    keep    C = { i : <theta_hat, x_i - x_j> + radius * |x_i - x_j|_{M^-1} >= 0 for every j }
    play    the pair of C with the largest |x_i - x_j|_{M^-1}.

Reference: Saha (2021), Optimal Algorithms for Stochastic Contextual Preference Bandits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.pairs import maxinp_lanes
from duelist.policies.parts.ball_pairs import widest_pair
from duelist.policies.parts.confidence import (
    UCBPolicy,
    UCBState,
    beside_offsets,
    new_pairs,
    offer_candidates,
    random_pairs,
    warm_up_rounds,
    warn_of_many_pairs,
)
from duelist.policies.parts.same_arm import require_finite


@dataclass(frozen=True, kw_only=True)
class MaxInP(UCBPolicy):
    """Play the pair with the largest width among the arms that may still be best. Plays finite sets and balls.

    Args:
        radius: confidence radius; a sequence is one per lane. The paper tries 0.01, 0.1, 1 and 10; the best is near 5.
        ridge: lambda, of M, in place of a warm-up; the paper uses 0.001.
        same_arm: when one promising arm is left: "allow" plays it against itself, "different" against its strongest
            challenger; "auto" allows it in simulation and not live.
        fit_ridge: lambda_fit, of the fit; None for that of M. 1e-6 is next to none and keeps the fit of separable duels finite.
        warmup: rounds of random pairs first, on finite sets; "theory" for d K.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.MaxInP(radius=3.0), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 5.0

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The most informative pair of promising arms."""
        if type(actions) is BallActions:
            return self._choose_in_ball(state, actions), state._replace(asked=state.asked + 1)
        candidates = offer_candidates(self, actions, state.theta, streams, state.asked)
        finite = require_finite(self, actions)
        if state.asked < warm_up_rounds(self.warmup, finite):
            first, second = random_pairs(candidates)
        else:
            warn_of_many_pairs(self, finite)
            first, second = new_pairs(actions.lanes)
            maxinp_lanes(first, second, candidates, beside_offsets(finite, state.bounds), state.settings.different)
        return duels_between(finite, first, second), state._replace(asked=state.asked + 1)

    def _choose_in_ball(self, state: UCBState, ball: BallActions) -> Duels:
        if self.warmup != 0:
            raise InvalidInputError(
                f"MaxInP warms up with random pairs of a finite set; got a ball and warmup={self.warmup!r}. Use warmup=0: the "
                f"ridge does what the warm-up is for."
            )
        if (state.settings.radius == 0.0).any():
            raise InvalidInputError(
                "MaxInP on a ball needs a confidence radius above 0; got 0, with which one point is promising and there is no "
                "pair. Use radius=5, or FGTS."
            )
        radii = state.settings.radius
        pairs = [widest_pair(state.theta[n], state.gram[n], float(radii[n]), ball.radius) for n in range(ball.lanes)]
        nowhere = np.full(ball.lanes, -1, dtype=np.int64)
        return Duels(nowhere, nowhere.copy(), np.array(pairs))
