"""Foresight: play the pair whose information is worth most over the rounds that are left. No knobs.

Every pair of arms that may still be best is priced by what knowing more about it would add to the best arm's utility in all
remaining rounds, less what showing it costs now:

    worth(i, j) = max over m of  optimism * gain(m) * (T - t - m) / m - ( max u - (u_i + u_j) / 2 ),

gain(m) the expected rise of the best posterior mean after m more plays (`duelist.policies.foresight_kernels`). The pair of the
highest positive worth plays; where none is worth its cost, the leader meets itself. The prior's scale is learnt
(`duelist.policies.prior_scale`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, finite_number, whole_number
from duelist.core.duels import Duels, duels_between
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.foresight_kernels import foresight_lanes
from duelist.policies.prior_scale import FACTORS, base_ridge, evidence_lanes
from duelist.policies.ucb import UCBState, candidates, check_ucb, learn_ucb, report_ucb, start_ucb

_BATCHES: FloatArray = np.array([4.0**power for power in range(5)])  # 1, 4, 16, 64 and 256 plays ahead
_REACH = 3.0  # an arm this many posterior deviations below the leader is no candidate
_GROWTH = 20  # the prior's scale is learnt again when the duels have grown by a twentieth
_UNKNOWN_HORIZON = 100  # rounds that are always thought to be left where nobody knows, beside as many as were asked


class ForesightState(NamedTuple):
    """What Foresight has learnt.

    Attributes:
        fit: estimate and curvature, as the confidence-bound policies keep them; its radius is the optimism.
        base: (lanes,) ridge that the scale is learnt around; 0 before the first action set.
        scaled_at: duels learnt when the scale was last learnt.
        explored: (lanes,) rounds in which a pair was worth its cost.
        horizon: rounds to be played; 0 for unknown.
    """

    fit: UCBState
    base: FloatArray
    scaled_at: int
    explored: FloatArray
    horizon: int


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """Play the pair whose information is worth most over the rounds that are left.

    Args:
        optimism: factor of the gain. 1 forgets that one may stop early and gives up too soon; a sequence is one a lane.
        horizon: rounds to be played; None takes the simulation's, and where nobody knows it as many rounds are thought to be
            left as were asked, and a hundred more.
        candidates: most arms that are considered in a round.
        same_arm: "allow" lets the leader meet itself, "different" has it meet its strongest challenger; "auto" allows it in
            simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.Foresight(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 100)
        True
    """

    optimism: PerLane = 8.0
    horizon: int | None = None
    candidates: int = 10
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(0.0, 1.0, self.same_arm)
        for value in np.atleast_1d(self.optimism):
            finite_number("optimism", float(value), above=0.0)
        whole_number("candidates", self.candidates, at_least=2)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> ForesightState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt; the prior's scale waits for the first arms."""
        return ForesightState(
            fit=start_ucb(problem, self.optimism, 1.0, self.same_arm),
            base=np.zeros(problem.lanes),
            scaled_at=0,
            explored=np.zeros(problem.lanes),
            horizon=self.horizon or problem.horizon or 0,
        )

    def choose(self, state: ForesightState, actions: ActionSet, streams: Streams) -> tuple[Duels, ForesightState]:
        """The pair of the highest worth."""
        finite = require_finite(self, actions)
        if state.fit.asked == 0:
            base = base_ridge(finite)
            whitener = np.eye(finite.dim) / np.sqrt(base)[:, None, None]
            state = state._replace(base=base, fit=state.fit._replace(ridge=base, whitener=whitener))
        fit = state.fit
        columns, priority = candidates(self, actions, fit.theta, streams, fit.asked)
        first, second = np.empty(finite.lanes, dtype=np.int64), np.empty(finite.lanes, dtype=np.int64)
        explored = state.explored.copy()
        remaining = state.horizon - fit.asked if state.horizon else fit.asked + _UNKNOWN_HORIZON
        foresight_lanes(
            first,
            second,
            explored,
            columns,
            priority,
            fit.theta,
            fit.whitener,
            float(max(remaining, 0)),
            fit.radius,
            _REACH,
            self.candidates,
            _BATCHES,
            fit.different,
        )
        asked = fit._replace(asked=fit.asked + 1)
        return duels_between(finite, first, second), state._replace(fit=asked, explored=explored)

    def learn(self, state: ForesightState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> ForesightState:
        """Append the outcomes, fit again, and now and then learn the prior's scale again."""
        fit = learn_ucb(state.fit, actions, duels, outcomes, local=True)
        rounds = fit.history.rounds
        if rounds <= state.scaled_at + state.scaled_at // _GROWTH:
            return state._replace(fit=fit)
        statistics = fit.history.statistics
        theta, whitener, ridge = fit.theta.copy(), fit.whitener.copy(), fit.ridge.copy()
        evidence_lanes(
            theta,
            whitener,
            ridge,
            state.base,
            FACTORS,
            statistics.contrasts,
            statistics.totals,
            statistics.losses,
            statistics.n_rows,
        )
        return state._replace(fit=fit._replace(theta=theta, whitener=whitener, ridge=ridge), scaled_at=rounds)

    def report(self, state: ForesightState) -> dict[str, FloatArray]:
        """Rounds spent exploring, the prior's scale, and what the fits report."""
        return {**report_ucb(state.fit), "explored": state.explored, "ridge": state.fit.ridge}
