"""The log behind a line of histories: one row per round, and the statistics that are counted from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet
from duelist.core.arrays import GRADUAL, GradualGrowth, capacity_for, enlarge, next_capacity
from duelist.core.errors import SavedStateError
from duelist.history.action_sets import OfferedSets
from duelist.history.duels import Duels
from duelist.history.set_sample import SetSample
from duelist.history.statistics import Newest, Statistics
from duelist.kernels.history import CountedContrasts, RoundOfDuels, append_round, fade, index_keys, index_rounds
from duelist.typing import FloatArray, Int32Array, IntArray

_FIRST_TABLE = 16
_AXES = {"keys": 1, "contrasts": 2, "totals": 1, "losses": 1}  # which grow, and along which axis


class ContrastCounts:
    """Grows round by round, in place. In layers, a group of rows is a layer of a lane: lanes * layers groups.

    Attributes:
        counted: contrasts (groups, dim, capacity), one per column, with how often each was shown and lost (half for a tie).
    """

    def __init__(self, lanes: int, dim: int, n_layers: int) -> None:
        groups = lanes * n_layers
        self.n_layers = n_layers
        self.counted = CountedContrasts(
            table=np.zeros((groups, _FIRST_TABLE), dtype=np.int32),
            keys=np.empty((groups, 0), dtype=np.int64),
            contrasts=np.zeros((groups, dim, 0)),
            totals=np.zeros((groups, 0)),
            losses=np.zeros((groups, 0)),
            n_rows=np.zeros(groups, dtype=np.int64),
        )
        self._most_rows = 0  # an upper bound of n_rows.max() that needs no pass over the lanes
        # In a lane alone a contrast is final once it has a row, and a duel changes one count; of several lanes some are behind.
        self._growing = {name: GradualGrowth(axis=axis) for name, axis in _AXES.items()} if groups == 1 else {}
        self._longer_table: Int32Array | None = None
        self._indexed = np.zeros(groups, dtype=np.int64)  # rows that the longer table has

    def count(self, duels: RoundOfDuels, adversary: FloatArray, rows: Int32Array) -> None:
        """Count one duel per lane; `adversary` (lanes, 2, dim) and `rows` (lanes,) as in `append_round`."""
        self._make_room()
        append_round(duels, self.counted, self.n_layers, adversary, rows)
        if self._growing and rows[0] >= 0:
            self._growing["totals"].changed(self.counted.totals, int(rows[0]))
            self._growing["losses"].changed(self.counted.losses, int(rows[0]))

    def take(self, counted: CountedContrasts) -> None:
        """Go on from these counts, whose table is empty and has twice as many places as there is room for contrasts."""
        index_keys(counted.table, counted.keys, np.zeros_like(counted.n_rows), counted.n_rows)
        self.counted, self._most_rows = counted, int(counted.n_rows.max(initial=0))

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far, for a history that forgets."""
        fade(self.counted.totals.reshape(-1), factor)
        fade(self.counted.losses.reshape(-1), factor)
        if self._growing:
            self._growing["totals"].changed_all()
            self._growing["losses"].changed_all()

    def _make_room(self) -> None:
        old = self.counted
        capacity = old.totals.shape[1]
        if self._growing:
            self._most_rows = int(old.n_rows[0])
        elif self._most_rows == capacity:
            self._most_rows = int(old.n_rows.max())
        if self._most_rows < capacity < GRADUAL:
            self._most_rows += 1
            return
        full = self._most_rows == capacity
        if self._growing:
            self.counted = old._replace(
                **{name: growth.make_room(getattr(old, name), self._most_rows, 16) for name, growth in self._growing.items()}
            )
        elif full:
            size = next_capacity(capacity, 16)
            self.counted = old._replace(**{name: enlarge(getattr(old, name), axis, size) for name, axis in _AXES.items()})
        size = self.counted.totals.shape[1]
        if full and 2 * size > old.table.shape[1]:
            self._index_rows(old.n_rows, 2 * size)
            assert self._longer_table is not None
            self.counted = self.counted._replace(table=self._longer_table)
            self._longer_table, self._indexed = None, np.zeros_like(old.n_rows)
        elif self._growing and not full and 16 * self._most_rows >= 15 * capacity:
            self._index_rows(np.minimum(self._indexed + 17, old.n_rows), 4 * capacity)  # at the pace of `GradualGrowth`
        self._most_rows += 1

    def _index_rows(self, end: IntArray, size: int) -> None:
        """Enter the rows up to `end` (groups,) into the table that will take the place of the present one."""
        if self._longer_table is None:
            self._longer_table = np.zeros((len(end), size), dtype=np.int32)
        index_keys(self._longer_table, self.counted.keys, self._indexed, end)
        self._indexed = end.copy()


COLUMNS = ("first", "second", "outcomes", "rows", "slots", "radii", "weights", "layers")
Ints = npt.NDArray[np.integer[Any]]


class HistoryLog:
    """The growing arrays behind a line of histories."""

    def __init__(self, lanes: int, dim: int, keep_sets: bool, n_layers: int, discount: float, max_sets: int | None) -> None:
        self.lanes, self.dim, self.n_layers, self.discount = lanes, dim, n_layers, discount
        self.rounds = 0
        self.effective_rounds = 0.0
        # Columns of the log, one row per round.
        self.first = np.empty((0, lanes), dtype=np.int32)
        self.second = np.empty((0, lanes), dtype=np.int32)
        self.outcomes = np.empty((0, lanes), dtype=np.int8)
        self.rows = np.empty((0, lanes), dtype=np.int32)
        self.slots = np.empty(0, dtype=np.int32)
        self.weights = np.empty((0, lanes))
        self.layers = np.empty((0, lanes), dtype=np.int8 if n_layers <= np.iinfo(np.int8).max + 1 else np.int32)
        self.radii = np.empty(0)
        # Statistics.
        self.counts = ContrastCounts(lanes, dim, n_layers)
        self.offered = OfferedSets(lanes, dim, keep_sets=keep_sets, max_sets=max_sets)
        self.adversary = np.zeros((lanes, 2, dim))
        self._every_duel_once = np.ones(lanes), np.zeros(lanes, dtype=np.int64)
        # Weights and layers are logged only where they can differ from round to round.
        self._growing = {name: GradualGrowth(axis=0) for name in COLUMNS[:-2]}
        if n_layers > 1:
            self._keep_weights()

    def statistics(self) -> Statistics:
        """The sufficient statistics of all rounds, as views of arrays that the next round is counted in."""
        counted, offered, sample = self.counts.counted, self.offered, self.offered.sample
        if sample is None:
            n_sets = offered.n_sets if offered.keep_sets else 0
            sets, repeats, adversary = offered.sets, offered.repeats[:n_sets], self.adversary
        else:
            sets, repeats = sample.sets, sample.weights()
            adversary = self.adversary - sample.correction()[:, None]
        return Statistics(
            counted.contrasts,
            counted.totals,
            counted.losses,
            counted.n_rows,
            sets,
            repeats,
            adversary,
            offered.ball_reach,
            offered.continuous.sums(),
            self._newest(),
        )

    def kept_statistics(self) -> Statistics:
        """The same, with a copy of everything that a further round writes to."""
        live = self.statistics()
        used = int(live.n_rows.max(initial=0))
        return live._replace(
            contrasts=live.contrasts[:, :, :used].copy(),
            totals=live.totals[:, :used].copy(),
            losses=live.losses[:, :used].copy(),
            n_rows=live.n_rows.copy(),
            # Sets are only added to, except in a sample, which gives up some of its sets for new ones.
            sets=live.sets if self.offered.sample is None else live.sets.copy(),
            repeats=live.repeats.copy(),
            adversary=live.adversary.copy(),
        )

    def _newest(self) -> Newest | None:
        if not self.rounds or self.n_layers > 1:
            return None
        t = self.rounds - 1
        return Newest(self.first[t], self.second[t], self.outcomes[t], self.rows[t])

    def append(
        self,
        actions: ActionSet,
        duels: Duels,
        outcomes: IntArray,
        weights: FloatArray | None,
        layers: IntArray | None,
    ) -> None:
        """Append one duel per lane."""
        if weights is not None and not self.rounds:
            self._keep_weights()
        self._age()
        once, bottom = self._every_duel_once
        counted = once if weights is None else weights, bottom if layers is None else layers
        offered, n = self.offered, self.rounds
        if offered.overflow_with(actions):
            offered.start_sample(self.slots[:n], self.first[:n], self.second[:n])
        slot = offered.slot_of(actions)
        offered.offer(actions, slot, duels.features, n)
        radius = actions.radius if isinstance(actions, BallActions) else 0.0
        self._append(_round_of(slot, duels.first, duels.second, outcomes, *counted, duels.features), radius)

    def _append(self, duels: RoundOfDuels, radius: float) -> None:
        """Log a round and count it; `radius` is that of a ball, 0 for other sets."""
        self._make_room()
        if duels.slot < 0:
            # Rows of a continuous set, if a user's own has any, say nothing about content: its contrasts do not repeat.
            no_rows = np.full(self.lanes, -1, dtype=np.int64)
            duels = duels._replace(first=no_rows, second=no_rows)
        self.offered.count(duels.slot, duels.features, radius)
        t = self.rounds
        self.counts.count(duels, self.adversary, self.rows[t])
        self.first[t], self.second[t], self.outcomes[t] = duels.first, duels.second, duels.outcomes
        self.slots[t], self.radii[t] = duels.slot, radius
        if self._weighs:
            self.weights[t], self.layers[t] = duels.weights, duels.layers
        self.rounds += 1

    def _keep_weights(self) -> None:
        """Log by how much every duel counts, and where: where all count alike, two columns are spared."""
        self._growing.update({name: GradualGrowth(axis=0) for name in COLUMNS[-2:] if name not in self._growing})

    @property
    def _weighs(self) -> bool:
        return "weights" in self._growing

    def _age(self) -> None:
        """Begin a round: what was counted so far fades, if the history forgets."""
        if self.discount < 1.0:
            self.counts.fade(self.discount)
            self.offered.fade(self.discount)
            fade(self.adversary.reshape(-1), self.discount)
            self.effective_rounds *= self.discount
        self.effective_rounds += 1.0

    def _make_room(self) -> None:
        capacity = len(self.slots)
        if self.rounds == capacity or (capacity >= GRADUAL and self.rounds % 16 == 0):
            for name, growth in self._growing.items():
                setattr(self, name, growth.make_room(getattr(self, name), self.rounds, 64))

    def _empty(self) -> HistoryLog:
        """A log of no rounds with the same settings."""
        keep_sets, max_sets = self.offered.keep_sets, self.offered.max_sets
        return HistoryLog(self.lanes, self.dim, keep_sets, self.n_layers, self.discount, max_sets)

    def replay(self, rounds: int) -> HistoryLog:
        """A log of the first rounds only, by counting them again."""
        log = self._empty()
        if self._weighs:
            log._keep_weights()
        log.offered = self.offered.before(self.slots[:rounds])
        for t in range(rounds):
            log._age()
            slot, first, second = int(self.slots[t]), self.first[t], self.second[t]
            weights, layers = (self.weights[t], self.layers[t]) if self._weighs else self._every_duel_once
            features = log.offered.count_again(self.offered, slot, first, second)
            if features is None:
                features = self._contrast_alone(t, layers)
            duels = _round_of(slot, first, second, self.outcomes[t], weights, layers, features)
            log._append(duels, float(self.radii[t]))
        log.offered.remember_like(self.offered)
        if self.offered.sample is not None:
            self._replay_sample(log, self.offered.sample)
        return log

    def _contrast_alone(self, t: int, layers: Ints) -> FloatArray:
        """Features (lanes, 2, dim) with the contrast of round t, which is all that is known without the arms."""
        features = np.zeros((self.lanes, 2, self.dim))
        sign = np.where(self.first[t] <= self.second[t], 1.0, -1.0)[:, None]
        # A duel of weight 0 has no row, and where all were such there is no contrast at all.
        counted = np.flatnonzero(self.rows[t] >= 0)
        groups, rows = (np.arange(self.lanes) * self.n_layers + layers)[counted], self.rows[t, counted]
        features[counted, 0] = sign[counted] * self.counts.counted.contrasts[groups, :, rows]
        return features

    def _replay_sample(self, log: HistoryLog, sample: SetSample) -> None:
        """What a log with a sample of sets knows beyond its contrasts, for the rounds of `log`."""
        n, offered = log.rounds, log.offered
        offered.middles = self.offered.middles[:n].copy()
        finite = log.slots[:n] >= 0
        offered.sample = sample.until(int(finite.sum()), offered.middles[finite].sum(axis=0))
        # Each candidate is the middle of both, give or take half their contrast.
        half = np.zeros((self.lanes, self.dim))
        for lane in range(self.lanes):
            rows = log.rows[:n, lane]
            sign = np.where(log.first[:n, lane] <= log.second[:n, lane], 0.5, -0.5)
            group = lane * self.n_layers + (log.layers[:n, lane] if self.n_layers > 1 else 0)
            half[lane] = (sign[:, None] * log.counts.counted.contrasts[group, :, rows] * (rows >= 0)[:, None]).sum(axis=0)
        total = offered.middles.sum(axis=0)
        log.adversary = np.stack([total - half, total + half], axis=1)

    def to_arrays(self) -> dict[str, Any]:
        """Everything needed to rebuild this log exactly, as plain arrays."""
        n, offered = self.rounds, self.offered
        shape = [self.lanes, self.dim, offered.keep_sets, self.n_layers, offered.n_sets, offered.max_sets or 0]
        counted = self.counts.counted
        n_rows = int(counted.n_rows.max())
        return {
            "shape": np.array(shape),
            "discount": np.array(self.discount),
            **{name: getattr(self, name)[:n] for name in COLUMNS},
            # Where the rows of all contrasts are final they come first, so that they only grow at the end.
            **(
                {"contrast_rows": counted.contrasts[0, :, :n_rows].T}
                if len(counted.contrasts) == 1
                else {"contrasts": counted.contrasts[:, :, :n_rows]}
            ),
            **offered.to_arrays(n),
            **({"adversary": self.adversary.copy()} if offered.keep_sets else {}),
            "totals": counted.totals[:, :n_rows].copy(),
            "losses": counted.losses[:, :n_rows].copy(),
            "effective_rounds": np.array(self.effective_rounds),
        }

    def _take_counts(self, arrays: dict[str, Any]) -> None:
        """Take over the counts of finite sets as they were saved: much faster than counting every round again."""
        n = self.rounds = len(self.slots)
        self.effective_rounds = float(arrays["effective_rounds"])
        # What was read belongs to nobody else, but may be read-only or in another order: the next round writes to a copy, which
        # has room, so that no single vote waits for a longer one.
        for name in self._growing:
            setattr(self, name, enlarge(getattr(self, name), 0, capacity_for(n)))
        if self.offered.keep_sets:
            self.adversary = arrays["adversary"].copy()
            if self.offered.sample is None:
                self.offered.sets, self.offered.repeats = self.offered.sets.copy(), arrays["repeats"].copy()
        n_rows = self.rows[:n].max(axis=0, initial=-1).astype(np.int64) + 1
        capacity = max(_FIRST_TABLE, capacity_for(int(n_rows.max(initial=0)))) if n else 0
        counted = CountedContrasts(
            table=np.zeros((self.lanes, max(2 * capacity, _FIRST_TABLE)), dtype=np.int32),
            keys=np.empty((self.lanes, capacity), dtype=np.int64),
            contrasts=enlarge(self.counts.counted.contrasts, 2, capacity),
            totals=enlarge(arrays["totals"], 1, capacity),
            losses=enlarge(arrays["losses"], 1, capacity),
            n_rows=n_rows,
        )
        index_rounds(counted, self.slots[:n].astype(np.int64), self.first[:n], self.second[:n], self.rows[:n])
        self.counts.take(counted)

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> HistoryLog:
        """Rebuild a log from `to_arrays`, bit for bit."""
        try:
            lanes, dim, keep_sets, n_layers, n_sets, max_sets = (int(v) for v in arrays["shape"])
            stored = cls(lanes, dim, bool(keep_sets), n_layers, float(arrays["discount"]), max_sets or None)
            for name in COLUMNS:
                setattr(stored, name, arrays[name])
            if len(stored.weights):
                stored._keep_weights()
            contrasts = arrays["contrasts"] if "contrasts" in arrays else arrays["contrast_rows"].T[None]
            stored.counts.counted = stored.counts.counted._replace(contrasts=contrasts)
            stored.offered.fill_from(arrays, n_sets)
            if "totals" in arrays and n_layers == 1 and (stored.slots >= 0).all():
                stored._take_counts(arrays)
                return stored
            log = stored.replay(len(stored.slots))
            if stored.offered.sample is not None:
                log.offered.sample, log.adversary = stored.offered.sample, arrays["adversary"].copy()
        except KeyError as error:
            raise SavedStateError(f"the saved history lacks {error}; it was not written by duelist.") from error
        log.offered.remember_all_of(stored.offered)
        return log


def _round_of(
    slot: int, first: Ints, second: Ints, outcomes: Ints, weights: FloatArray, layers: Ints, features: FloatArray
) -> RoundOfDuels:
    """The round as kernels read it: whole numbers of 64 bits."""
    columns = (first.astype(np.int64), second.astype(np.int64), outcomes.astype(np.int64), weights, layers.astype(np.int64))
    return RoundOfDuels(slot, *columns, features)
