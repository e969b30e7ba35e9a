"""MaxPairUCB: the pair with the largest optimistic sum of utilities.

    (x, y) = argmax over pairs of <theta_hat, x + y> + radius * |x - y|_{M^-1}.

An arm may meet itself: then the width is zero and the pair is pure exploitation. With `width="local"` the norm is that of
H^-1, the curvature of the likelihood at theta_hat, which removes a factor exponential in |theta| from the radius.

Reference: Di, Jin, Wu, Zhao, Farnoud & Gu (2023), Variance-Aware Regret Bounds for Stochastic Contextual Dueling Bandits; the
rule as the FGTS.CDB paper prints it in its experiments.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of
from duelist.core.compiled import kernel
from duelist.core.duels import Duels, duels_between
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.ucb import UCBState, candidates, check_ucb, learn_ucb, report_ucb, start_ucb
from duelist.policies.ucb_kernels import pick_pair, whiten_arms, widths_from

WIDTHS = ("global", "local")


@kernel
def max_pair_lanes(
    first: IntArray,
    second: IntArray,
    columns: FloatArray,
    priority: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    radius: FloatArray,
    different: bool,
) -> None:
    """Fill the best pair of every lane."""
    lanes, dim, n_arms = columns.shape
    whitened, utilities = np.empty((dim, n_arms)), np.empty(n_arms)
    scores = np.empty((n_arms, n_arms))
    for lane in range(lanes):
        utilities_into(utilities, columns[lane], theta[lane])
        whiten_arms(whitened, columns[lane], whitener[lane])
        for i in range(n_arms):
            widths_from(scores[i], whitened, i)
            for j in range(n_arms):
                scores[i, j] = utilities[i] + utilities[j] + radius[lane] * scores[i, j]
            if different:
                scores[i, i] = -math.inf
        first[lane], second[lane] = pick_pair(scores, utilities, priority[lane])


@dataclass(frozen=True, kw_only=True)
class MaxPairUCB:
    """Play the pair with the largest optimistic sum of utilities.

    Args:
        radius: weight of the width; a sequence is one a lane. The paper tries 0.01, 0.1, 1 and 10; the best is near 7, and
            near 2.5 with local widths.
        ridge: lambda of the fit and of M; the paper uses 0.001.
        width: "global" (M, the paper) or "local" (the curvature at the fit).
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.MaxPairUCB(radius=5.0), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 7.0
    ridge: PerLane = 2.0
    width: str = "global"
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, self.ridge, self.same_arm)
        one_of("width", self.width, WIDTHS)

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        return start_ucb(problem, self.radius, self.ridge, self.same_arm)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The pair with the largest optimistic sum."""
        columns, priority = candidates(self, actions, state.theta, streams, state.asked)
        first, second = np.empty(len(columns), dtype=np.int64), np.empty(len(columns), dtype=np.int64)
        max_pair_lanes(first, second, columns, priority, state.theta, state.whitener, state.radius, state.different)
        duels = duels_between(require_finite(self, actions), first, second)
        return duels, state._replace(asked=state.asked + 1)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_ucb(state, actions, duels, outcomes, local=self.width == "local")

    def report(self, state: UCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and the size of the statistics."""
        return report_ucb(state)
