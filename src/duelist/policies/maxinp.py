"""MaxInP: the most informative pair of the arms that may still be best.

    keep    C = { i : <theta_hat, x_i - x_j> + radius * |x_i - x_j|_{M^-1} >= 0 for every j }
    play    the pair of C with the largest |x_i - x_j|_{M^-1}.

Reference: Saha (2021), Optimal Algorithms for Stochastic Contextual Preference Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.actions import ActionSet
from duelist.core.ball_actions import BallActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.maxinp_ball import widest_pair
from duelist.policies.ucb import UCBState, candidates, check_ucb, learn_ucb, report_ucb, start_ucb
from duelist.policies.ucb_kernels import TIE, challenger, pick_pair, whiten_arms, widths_from


@kernel
def maxinp_lanes(
    first: IntArray,
    second: IntArray,
    columns: FloatArray,
    priority: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    radius: FloatArray,
    different: bool,
) -> None:
    """Fill the most informative promising pair of every lane."""
    lanes, dim, n_arms = columns.shape
    whitened, utilities = np.empty((dim, n_arms)), np.empty(n_arms)
    widths, kept = np.empty((n_arms, n_arms)), np.empty(n_arms, dtype=np.bool_)
    for lane in range(lanes):
        utilities_into(utilities, columns[lane], theta[lane])
        whiten_arms(whitened, columns[lane], whitener[lane])
        n_kept = 0
        for i in range(n_arms):
            widths_from(widths[i], whitened, i)
            kept[i] = True
            for j in range(n_arms):
                # The arm with the highest estimate passes with equality against itself; the slack is for rounding.
                if utilities[i] - utilities[j] + radius[lane] * widths[i, j] < -TIE * (1.0 + abs(utilities[j])):
                    kept[i] = False
                    break
            n_kept += kept[i]
        if n_kept == 1 and different:
            # One promising arm is left and it must meet another: the strongest optimistic challenger.
            for i in range(n_arms):
                if kept[i]:
                    first[lane] = i
            second[lane] = challenger(widths[0], first[lane], utilities, whitened, radius[lane], priority[lane], different)
            continue
        for i in range(n_arms):
            for j in range(n_arms):
                if not (kept[i] and kept[j]) or (different and i == j):
                    widths[i, j] = -math.inf
        first[lane], second[lane] = pick_pair(widths, utilities, priority[lane])


@dataclass(frozen=True, kw_only=True)
class MaxInP:
    """Play the pair with the largest width among the arms that may still be best. Plays finite sets and balls.

    Args:
        radius: confidence radius; a sequence is one a lane. The paper tries 0.01, 0.1, 1 and 10; the best is near 5.
        ridge: lambda of the fit and of M, in place of a warm-up; the paper uses 0.001.
        same_arm: when one promising arm is left: "allow" plays it against itself, "different" against its strongest
            challenger; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.MaxInP(radius=3.0), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 5.0
    ridge: PerLane = 2.0
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, self.ridge, self.same_arm)

    def start(self, problem: Problem, streams: Streams) -> UCBState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: every arm is promising."""
        return start_ucb(problem, self.radius, self.ridge, self.same_arm)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The most informative pair of promising arms."""
        if type(actions) is BallActions:
            return self._choose_in_ball(state, actions), state._replace(asked=state.asked + 1)
        columns, priority = candidates(self, actions, state.theta, streams, state.asked)
        first, second = np.empty(len(columns), dtype=np.int64), np.empty(len(columns), dtype=np.int64)
        maxinp_lanes(first, second, columns, priority, state.theta, state.whitener, state.radius, state.different)
        duels = duels_between(require_finite(self, actions), first, second)
        return duels, state._replace(asked=state.asked + 1)

    def _choose_in_ball(self, state: UCBState, ball: BallActions) -> Duels:
        if (state.radius == 0.0).any():
            raise InvalidInputError(
                "MaxInP on a ball needs a confidence radius above 0; got 0, with which one point is promising and there is no "
                "pair. Use radius=5, or FGTS."
            )
        lanes = range(ball.lanes)
        pairs = [widest_pair(state.theta[n], state.gram[n], float(state.radius[n]), ball.radius) for n in lanes]
        nowhere = np.full(ball.lanes, -1, dtype=np.int64)
        return Duels(nowhere, nowhere.copy(), np.array(pairs))

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_ucb(state, actions, duels, outcomes, local=False)

    def report(self, state: UCBState) -> dict[str, FloatArray]:
        """Fits that did not converge, and the size of the statistics."""
        return report_ucb(state)
