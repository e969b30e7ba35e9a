"""Foresight: play the pair whose information is worth most over the rounds that are left. Its defaults need no tuning.

Every pair of arms that may still be best is priced by what knowing more about it would add to the best arm's utility in all
remaining rounds, less what showing it costs now:

    worth(i, j) = max over m of  optimism * n^(1/3) * gain(m) * (n - m) / m - ( max u - (u_i + u_j) / 2 ),   n = T - t,

gain(m) the expected rise of the best posterior mean after m more plays (`duelist.kernels.rules.foresight`). The pair of the
highest positive worth plays; where none is worth its cost, the leader meets itself. Where two arms must differ, as live, a
round earns the mean of the two best arms: the leader always plays, and the question is against whom. The posterior is a
mixture over the scale of the prior, which is learnt (`duelist.policies.parts.prior_scale`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions, OffsetActions
from duelist.core.checks import whole_number
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import Fields, nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.kernels.rules.foresight import Decision, Rule, foresight_lanes
from duelist.policies.base import Policy, Round
from duelist.policies.parts.confidence import beside_offsets, must_differ, new_pairs, offer_candidates
from duelist.policies.parts.prior_scale import (
    ScaleFits,
    add_expansion,
    base_ridge,
    expect_answers,
    refit,
    set_ridges,
    start_scales,
)
from duelist.policies.parts.same_arm import BOUNDS, check_same_arm, require_finite
from duelist.typing import FloatArray, IntArray

_CLOSE = 0.1  # of the typical distance between two arms: nearer than that an arm counts as the same
_PAIRS_AT_ONCE = 2**20  # distances between arms that are held in memory, per lane
_MOST_PAIRS, _LEAST_SAMPLE = 2**24, 256  # with more pairs of arms a sample is looked at, of no fewer arms than that
_BELIEF = 10.0  # rounds that speak for a gain being worth as much to other arms, before any were seen


def share_seen(now: FloatArray, before: FloatArray, spread: FloatArray) -> FloatArray:
    """(lanes,) the share of the arms (lanes, dim, n_arms) that have one of those before, (lanes, dim, m), close by.

    spread (lanes,) is the mean squared distance of the arms now to their centre. Close, not equal: contexts that hardly vary
    offer the same arms for every purpose. With nothing before, all count as seen, for nothing says that arms change. Of sets so
    large that their pairs would take seconds, arms in equal steps stand for all: at worst the share is off by a few hundredths.

    Example:
        >>> import numpy as np
        >>> before = np.array([[[0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]])
        >>> now = np.array([[[0.0, 4.0, 9.0], [0.0, 0.1, 9.0]]])
        >>> share_seen(now, before, np.array([24.0])).round(2).tolist()
        [0.67]
    """
    if before.shape[2] == 0:
        return np.ones(len(now))
    step = max(1, now.shape[2] * before.shape[2] // _MOST_PAIRS)
    sample = now[:, :, :: min(step, max(1, now.shape[2] // _LEAST_SAMPLE))]
    squares_before = (before**2).sum(axis=1)
    closest = np.empty((len(now), sample.shape[2]))
    # As many arms at a time as fit a few megabytes; all of them at once where the sets are of usual size.
    n_rows = max(1, _PAIRS_AT_ONCE // before.shape[2])
    for begin in range(0, sample.shape[2], n_rows):
        some = sample[:, :, begin : begin + n_rows]
        apart = (some**2).sum(axis=1)[:, :, None] + squares_before[:, None, :] - 2.0 * np.swapaxes(some, 1, 2) @ before
        closest[:, begin : begin + n_rows] = apart.min(axis=2)
    typical = 2.0 * spread[:, None]  # mean squared distance between two arms
    return np.asarray((closest <= _CLOSE**2 * typical).mean(axis=1))


def carry_over(gained: FloatArray) -> FloatArray:
    """(lanes,) how much of a gain on the arms of a round is a gain on those of another, from 0 to 1.

    gained (lanes, 3) sums up what pairs were worth to their own arms, to others, and how many pairs there were. The ratio of
    the first two is drawn towards 1 by ten rounds: after few rounds it may be 0 by chance, and who does not explore learns no
    better.

    Example:
        >>> import numpy as np
        >>> carry_over(np.array([[0.0, 0.0, 0.0], [5.0, 1.0, 90.0]])).tolist()
        [1.0, 0.28]
    """
    own, other, rounds = gained.T
    ratio = np.divide(other, own, out=np.ones_like(own), where=own > 0.0)
    return np.asarray((_BELIEF + rounds * np.minimum(ratio, 1.0)) / (_BELIEF + rounds))


_BATCHES: FloatArray = np.array([4.0**power for power in range(5)])  # 1, 4, 16, 64 and 256 plays ahead
_REACH = 4.0  # an arm this many posterior deviations below the leader is no candidate
# Rounds that are always thought to be left where the number is unknown, beside as many as were asked, or half as many where
# arms must differ: there the leader meets the runner-up whatever is known, and less is to be gained.
_UNKNOWN_HORIZON = 100


@stored("foresight-settings")
class ForesightSettings(NamedTuple):
    """The settings of a run.

    Attributes:
        horizon: rounds to be played; 0 for unknown.
        optimism: (lanes,) factor of the gain, beside the cube root of the rounds left.
        different: whether the two arms must differ.
    """

    horizon: int
    optimism: FloatArray
    different: bool


@stored("foresight-info")
class ForesightInfo(NamedTuple):
    """How the policy is doing.

    Attributes:
        unconverged: (lanes,) fits that did not reach their tolerance.
        explored: (lanes,) rounds in which a pair was worth its cost.
    """

    unconverged: FloatArray
    explored: FloatArray


@stored("foresight-arms")
class OfferedArms(NamedTuple):
    """The arms offered last, and whether arms come back.

    Attributes:
        offered: (lanes, dim, n_arms) the arms offered last; no arms before the first.
        digest: of these arms, as hexadecimal digits.
        settled: (lanes,) the leader where nothing was worth its cost with these arms and nothing was learnt since, else -1.
            The rounds that are left only become fewer, so it need not be worked out again.
        gained: (lanes, 3) over rounds with new arms: what their pairs were worth to their own arms, to those of the round
            before, and how many there were.
    """

    offered: FloatArray
    digest: str
    settled: IntArray
    gained: FloatArray


def _upgrade(version: int, fields: Fields) -> Fields:
    """Version 1 was flat."""
    parts = nest(scales=ScaleFits, arms=OfferedArms, settings=ForesightSettings, info=ForesightInfo)
    return parts(version, add_expansion(version, fields))


@stored("foresight-state", version=2, upgrade=_upgrade)
class ForesightState(NamedTuple):
    """What Foresight has learnt.

    Attributes:
        history: every duel learnt so far.
        scales: the posterior, a mixture over scales of the prior.
        arms: the arms offered last, and whether arms come back.
        asked: pairs asked for so far; it names the next random numbers.
        settings: one number per lane.
        info: how the policy is doing.
    """

    history: History
    scales: ScaleFits
    arms: OfferedArms
    asked: int
    settings: ForesightSettings
    info: ForesightInfo


@dataclass(frozen=True, kw_only=True)
class Foresight(Policy[ForesightState]):
    """Play the pair whose information is worth most over the rounds that are left.

    Args:
        optimism: factor of the gain, beside the cube root of the rounds left. The two stand for the option to stop early,
            which a gain over a fixed number of plays ignores. A sequence is one per lane.
        horizon: rounds to be played; None takes the simulation's, and where it is unknown as many rounds are thought to be
            left as were asked, live half as many, and a hundred more.
        candidates: most arms that are considered in a round.
        same_arm: "allow" lets the leader meet itself; "different" has it meet the runner-up, or a challenger that may be better
            than the runner-up and is worth asking about; "auto" allows it in simulation only.

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
        check_same_arm(self.same_arm, BOUNDS)
        whole_number("candidates", self.candidates, at_least=2)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> ForesightState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt; the prior's scale waits for the first arms."""
        lanes, dim = problem.lanes, problem.dim
        return ForesightState(
            history=History.start(lanes=lanes, dim=dim),
            scales=start_scales(lanes, dim),
            arms=OfferedArms(np.zeros((lanes, dim, 0)), "", np.full(lanes, -1), np.zeros((lanes, 3))),
            asked=0,
            settings=ForesightSettings(
                horizon=self.horizon or problem.horizon or 0,
                optimism=per_lane("optimism", self.optimism, lanes),
                different=must_differ(self.same_arm, problem),
            ),
            info=ForesightInfo(np.zeros(lanes), np.zeros(lanes)),
        )

    def choose(self, state: ForesightState, actions: ActionSet, streams: Streams) -> tuple[Duels, ForesightState]:
        """The pair of the highest worth."""
        return self.choose_with_pending(state, actions, streams, ())

    def choose_with_pending(
        self, state: ForesightState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, ForesightState]:
        """The pair of the highest worth beside what the pending duels will tell."""
        finite, settings = require_finite(self, actions), state.settings
        candidates = offer_candidates(self, actions, state.scales.theta, streams, state.asked)
        scales = state.scales
        if not state.asked:
            scales = set_ridges(scales, finite)
            if state.history.rounds:  # votes that came before the first arms
                scales, _ = refit(scales, state.history, np.ones((finite.lanes, finite.dim)), duels=state.history.rounds)
        remaining = self._rounds_left(state)
        digest = (finite.arms if isinstance(finite, OffsetActions) else finite).digest.hex()
        same_arms = digest == state.arms.digest
        # With other arms or offsets, or with a horizon that moves away, what was not worth its cost may be now.
        keep = same_arms and finite.offsets is None and settings.horizon > 0 and not settings.different
        settled = state.arms.settled.copy() if keep else np.full(finite.lanes, -1)
        factor = settings.optimism * float(remaining) ** (1 / 3)
        before = state.arms.offered[:, :, :0]
        if not same_arms:
            # A question is about a pair of arms. Only one that comes back can be closed early; else it serves other arms too.
            back = share_seen(finite.columns, state.arms.offered, base_ridge(finite))
            carried = carry_over(state.arms.gained)
            factor, before = carried + back**2 * (factor - carried), state.arms.offered
        known = settled.copy()  # the decision writes into its own
        decision = Decision(*new_pairs(finite.lanes), settled, np.empty((finite.lanes, 3)))
        rule = Rule(
            remaining=float(remaining),
            optimism=factor,
            reach=_REACH,
            most=self.candidates,
            batches=_BATCHES[remaining > _BATCHES],
            different=settings.different,
        )
        if finite.offsets is not None:  # what the arms of before cost is not known; here they count for nothing
            before = np.pad(before, [(0, 0), (0, 1), (0, 0)])
        before = np.ascontiguousarray(before)
        foresight_lanes(decision, candidates, before, beside_offsets(finite, scales.mixture), rule)
        state = state._replace(
            asked=state.asked + 1,
            scales=scales,
            arms=OfferedArms(
                finite.columns,
                digest,
                settled if finite.offsets is None else np.full(finite.lanes, -1),
                state.arms.gained + decision.gained,
            ),
            info=state.info._replace(explored=state.info.explored + (settled < 0)),
        )
        if pending:
            # A decision of its own: the state must not depend on who has answered by now.
            expected = beside_offsets(finite, expect_answers(scales.mixture, pending))
            decision = Decision(*new_pairs(finite.lanes), known, np.empty((finite.lanes, 3)))
            foresight_lanes(decision, candidates, before, expected, rule)
        return duels_between(finite, decision.first, decision.second), state

    def _rounds_left(self, state: ForesightState) -> int:
        """Of the horizon; where it is unknown, a guess that grows with the rounds asked."""
        settings, asked = state.settings, state.asked
        if settings.horizon:
            return max(settings.horizon - asked, 0)
        return _UNKNOWN_HORIZON + (asked // 2 if settings.different else asked)

    def learn(self, state: ForesightState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> ForesightState:
        """Append the outcomes and fit again the scales that count, now and then all of them."""
        history, contrast = state.history.append(actions, duels, outcomes), duels.contrast
        if not state.asked:
            return state._replace(history=history)  # the prior's scale, and every fit, waits for the first arms
        scales, unconverged = refit(state.scales, history, contrast, duels=1)
        learnt = (contrast != 0.0).any(axis=1)
        return state._replace(
            history=history,
            scales=scales,
            arms=state.arms._replace(settled=np.where(learnt, -1, state.arms.settled)),
            info=state.info._replace(unconverged=state.info.unconverged + unconverged),
        )

    def learn_many(self, state: ForesightState, rounds: Iterable[Round]) -> ForesightState:
        """Append all outcomes and fit once."""
        history, learnt = state.history, np.zeros(len(state.settings.optimism), dtype=np.bool_)
        for actions, duels, outcomes in rounds:
            history, learnt = history.append(actions, duels, outcomes), learnt | duels.contrast.any(axis=1)
        if not state.asked:
            return state._replace(history=history)
        # Where more than one duel came, a contrast only says whether a lane learnt anything.
        says = np.repeat(learnt[:, None].astype(float), history.dim, axis=1)
        scales, unconverged = refit(state.scales, history, says, duels=max(history.rounds - state.history.rounds, 2))
        return state._replace(
            history=history,
            scales=scales,
            arms=state.arms._replace(settled=np.where(learnt, -1, state.arms.settled)),
            info=state.info._replace(unconverged=state.info.unconverged + unconverged),
        )

    def keeps_sets(self) -> bool:
        """A fit reads contrasts; but `choose` follows the arms, to see whether they come back."""
        return False

    def weighs_offsets(self) -> bool:
        """Pairs are priced by utility and offset."""
        return True

    def recommend(self, state: ForesightState, actions: FiniteActions) -> IntArray:
        """(lanes,) the best arm by the posterior mean."""
        mean = np.einsum("lr,lrd->ld", state.scales.weights, state.scales.theta)
        return actions.best(mean[:, None]).row[:, 0]

    def report(self, state: ForesightState) -> dict[str, FloatArray]:
        """Rounds spent exploring, the scale of the prior (a geometric mean), and how the fits went."""
        logs = np.log(np.where(state.scales.ridges > 0.0, state.scales.ridges, 1.0))
        return {
            "unconverged_fits": state.info.unconverged,
            "distinct_contrasts": state.history.live_statistics.n_rows.astype(np.float64),
            "explored": state.info.explored,
            "ridge": np.exp((state.scales.weights * logs).sum(axis=1)),
        }
