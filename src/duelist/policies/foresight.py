"""Foresight: play the pair whose information is worth most over the rounds that are left. No knobs.

Every pair of arms that may still be best is priced by what knowing more about it would add to the best arm's utility in all
remaining rounds, less what showing it costs now:

    worth(i, j) = max over m of  optimism * n^(1/3) * gain(m) * (n - m) / m - ( max u - (u_i + u_j) / 2 ),   n = T - t,

gain(m) the expected rise of the best posterior mean after m more plays (`duelist.policies.foresight_kernels`). The pair of the
highest positive worth plays; where none is worth its cost, the leader meets itself. The posterior is a mixture over the scale
of the prior, which is learnt (`duelist.policies.prior_scale`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of, whole_number
from duelist.core.duels import Duels, duels_between
from duelist.core.history import History
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.foresight_kernels import foresight_lanes
from duelist.policies.prior_scale import FACTORS, LOG_PRIOR, base_ridge, refit_scales, set_weights
from duelist.policies.returning_arms import carried_over, share_seen
from duelist.policies.ucb import SAME_ARM, candidates

_BATCHES: FloatArray = np.array([4.0**power for power in range(5)])  # 1, 4, 16, 64 and 256 plays ahead
_REACH = 4.0  # an arm this many posterior deviations below the leader is no candidate
_GROWTH = 20  # all scales are fitted again when the duels have grown by a twentieth
_UNKNOWN_HORIZON = 100  # rounds that are always thought to be left where nobody knows, beside as many as were asked


class ForesightState(NamedTuple):
    """What Foresight has learnt.

    Attributes:
        history: every duel learnt so far.
        ridges: (lanes, ridges) scales of the prior in the mixture; 0 before the first action set.
        theta: (lanes, ridges, dim) the fit under each.
        whitener: (lanes, ridges, dim, dim) inverse Cholesky factor of the curvature at each fit.
        evidence: (lanes, ridges) log evidence of each.
        weights: (lanes, ridges) weight of each in the posterior; 0 for those that do not count at the moment.
        unconverged: (lanes,) fits that did not reach their tolerance.
        explored: (lanes,) rounds in which a pair was worth its cost.
        settled: (lanes,) the leader where nothing was worth its cost with the arms of `offered` and nothing was learnt since,
            else -1. The rounds that are left only become fewer, so it need not be worked out again.
        offered: (lanes, dim, n_arms) the arms offered last; no arms before the first.
        digest: of these arms, as hexadecimal digits.
        gained: (lanes, 3) over rounds with new arms: what their pairs were worth to their own arms, to those of the round
            before, and how many there were.
        fitted_at: duels learnt when all scales were last fitted.
        asked: pairs asked for so far; it names the next random numbers.
        horizon: rounds to be played; 0 for unknown.
        optimism: (lanes,) factor of the gain, beside the cube root of the rounds left.
        different: whether the two arms must differ.
    """

    history: History
    ridges: FloatArray
    theta: FloatArray
    whitener: FloatArray
    evidence: FloatArray
    weights: FloatArray
    unconverged: FloatArray
    explored: FloatArray
    settled: IntArray
    offered: FloatArray
    digest: str
    gained: FloatArray
    fitted_at: int
    asked: int
    horizon: int
    optimism: FloatArray
    different: bool


@dataclass(frozen=True, kw_only=True)
class Foresight:
    """Play the pair whose information is worth most over the rounds that are left.

    Args:
        optimism: factor of the gain, beside the cube root of the rounds left. The two stand for the option to stop early,
            which a gain over a fixed number of plays ignores. A sequence is one a lane.
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

    optimism: PerLane = 1.75
    horizon: int | None = None
    candidates: int = 12
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("optimism", self.optimism, above=0.0)
        one_of("same_arm", self.same_arm, SAME_ARM)
        whole_number("candidates", self.candidates, at_least=2)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> ForesightState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt; the prior's scale waits for the first arms."""
        lanes, dim, n_ridges = problem.lanes, problem.dim, len(FACTORS)
        return ForesightState(
            history=History.start(lanes=lanes, dim=dim),
            ridges=np.zeros((lanes, n_ridges)),
            theta=np.zeros((lanes, n_ridges, dim)),
            whitener=np.zeros((lanes, n_ridges, dim, dim)),
            evidence=np.tile(LOG_PRIOR, (lanes, 1)),
            weights=np.zeros((lanes, n_ridges)),
            unconverged=np.zeros(lanes),
            explored=np.zeros(lanes),
            settled=np.full(lanes, -1),
            offered=np.zeros((lanes, dim, 0)),
            digest="",
            gained=np.zeros((lanes, 3)),
            fitted_at=0,
            asked=0,
            horizon=self.horizon or problem.horizon or 0,
            optimism=per_lane("optimism", self.optimism, lanes),
            different=self.same_arm == "different" or (self.same_arm == "auto" and problem.live),
        )

    def choose(self, state: ForesightState, actions: ActionSet, streams: Streams) -> tuple[Duels, ForesightState]:
        """The pair of the highest worth."""
        finite = require_finite(self, actions)
        columns, priority = candidates(self, actions, state.theta, streams, state.asked)
        if state.asked == 0:
            ridges = base_ridge(finite)[:, None] * FACTORS
            whitener = np.eye(finite.dim) / np.sqrt(ridges)[:, :, None, None]
            weights = np.empty_like(ridges)
            for lane in range(finite.lanes):
                set_weights(weights[lane], state.evidence[lane])
            state = state._replace(ridges=ridges, whitener=whitener, weights=weights)
        first, second = np.empty(finite.lanes, dtype=np.int64), np.empty(finite.lanes, dtype=np.int64)
        remaining = max(state.horizon - state.asked, 0) if state.horizon else state.asked + _UNKNOWN_HORIZON
        digest = finite.digest.hex()
        same_arms = digest == state.digest
        # With other arms, or with a horizon that moves away, what was not worth its cost may be now.
        keep = same_arms and state.horizon > 0 and not state.different
        settled = state.settled.copy() if keep else np.full(finite.lanes, -1)
        factor = state.optimism * float(remaining) ** (1 / 3)
        before = state.offered[:, :, :0]
        if not same_arms:
            # A question is about a pair of arms. Only one that comes back can be closed early; else it serves other arms too.
            back, carried = share_seen(columns, state.offered, base_ridge(finite)), carried_over(state.gained)
            factor, before = carried + back**2 * (factor - carried), state.offered
        gained = np.empty((finite.lanes, 3))
        foresight_lanes(
            first,
            second,
            settled,
            columns,
            priority,
            np.ascontiguousarray(before),
            gained,
            state.theta,
            state.whitener,
            state.weights,
            float(remaining),
            factor,
            _REACH,
            self.candidates,
            _BATCHES[remaining > _BATCHES],
            state.different,
        )
        state = state._replace(
            asked=state.asked + 1,
            settled=settled,
            offered=columns,
            digest=digest,
            gained=state.gained + gained,
            explored=state.explored + (settled < 0),
        )
        return duels_between(finite, first, second), state

    def learn(self, state: ForesightState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> ForesightState:
        """Append the outcomes and fit again the scales that count, now and then all of them."""
        history = state.history.append(actions, duels, outcomes)
        statistics = history.statistics
        everything = history.rounds > state.fitted_at + state.fitted_at // _GROWTH
        theta, whitener = state.theta.copy(), state.whitener.copy()
        evidence, weights, unconverged = state.evidence.copy(), state.weights.copy(), state.unconverged.copy()
        contrast = duels.contrast
        refit_scales(
            theta,
            whitener,
            evidence,
            weights,
            unconverged,
            state.ridges,
            LOG_PRIOR,
            contrast,
            statistics.contrasts,
            statistics.totals,
            statistics.losses,
            statistics.n_rows,
            everything,
        )
        learnt = (contrast != 0.0).any(axis=1)
        return state._replace(
            history=history,
            theta=theta,
            whitener=whitener,
            evidence=evidence,
            weights=weights,
            unconverged=unconverged,
            settled=np.where(learnt, -1, state.settled),
            fitted_at=history.rounds if everything else state.fitted_at,
        )

    def report(self, state: ForesightState) -> dict[str, FloatArray]:
        """Rounds spent exploring, the scale of the prior (a geometric mean), and how the fits went."""
        logs = np.log(np.where(state.ridges > 0.0, state.ridges, 1.0))
        return {
            "unconverged_fits": state.unconverged,
            "distinct_contrasts": state.history.statistics.n_rows.astype(np.float64),
            "explored": state.explored,
            "ridge": np.exp((state.weights * logs).sum(axis=1)),
        }
