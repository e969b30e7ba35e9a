"""The history: every duel that was learnt, and exact compact statistics of them.

The likelihood needs only how often each distinct contrast was shown and lost, and the Feel-Good term only how often each
distinct action set was offered and the sum of the adversaries' features. Where arms repeat, those statistics stop growing
while rounds go on; where they do not, there is a row a round. Nobody else needs to know which of the two it is. Of balls
the Feel-Good term needs one number whatever their count: the support functions R_i |theta| add up to (sum of R_i) |theta|.
Other continuous sets are counted by `duelist.core.support`.

A tie, outcome 0, is half a win each way: one showing and half a loss. Davidson's model of ties has

    P(first) : P(second) : P(tie) = e^{u/2} : e^{-u/2} : nu,

and where ties are rare, nu towards 0, the likelihood of one is the square root of s(u) s(-u) but for a constant: half the
log-likelihood of a win and half that of a loss. For any nu the same counts are sufficient.

A history may forget: with a discount g, the duel of round i counts g^(t - i) after round t. Every statistic is a sum over
rounds, so multiplying all of them by g before each new duel keeps them exact for those weights, and no less compact.

A history may be told to keep at most so many distinct action sets. From there on it keeps a sample of them (`SetSample`), and
the Feel-Good term becomes an estimate; the likelihood stays exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.ball_actions import BallActions
from duelist.core.checks import FloatArray, IntArray, finite_number, whole_number
from duelist.core.duels import Duels, check_outcomes
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.history_kernels import append_round, fade, rehash
from duelist.core.set_sample import SetSample
from duelist.core.support import Support, SupportSums

# Distinct action sets that are remembered as "the same as before". A set that returns after more than this many others
# is stored as if it were new: the statistics stay exact, they are only less compact.
_REMEMBERED_SETS = 4096

_BALL = -1  # the slot of a round whose action set was a ball: nothing is stored of it but its radius
_CONTINUOUS = -2  # the slot of the first other continuous set; the next ones count down from it

_COLUMNS = ("first", "second", "outcomes", "rows", "slots", "radii", "weights", "layers")


class Newest(NamedTuple):
    """The newest duel of every lane: (lanes,) row of its contrast, and (lanes,) how far the contrast's first arm lost."""

    row: IntArray
    lost: FloatArray


class Statistics(NamedTuple):
    """Sufficient statistics of a history. Arrays are views and must not be written to.

    A history in layers keeps separate statistics for every layer: the leading axis of contrasts, totals, losses and n_rows is
    then lanes * layers, layers of a lane side by side.

    Attributes:
        contrasts: (lanes, dim, capacity) distinct contrasts, one a column; columns from `n_rows` on are unused.
        totals: (lanes, capacity) how often each contrast was shown.
        losses: (lanes, capacity) how often its first arm lost; half for a tie.
        n_rows: (lanes,) distinct contrasts in use.
        sets: (lanes, capacity, dim, n_arms) distinct action sets, arms last; those from `len(repeats)` on are unused.
        repeats: (n_sets,) how often each set was offered, or how many rounds it stands for in a sample; empty if the history
            does not keep sets.
        adversary: (lanes, 2, dim) sum over rounds of phi(a^{3-j}), the arm that draw j did not choose, for j = 1, 2. With a
            sample of sets, less what its control variate knows exactly, so that the same formula gives the estimate.
        ball_reach: sum of the radii of the balls that were offered; 0 if the history does not keep sets.
        support: sum of the support functions of other continuous sets; None if there were none, or they are not kept.
        newest: which contrast the newest duel was of, and whether its first arm lost; None without duels, or in layers.
    """

    contrasts: FloatArray
    totals: FloatArray
    losses: FloatArray
    n_rows: IntArray
    sets: FloatArray
    repeats: FloatArray
    adversary: FloatArray
    ball_reach: float = 0.0
    support: Support | None = None
    newest: Newest | None = None


class History:
    """An append-only history of duels in all lanes. It behaves as a value.

    `append` returns the longer history and leaves this one as it was. The newest history of a line owns the arrays, so
    appending to it costs the same however long it is; an older one that is used again is rebuilt from the log first. (Where
    action sets are sampled, the older one gets the part of the newer one's sample that it had seen.)

    Example:
        >>> arms = FiniteActions([[1.0, 0.0], [0.0, 1.0]])
        >>> duels = Duels(np.array([0]), np.array([1]), arms.features[:, :2])
        >>> history = History.start(lanes=1, dim=2).append(arms, duels, np.array([1])).append(arms, duels, np.array([-1]))
        >>> history.rounds, int(history.statistics.n_rows[0]), history.statistics.totals[0, 0], history.statistics.losses[0, 0]
        (2, 1, np.float64(2.0), np.float64(1.0))
    """

    __slots__ = ("_log", "rounds")

    def __init__(self, log: _Log, rounds: int) -> None:
        self._log = log
        self.rounds = rounds

    @classmethod
    def start(
        cls,
        *,
        lanes: int,
        dim: int,
        keep_sets: bool = False,
        layers: int = 1,
        discount: float = 1.0,
        max_sets: int | None = None,
    ) -> History:
        """An empty history.

        Args:
            lanes: number of independent runs.
            dim: length of a feature vector.
            keep_sets: store every distinct action set, which the Feel-Good term needs.
            layers: separate statistics a lane; every duel counts in one of them.
            discount: by which all earlier duels are multiplied at every new one; 1 never forgets.
            max_sets: distinct action sets to keep, at least 8; with more, a sample of a quarter of that. None keeps all.
        """
        finite_number("discount", discount, above=0.0, at_most=1.0)
        if max_sets is not None:
            whole_number("max_sets", max_sets, at_least=8)
            if discount < 1.0:
                raise InvalidInputError(
                    "a history that forgets keeps every action set; got max_sets as well. Drop one of them."
                )
        return cls(_Log(lanes, dim, keep_sets, layers, discount, max_sets), 0)

    @property
    def lanes(self) -> int:
        """Number of independent runs."""
        return self._log.lanes

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._log.dim

    @property
    def effective_rounds(self) -> float:
        """What the duels add up to after discounting: the number of rounds, if nothing is forgotten."""
        return self._current().effective_rounds

    @property
    def statistics(self) -> Statistics:
        """The sufficient statistics of exactly these rounds."""
        return self._current().statistics()

    @property
    def first(self) -> npt.NDArray[np.int32]:
        """(rounds, lanes) row of the first candidate of every duel."""
        return self._log.first[: self.rounds]

    @property
    def second(self) -> npt.NDArray[np.int32]:
        """(rounds, lanes) row of the second candidate of every duel."""
        return self._log.second[: self.rounds]

    @property
    def outcomes(self) -> npt.NDArray[np.int8]:
        """(rounds, lanes) +1 where the first candidate won, -1 where it lost, 0 where they tied."""
        return self._log.outcomes[: self.rounds]

    def append(
        self,
        actions: ActionSet,
        duels: Duels,
        outcomes: IntArray,
        *,
        weights: FloatArray | None = None,
        layers: IntArray | None = None,
    ) -> History:
        """The history with one more duel in every lane; outcomes (lanes,) are +1, -1, or 0 for a tie.

        `weights` (lanes,) is by how much each duel counts, 1 if not given; `layers` (lanes,) is where, 0 if not given.
        """
        if actions.lanes != self.lanes or actions.dim != self.dim:
            raise InvalidInputError(
                f"the action set must have {self.lanes} lane(s) of dimension {self.dim}; got {actions.lanes} of "
                f"dimension {actions.dim}. A history keeps the shape it was started with."
            )
        check_outcomes(outcomes, self.lanes)
        shapes = (duels.first.shape, duels.second.shape, duels.features.shape)
        if shapes != ((self.lanes,), (self.lanes,), (self.lanes, 2, self.dim)):
            raise InvalidInputError(
                f"duels must have first ({self.lanes},), second ({self.lanes},) and features ({self.lanes}, 2, {self.dim}); "
                f"got {shapes[0]}, {shapes[1]} and {shapes[2]}. Use the duels that choose returned, or duels_between."
            )
        log = self._current()
        log.append(actions, duels, outcomes, weights, layers)
        return History(log, self.rounds + 1)

    def _current(self) -> _Log:
        if self._log.rounds != self.rounds:
            self._log = self._log.replay(self.rounds)
        return self._log

    def to_arrays(self) -> dict[str, Any]:
        """Everything needed to rebuild this history exactly, as plain arrays."""
        return self._current().to_arrays()

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> History:
        """Rebuild a history from `to_arrays`, bit for bit."""
        log = _Log.from_arrays(arrays)
        return cls(log, log.rounds)


class _Log:
    """The growing arrays behind a line of histories."""

    def __init__(self, lanes: int, dim: int, keep_sets: bool, n_layers: int, discount: float, max_sets: int | None) -> None:
        self.lanes, self.dim, self.keep_sets, self.n_layers = lanes, dim, keep_sets, n_layers
        self.discount, self.max_sets = discount, max_sets
        groups = lanes * n_layers
        self.rounds = 0
        self.effective_rounds = 0.0
        self.n_sets = 0
        self.remembered: dict[bytes, int] = {}
        # Columns of the log, a row a round.
        self.first = np.empty((0, lanes), dtype=np.int32)
        self.second = np.empty((0, lanes), dtype=np.int32)
        self.outcomes = np.empty((0, lanes), dtype=np.int8)
        self.rows = np.empty((0, lanes), dtype=np.int32)
        self.slots = np.empty(0, dtype=np.int32)
        self.weights = np.empty((0, lanes))
        self.layers = np.empty((0, lanes), dtype=np.int8)
        self.radii = np.empty(0)
        # Features of both candidates, a row a ball offered: arms of a ball have no rows to look them up by.
        self.shown = np.empty((0, lanes, 2, dim))
        self.n_shown = 0
        # Once sets are sampled: the mean of both candidates' features, a row a round, for rebuilding older histories.
        self.sample: SetSample | None = None
        self.middles = np.empty((0, lanes, dim))
        # Statistics.
        self.contrasts = np.zeros((groups, dim, 0))
        self.totals = np.zeros((groups, 0))
        self.losses = np.zeros((groups, 0))
        self.n_rows = np.zeros(groups, dtype=np.int64)
        self.most_rows = 0  # an upper bound of n_rows.max() that needs no pass over the lanes
        self.sets = np.zeros((lanes, 0, dim, 0))
        self.repeats = np.zeros(0)
        self.adversary = np.zeros((lanes, 2, dim))
        self.ball_reach = 0.0
        self.continuous = SupportSums(lanes, dim)
        # Which row a pair has: an open-addressing table a lane.
        self.table = np.full((groups, 16), -1, dtype=np.int64)
        self.table_rows = np.empty((groups, 16), dtype=np.int32)
        self.every_duel_once = np.ones(lanes), np.zeros(lanes, dtype=np.int64)

    def statistics(self) -> Statistics:
        likelihood = self.contrasts, self.totals, self.losses, self.n_rows
        if self.sample is not None:
            adversary = self.adversary - self.sample.correction()[:, None]
            return Statistics(
                *likelihood,
                self.sample.sets,
                self.sample.weights(),
                adversary,
                self.ball_reach,
                self.continuous.sums(),
                self._newest(),
            )
        n_sets = self.n_sets if self.keep_sets else 0
        return Statistics(
            *likelihood,
            self.sets,
            self.repeats[:n_sets],
            self.adversary,
            self.ball_reach,
            self.continuous.sums(),
            self._newest(),
        )

    def _newest(self) -> Newest | None:
        if not self.rounds or self.n_layers > 1:
            return None
        t = self.rounds - 1
        # A contrast is (lower row) - (higher row): turned round where the first candidate had the higher row.
        turned = np.where(self.first[t] > self.second[t], -1.0, 1.0)
        return Newest(self.rows[t].astype(np.int64), 0.5 * (1.0 - turned * self.outcomes[t]))

    def append(
        self,
        actions: ActionSet,
        duels: Duels,
        outcomes: IntArray,
        weights: FloatArray | None,
        layers: IntArray | None,
    ) -> None:
        self._age()
        once, bottom = self.every_duel_once
        counted = once if weights is None else weights, bottom if layers is None else layers
        if isinstance(actions, BallActions):
            slot, radius = _BALL, actions.radius
        else:
            slot, radius = self.slot_of(actions), 0.0
        if slot <= _CONTINUOUS:
            self.continuous.count(_CONTINUOUS - slot, actions)
        if self.sample is not None:
            middle = duels.features.mean(axis=1)
            self.middles = _with_room(self.middles, self.rounds)
            self.middles[self.rounds] = middle
            if isinstance(actions, FiniteActions):
                self.sample.offer(actions.columns, middle)
        self._append(slot, duels.first, duels.second, outcomes, *counted, duels.features, radius)

    def slot_of(self, actions: ActionSet) -> int:
        """The number of this action set, a new one if its content was not seen lately."""
        digest = actions.digest
        slot = self.remembered.pop(digest, None)
        if slot is None and self.keep_sets and not isinstance(actions, FiniteActions):
            slot = _CONTINUOUS - len(self.continuous.sets)
        if slot is None:
            slot = self.n_sets
            if isinstance(actions, FiniteActions) and self.keep_sets and self.sample is None:
                if self.max_sets is not None and self.n_sets >= self.max_sets:
                    self._start_sample(self.max_sets // 4)
                else:
                    self._keep(actions)
            self.n_sets += 1
        if len(self.remembered) >= _REMEMBERED_SETS:
            del self.remembered[next(iter(self.remembered))]
        self.remembered[digest] = slot  # last in the dict: most recently used
        return slot

    def _keep(self, actions: FiniteActions) -> None:
        arms = max(self.sets.shape[3], actions.n_arms)
        capacity = self.sets.shape[1]
        if self.n_sets == capacity or arms > self.sets.shape[3]:
            old = self.sets
            self.sets = np.zeros((self.lanes, _doubled(capacity, self.n_sets + 1), self.dim, arms))
            self.sets[:, :capacity, :, : old.shape[3]] = old
            # A set with fewer arms is padded with copies of its first arm, which leave its maximum as it is.
            self.sets[:, :capacity, :, old.shape[3] :] = old[:, :, :, :1] if old.shape[3] else 0.0
            self.repeats = _grown(self.repeats, 0, self.sets.shape[1])
        self.sets[:, self.n_sets, :, : actions.n_arms] = actions.columns
        self.sets[:, self.n_sets, :, actions.n_arms :] = actions.columns[:, :, :1]

    def _start_sample(self, size: int) -> None:
        """Go over from all sets to a sample of them."""
        slots = self.slots[: self.rounds]
        continuous, finite = np.flatnonzero(slots < 0), np.flatnonzero(slots >= 0)
        self.middles = np.zeros((self.rounds, self.lanes, self.dim))
        self.middles[continuous] = self.shown[: self.n_shown].mean(axis=2)
        for lane in range(self.lanes):
            for rows in (self.first, self.second):
                self.middles[finite, lane] += 0.5 * self.sets[lane, slots[finite], :, rows[finite, lane]]
        self.sample = SetSample.of(self.middles[finite], lambda i: self.sets[:, slots[finite[i]]], size - size % 2)
        self.sets, self.repeats = np.zeros((self.lanes, 0, self.dim, 0)), np.zeros(0)

    def _append(
        self,
        slot: int,
        first: npt.NDArray[np.integer[Any]],
        second: npt.NDArray[np.integer[Any]],
        outcomes: npt.NDArray[np.integer[Any]],
        weights: FloatArray,
        layers: npt.NDArray[np.integer[Any]],
        features: FloatArray,
        radius: float = 0.0,
    ) -> None:
        self._make_room()
        if slot < 0:
            # Rows of a continuous set, if a user's own has any, say nothing about content: its contrasts do not repeat.
            first = second = np.full(self.lanes, -1, dtype=np.int64)
        if self.keep_sets and slot < 0:
            self._show(features)
            self.ball_reach += radius
        elif self.keep_sets and self.sample is None:
            self.repeats[slot] += 1.0
        t = self.rounds
        append_round(
            slot,
            first.astype(np.int64),
            second.astype(np.int64),
            outcomes.astype(np.int64),
            weights,
            layers.astype(np.int64),
            self.n_layers,
            features,
            self.table,
            self.table_rows,
            self.contrasts,
            self.totals,
            self.losses,
            self.n_rows,
            self.adversary,
            self.rows[t],
        )
        self.first[t], self.second[t], self.outcomes[t] = first, second, outcomes
        self.slots[t], self.radii[t] = slot, radius
        if self.n_layers > 1:
            self.weights[t], self.layers[t] = weights, layers
        self.rounds += 1

    def _age(self) -> None:
        """Begin a round: what was counted so far fades, if the history forgets."""
        if self.discount < 1.0:
            for counts in (self.totals, self.losses, self.repeats, self.adversary):
                fade(counts.reshape(-1), self.discount)
            self.ball_reach *= self.discount
            self.continuous.fade(self.discount)
            self.effective_rounds *= self.discount
        self.effective_rounds += 1.0

    def _show(self, features: FloatArray) -> None:
        self.shown = _with_room(self.shown, self.n_shown)
        self.shown[self.n_shown] = features
        self.n_shown += 1

    def _make_room(self) -> None:
        if self.rounds == len(self.slots):
            size = _doubled(self.rounds, 64)
            # Weights and layers are logged only where they can differ from round to round.
            for name in _COLUMNS if self.n_layers > 1 else _COLUMNS[:-2]:
                setattr(self, name, _grown(getattr(self, name), 0, size))
        capacity = self.totals.shape[1]
        if self.most_rows == capacity:
            self.most_rows = int(self.n_rows.max())
        if self.most_rows == capacity:
            size = _doubled(capacity, 16)
            self.contrasts = _grown(self.contrasts, 2, size)
            self.totals = _grown(self.totals, 1, size)
            self.losses = _grown(self.losses, 1, size)
            if 2 * size > self.table.shape[1]:
                old_table, old_rows = self.table, self.table_rows
                self.table = np.full((len(old_table), 2 * size), -1, dtype=np.int64)
                self.table_rows = np.empty((len(old_table), 2 * size), dtype=np.int32)
                rehash(old_table, old_rows, self.table, self.table_rows)
        self.most_rows += 1

    def replay(self, rounds: int) -> _Log:
        """A log of the first rounds only, by counting them again."""
        log = _Log(self.lanes, self.dim, self.keep_sets, self.n_layers, self.discount, self.max_sets)
        log.n_sets = int(self.slots[:rounds].max(initial=-1)) + 1
        if self.sample is not None:
            log.sample = self.sample  # so that counting does not ask for sets that are gone
        elif self.keep_sets:
            log.sets = self.sets[:, : log.n_sets].copy()
            log.repeats = np.zeros(log.n_sets)
        lanes = np.arange(self.lanes)
        for t in range(rounds):
            log._age()
            slot, first, second = int(self.slots[t]), self.first[t], self.second[t]
            weights, layers = (self.weights[t], self.layers[t]) if self.n_layers > 1 else self.every_duel_once
            features = np.zeros((self.lanes, 2, self.dim))
            if self.keep_sets and slot < 0:
                features[:] = self.shown[log.n_shown]
                if slot <= _CONTINUOUS:
                    log.continuous.count(_CONTINUOUS - slot, self.continuous.sets[_CONTINUOUS - slot])
            elif self.keep_sets and self.sample is None:
                features[:, 0] = self.sets[lanes, slot, :, first]
                features[:, 1] = self.sets[lanes, slot, :, second]
            else:
                # Without the arms themselves a contrast is all there is, and all that the likelihood needs.
                sign = np.where(first <= second, 1.0, -1.0)[:, None]
                # A duel of weight 0 has no row, and where all were such there is no contrast at all.
                counted = np.flatnonzero(self.rows[t] >= 0)
                groups, rows = (lanes * self.n_layers + layers)[counted], self.rows[t, counted]
                features[counted, 0] = sign[counted] * self.contrasts[groups, :, rows]
            log._append(slot, first, second, self.outcomes[t], weights, layers, features, float(self.radii[t]))
        oldest = _CONTINUOUS - len(log.continuous.sets)
        log.remembered = {d: slot for d, slot in self.remembered.items() if oldest < slot < log.n_sets}
        if self.sample is not None:
            self._replay_sample(log, self.sample)
        return log

    def _replay_sample(self, log: _Log, sample: SetSample) -> None:
        """What a log with a sample of sets knows beyond its contrasts, for the rounds of `log`."""
        log.middles = self.middles[: log.rounds].copy()
        finite = log.slots[: log.rounds] >= 0
        log.sample = sample.until(int(finite.sum()), log.middles[finite].sum(axis=0))
        # Each candidate is the middle of both, give or take half their contrast.
        half = np.zeros((self.lanes, self.dim))
        for lane in range(self.lanes):
            rows = log.rows[: log.rounds, lane]
            sign = np.where(log.first[: log.rounds, lane] <= log.second[: log.rounds, lane], 0.5, -0.5)
            group = lane * self.n_layers + (log.layers[: log.rounds, lane] if self.n_layers > 1 else 0)
            half[lane] = (sign[:, None] * log.contrasts[group, :, rows] * (rows >= 0)[:, None]).sum(axis=0)
        total = log.middles.sum(axis=0)
        log.adversary = np.stack([total - half, total + half], axis=1)

    def to_arrays(self) -> dict[str, Any]:
        n, rows = self.rounds, int(self.n_rows.max())
        digests = b"".join(self.remembered)
        return {
            "shape": np.array([self.lanes, self.dim, self.keep_sets, self.n_layers, self.n_sets, self.max_sets or 0]),
            "discount": np.array(self.discount),
            **{name: getattr(self, name)[:n] for name in _COLUMNS},
            "shown": self.shown[: self.n_shown],
            "continuous": self.continuous.sets,
            "contrasts": self.contrasts[:, :, :rows],
            "sets": self.sets[:, : self.n_sets] if self.keep_sets and self.sample is None else self.sets[:, :0],
            "digests": np.frombuffer(digests, dtype=np.uint8),
            "digest_slots": np.array(list(self.remembered.values()), dtype=np.int64),
            **({} if self.sample is None else self.sample.to_arrays()),
            **({} if self.sample is None else {"middles": self.middles[:n], "adversary": self.adversary}),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> _Log:
        try:
            lanes, dim, keep_sets, n_layers, n_sets, max_sets = (int(v) for v in arrays["shape"])
            stored = cls(lanes, dim, bool(keep_sets), n_layers, float(arrays["discount"]), max_sets or None)
            if "sample" in arrays:
                stored.sample, stored.middles = SetSample.from_arrays(arrays), arrays["middles"]
            for name in (*_COLUMNS, "shown", "contrasts", "sets"):
                setattr(stored, name, arrays[name])
            stored.continuous.sets = list(arrays["continuous"])
            slots = arrays["digest_slots"]
            digests = arrays["digests"].tobytes()
        except KeyError as error:
            raise SavedStateError(f"the saved history lacks {error}; it was not written by duelist.") from error
        log = stored.replay(len(stored.slots))
        log.n_sets = n_sets
        if log.sample is not None:
            log.sample, log.adversary = stored.sample, arrays["adversary"].copy()
        width = len(digests) // len(slots) if len(slots) else 0
        log.remembered = {digests[i * width : (i + 1) * width]: int(slot) for i, slot in enumerate(slots)}
        return log


def _doubled(size: int, at_least: int) -> int:
    return max(2 * size, at_least)


def _with_room(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    """The array, with room for one more row if it is full."""
    return _grown(array, 0, _doubled(used, 64)) if used == len(array) else array


def _grown(array: npt.NDArray[Any], axis: int, size: int) -> npt.NDArray[Any]:
    shape = list(array.shape)
    shape[axis] = size
    grown = np.zeros(shape, dtype=array.dtype)
    grown[tuple(slice(n) for n in array.shape)] = array
    return grown
