"""The log behind a line of histories: a row a round, and the statistics that are counted from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.actions import ActionSet
from duelist.core.ball_actions import BallActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.contrast_counts import ContrastCounts
from duelist.core.duels import Duels
from duelist.core.errors import SavedStateError
from duelist.core.growing import doubled, grown
from duelist.core.history_kernels import fade
from duelist.core.offered_sets import OfferedSets
from duelist.core.set_sample import SetSample
from duelist.core.statistics import Newest, Statistics

_COLUMNS = ("first", "second", "outcomes", "rows", "slots", "radii", "weights", "layers")

Ints = npt.NDArray[np.integer[Any]]


class HistoryLog:
    """The growing arrays behind a line of histories."""

    def __init__(self, lanes: int, dim: int, keep_sets: bool, n_layers: int, discount: float, max_sets: int | None) -> None:
        self.lanes, self.dim, self.n_layers, self.discount = lanes, dim, n_layers, discount
        self.rounds = 0
        self.effective_rounds = 0.0
        # Columns of the log, a row a round.
        self.first = np.empty((0, lanes), dtype=np.int32)
        self.second = np.empty((0, lanes), dtype=np.int32)
        self.outcomes = np.empty((0, lanes), dtype=np.int8)
        self.rows = np.empty((0, lanes), dtype=np.int32)
        self.slots = np.empty(0, dtype=np.int32)
        self.weights = np.empty((0, lanes))
        self.layers = np.empty((0, lanes), dtype=np.int8)
        self.radii = np.empty(0)
        # Statistics.
        self.counts = ContrastCounts(lanes, dim, n_layers)
        self.offered = OfferedSets(lanes, dim, keep_sets=keep_sets, max_sets=max_sets)
        self.adversary = np.zeros((lanes, 2, dim))
        self._every_duel_once = np.ones(lanes), np.zeros(lanes, dtype=np.int64)

    def statistics(self) -> Statistics:
        """The sufficient statistics of all rounds."""
        counts, offered, sample = self.counts, self.offered, self.offered.sample
        if sample is None:
            n_sets = offered.n_sets if offered.keep_sets else 0
            sets, repeats, adversary = offered.sets, offered.repeats[:n_sets], self.adversary
        else:
            sets, repeats = sample.sets, sample.weights()
            adversary = self.adversary - sample.correction()[:, None]
        return Statistics(
            counts.contrasts,
            counts.totals,
            counts.losses,
            counts.n_rows,
            sets,
            repeats,
            adversary,
            offered.ball_reach,
            offered.continuous.sums(),
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
        """Append one duel a lane."""
        self._age()
        once, bottom = self._every_duel_once
        counted = once if weights is None else weights, bottom if layers is None else layers
        offered, n = self.offered, self.rounds
        if offered.overflow_with(actions):
            offered.start_sample(self.slots[:n], self.first[:n], self.second[:n])
        slot = offered.slot_of(actions)
        offered.offer(actions, slot, duels.features, n)
        radius = actions.radius if isinstance(actions, BallActions) else 0.0
        self._append(slot, duels.first, duels.second, outcomes, *counted, duels.features, radius)

    def _append(
        self,
        slot: int,
        first: Ints,
        second: Ints,
        outcomes: Ints,
        weights: FloatArray,
        layers: Ints,
        features: FloatArray,
        radius: float,
    ) -> None:
        self._make_room()
        if slot < 0:
            # Rows of a continuous set, if a user's own has any, say nothing about content: its contrasts do not repeat.
            first = second = np.full(self.lanes, -1, dtype=np.int64)
        self.offered.count(slot, features, radius)
        t = self.rounds
        self.counts.count(slot, first, second, outcomes, weights, layers, features, self.adversary, self.rows[t])
        self.first[t], self.second[t], self.outcomes[t] = first, second, outcomes
        self.slots[t], self.radii[t] = slot, radius
        if self.n_layers > 1:
            self.weights[t], self.layers[t] = weights, layers
        self.rounds += 1

    def _age(self) -> None:
        """Begin a round: what was counted so far fades, if the history forgets."""
        if self.discount < 1.0:
            self.counts.fade(self.discount)
            self.offered.fade(self.discount)
            fade(self.adversary.reshape(-1), self.discount)
            self.effective_rounds *= self.discount
        self.effective_rounds += 1.0

    def _make_room(self) -> None:
        if self.rounds == len(self.slots):
            size = doubled(self.rounds, 64)
            # Weights and layers are logged only where they can differ from round to round.
            for name in _COLUMNS if self.n_layers > 1 else _COLUMNS[:-2]:
                setattr(self, name, grown(getattr(self, name), 0, size))

    def _empty(self) -> HistoryLog:
        """A log of no rounds with the same settings."""
        keep_sets, max_sets = self.offered.keep_sets, self.offered.max_sets
        return HistoryLog(self.lanes, self.dim, keep_sets, self.n_layers, self.discount, max_sets)

    def replay(self, rounds: int) -> HistoryLog:
        """A log of the first rounds only, by counting them again."""
        log = self._empty()
        log.offered = self.offered.before(self.slots[:rounds])
        for t in range(rounds):
            log._age()
            slot, first, second = int(self.slots[t]), self.first[t], self.second[t]
            weights, layers = (self.weights[t], self.layers[t]) if self.n_layers > 1 else self._every_duel_once
            features = log.offered.count_again(self.offered, slot, first, second)
            if features is None:
                features = self._contrast_alone(t, layers)
            log._append(slot, first, second, self.outcomes[t], weights, layers, features, float(self.radii[t]))
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
        features[counted, 0] = sign[counted] * self.counts.contrasts[groups, :, rows]
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
            half[lane] = (sign[:, None] * log.counts.contrasts[group, :, rows] * (rows >= 0)[:, None]).sum(axis=0)
        total = offered.middles.sum(axis=0)
        log.adversary = np.stack([total - half, total + half], axis=1)

    def to_arrays(self) -> dict[str, Any]:
        """Everything needed to rebuild this log exactly, as plain arrays."""
        n, offered = self.rounds, self.offered
        shape = [self.lanes, self.dim, offered.keep_sets, self.n_layers, offered.n_sets, offered.max_sets or 0]
        return {
            "shape": np.array(shape),
            "discount": np.array(self.discount),
            **{name: getattr(self, name)[:n] for name in _COLUMNS},
            "contrasts": self.counts.contrasts[:, :, : int(self.counts.n_rows.max())],
            **offered.to_arrays(n),
            **({} if offered.sample is None else {"adversary": self.adversary}),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> HistoryLog:
        """Rebuild a log from `to_arrays`, bit for bit."""
        try:
            lanes, dim, keep_sets, n_layers, n_sets, max_sets = (int(v) for v in arrays["shape"])
            stored = cls(lanes, dim, bool(keep_sets), n_layers, float(arrays["discount"]), max_sets or None)
            for name in _COLUMNS:
                setattr(stored, name, arrays[name])
            stored.counts.contrasts = arrays["contrasts"]
            stored.offered.fill_from(arrays, n_sets)
            log = stored.replay(len(stored.slots))
            if stored.offered.sample is not None:
                log.offered.sample, log.adversary = stored.offered.sample, arrays["adversary"].copy()
        except KeyError as error:
            raise SavedStateError(f"the saved history lacks {error}; it was not written by duelist.") from error
        log.offered.remember_all_of(stored.offered)
        return log
