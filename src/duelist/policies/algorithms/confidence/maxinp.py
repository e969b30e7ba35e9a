"""MaxInP: the most informative pair of the arms that may still be best.

    keep    C = { i : <theta_hat, x_i - x_j> + radius * |x_i - x_j|_{M^-1} >= 0 for every j }
    play    the pair of C with the largest |x_i - x_j|_{M^-1}.

**On a ball.** A point x of a convex set is promising, <theta_hat, x - y> + radius |x - y|_{M^-1} >= 0 for every y of the set,
exactly if it is best under some theta of the confidence ellipsoid

    E = { theta : |theta - theta_hat|_M <= radius }.

(The left side is convex in y and 0 at y = x, so x is promising if and only if its minimum over the set is there: theta_hat + v
is normal to the set at x for some |v|_M <= radius.) On a ball of radius R there are two cases.

1. 0 is in E. Every point is promising, and the widest pair is antipodal, +-R v with v the eigenvector of M's smallest
   eigenvalue. This is the exact maximum.
2. 0 is not in E. Promising are the points R theta / |theta| with theta in E, which is the part of the sphere in the cone

       K = { x : <theta_hat, x>_M >= kappa |x|_M },   kappa^2 = |theta_hat|_M^2 - radius^2.

   The squared width q(x - y) = |x - y|^2_{M^-1} is maximised by ascent: replace x and y by the points of the cap that maximise
   the linear parts <g + c x, .> and <-g + c y, .> of q at the current pair, g = M^-1 (x - y). Since q + (c/2)(|x|^2 + |y|^2) is
   convex and |x| = |y| = R, no step makes the pair narrower. The maximum of a linear function over the cap is the projection
   on K, scaled to length R, which takes one root of a decreasing function in the eigenbasis of kappa^2 M - M theta theta^T M.
   The ascent starts at the ends of every axis of E and the widest end is played.

The objective is a convex function and is maximised, so case 2 ends at a pair that no small change improves, not at a proven
maximum. In the plane it agrees with a fine grid; see the tests.

Reference: Saha (2021), Optimal Algorithms for Stochastic Contextual Preference Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.kernels.rules.pairs import maxinp_lanes, widest_in_cap
from duelist.policies.parts.confidence import (
    UCBPolicy,
    UCBState,
)
from duelist.typing import FloatArray


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
        return self.choose_by(maxinp_lanes, state, actions, streams)

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


def widest_pair(theta: FloatArray, gram: FloatArray, confidence: float, radius: float) -> FloatArray:
    """The most informative promising pair of one lane, (2, dim), the one of higher estimate first.

    Args:
        theta: (dim,) the estimate.
        gram: (dim, dim) M.
        confidence: radius of the confidence ellipsoid.
        radius: of the ball of arms.

    Example:
        >>> widest_pair(np.zeros(2), np.diag([4.0, 1.0]), confidence=1.0, radius=1.0)
        array([[ 0.,  1.],
               [-0., -1.]])
    """
    sizes, axes = np.linalg.eigh(gram)
    tilt = gram @ theta
    beyond = float(theta @ tilt) - confidence**2
    if beyond <= 0.0:
        pair = radius * np.stack([axes[:, 0], -axes[:, 0]])
    else:
        bends, cone = np.linalg.eigh(beyond * gram - np.outer(tilt, tilt))
        cone[:, 0] *= np.sign(cone[:, 0] @ tilt)
        inverse: FloatArray = np.asarray(np.linalg.inv(gram), dtype=np.float64)
        work = np.empty((4, len(theta)))
        pair, widest = np.empty((2, len(theta))), -1.0
        for k in range(len(theta)):
            reach = confidence / math.sqrt(sizes[k]) * axes[:, k]
            start = np.stack([theta + reach, theta - reach])
            start *= radius / np.linalg.norm(start, axis=1, keepdims=True)
            width = widest_in_cap(start, inverse, np.ascontiguousarray(cone), bends, radius, work)
            if width > widest:
                pair, widest = start, width
    return pair if pair[0] @ theta >= pair[1] @ theta else pair[::-1].copy()
