"""The action sets that were offered: all that the Feel-Good maximum needs of a history.

Distinct finite sets are kept with how often each was offered. Of balls one number is enough, however many there were: their
support functions R_i |theta| add up to (sum of R_i) |theta|. Other continuous sets are counted by `duelist.actions.support`.
Beyond a stated number of distinct finite sets, or of numbers in them, a sample of them is kept (`duelist.history.set_sample`).

A set has a number, its slot: 0, 1, ... for finite sets, BALL for any ball, and from CONTINUOUS downwards for other sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.actions.support import SupportSums
from duelist.core.arrays import GradualGrowth, capacity_for, enlarge, ensure_row, next_capacity
from duelist.history.set_sample import MOST_ARMS, SetSample
from duelist.kernels.history import fade
from duelist.typing import FloatArray

# Distinct action sets that are remembered as "the same as before". A set that returns after more than this many others
# is stored as if it were new: the statistics stay exact, they are only less compact.
_REMEMBERED_SETS = 4096
# Numbers in all sets together from which on sets are sampled: a gradient of the Feel-Good maximum reads every one.
_MOST_NUMBERS = 2**17
BALL = -1  # nothing is stored of a ball but its radius
CONTINUOUS = -2  # the slot of the first other continuous set; the next ones count down from it
Ints = npt.NDArray[np.integer[Any]]


class OfferedSets:
    """Grows round by round, in place.

    Attributes:
        keep_sets: whether sets are kept at all; without, they only get slots.
        max_sets: distinct finite sets from which on they are sampled; None for never.
        n_sets: slots of finite sets given so far.
        sets: (lanes, capacity, dim, n_arms) distinct finite sets, arms last; empty once they are sampled.
        repeats: (capacity,) how often each was offered.
        ball_reach: sum of the radii of the balls.
        continuous: sum of the support functions of other continuous sets.
        sample: a sample of the finite sets, once there are too many.
        middles: (rounds, lanes, dim) once sets are sampled, the mean of both candidates' features, one row per round.
    """

    def __init__(self, lanes: int, dim: int, *, keep_sets: bool, max_sets: int | None) -> None:
        self.lanes, self.dim, self.keep_sets, self.max_sets = lanes, dim, keep_sets, max_sets
        self.n_sets = 0
        self.sets = np.zeros((lanes, 0, dim, 0))
        self.repeats = np.zeros(0)
        self.ball_reach = 0.0
        self.continuous = SupportSums(lanes, dim)
        self.sample: SetSample | None = None
        self.middles = np.empty((0, lanes, dim))
        self._growth = GradualGrowth(axis=0)
        # Features of both candidates, one row per continuous set offered: its arms have no rows to look them up by.
        self._shown = np.empty((0, lanes, 2, dim))
        self._n_shown = 0
        self._remembered: dict[bytes, int] = {}  # slots by content, most recently used last

    def overflow_with(self, actions: ActionSet) -> bool:
        """Whether this set is one more than may be kept, so that sampling has to start."""
        if self.max_sets is None or self.sample is not None or not self.keep_sets or not isinstance(actions, FiniteActions):
            return False
        if actions.digest in self._remembered:
            return False
        numbers = (self.n_sets + 1) * self.dim * max(self.sets.shape[3], actions.n_arms)
        return not (self.n_sets < self.max_sets and numbers <= _MOST_NUMBERS)

    def slot_of(self, actions: ActionSet) -> int:
        """The slot of this set, a new one if its content was not seen lately."""
        if isinstance(actions, BallActions):
            return BALL
        digest = actions.digest
        slot = self._remembered.pop(digest, None)
        if slot is None and self.keep_sets and not isinstance(actions, FiniteActions):
            slot = CONTINUOUS - len(self.continuous.sets)
        if slot is None:
            slot = self.n_sets
            if isinstance(actions, FiniteActions) and self.keep_sets and self.sample is None:
                self._keep(actions)
            self.n_sets += 1
        if len(self._remembered) >= _REMEMBERED_SETS:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[digest] = slot
        return slot

    def _keep(self, actions: FiniteActions) -> None:
        arms = max(self.sets.shape[3], actions.n_arms)
        capacity = self.sets.shape[1]
        if self.n_sets == capacity or arms > self.sets.shape[3]:
            old = self.sets
            self.sets = np.zeros((self.lanes, next_capacity(capacity, self.n_sets + 1), self.dim, arms))
            self.sets[:, :capacity, :, : old.shape[3]] = old
            # A set with fewer arms is padded with copies of its first arm, which leave its maximum as it is.
            self.sets[:, :capacity, :, old.shape[3] :] = old[:, :, :, :1] if old.shape[3] else 0.0
            self.repeats = enlarge(self.repeats, 0, self.sets.shape[1])
        self.sets[:, self.n_sets, :, : actions.n_arms] = actions.columns
        self.sets[:, self.n_sets, :, actions.n_arms :] = actions.columns[:, :, :1]

    def start_sample(self, slots: Ints, first: Ints, second: Ints) -> None:
        """Go over from all sets to a sample of them, given slots (rounds,) and rows (rounds, lanes) of all past duels."""
        if self.max_sets is None:
            return
        numbers = self.dim * min(self.sets.shape[3], MOST_ARMS)
        size = max(min(self.max_sets // 4, _MOST_NUMBERS // (2 * max(numbers, 1))), 2)
        continuous, finite = np.flatnonzero(slots < 0), np.flatnonzero(slots >= 0)
        self.middles = np.zeros((len(slots), self.lanes, self.dim))
        self.middles[continuous] = self._shown[: self._n_shown].mean(axis=2)
        for lane in range(self.lanes):
            for rows in (first, second):
                self.middles[finite, lane] += 0.5 * self.sets[lane, slots[finite], :, rows[finite, lane]]
        self.sample = SetSample.of(self.middles[finite], lambda i: self.sets[:, slots[finite[i]]], size - size % 2)
        self.sets, self.repeats = np.zeros((self.lanes, 0, self.dim, 0)), np.zeros(0)

    def offer(self, actions: ActionSet, slot: int, features: FloatArray, round_: int) -> None:
        """Take in the set of a round whose candidates have features (lanes, 2, dim), beyond what `count` counts."""
        if slot <= CONTINUOUS:
            self.continuous.count(CONTINUOUS - slot, actions)
        if self.sample is not None:
            middle = features.mean(axis=1)
            self.middles = self._growth.make_room(self.middles, round_, 64)
            self.middles[round_] = middle
            if isinstance(actions, FiniteActions):
                self.sample.offer(actions.columns if self.sample.wants() else None, middle)

    def count(self, slot: int, features: FloatArray, radius: float) -> None:
        """Count the set of a round; `radius` is that of a ball, 0 for other sets."""
        if self.keep_sets and slot < 0:
            self._shown = ensure_row(self._shown, self._n_shown)
            self._shown[self._n_shown] = features
            self._n_shown += 1
            self.ball_reach += radius
        elif self.keep_sets and self.sample is None:
            self.repeats[slot] += 1.0

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far, for a history that forgets."""
        fade(self.repeats, factor)
        self.ball_reach *= factor
        self.continuous.fade(factor)

    def before(self, slots: Ints) -> OfferedSets:
        """What was offered before any of the rounds with these slots was counted, ready to count them again."""
        earlier = OfferedSets(self.lanes, self.dim, keep_sets=self.keep_sets, max_sets=self.max_sets)
        earlier.n_sets = int(slots.max(initial=-1)) + 1
        if self.sample is not None:
            earlier.sample = self.sample  # so that counting does not ask for sets that are gone
        elif self.keep_sets:
            earlier.sets = self.sets[:, : earlier.n_sets].copy()
            earlier.repeats = np.zeros(earlier.n_sets)
        return earlier

    def count_again(self, source: OfferedSets, slot: int, first: Ints, second: Ints) -> FloatArray | None:
        """Features (lanes, 2, dim) of a past duel of `source`, and its continuous set counted here; None if not kept."""
        if not self.keep_sets:
            return None
        if slot < 0:
            if slot <= CONTINUOUS:
                self.continuous.count(CONTINUOUS - slot, source.continuous.sets[CONTINUOUS - slot])
            return np.array(source._shown[self._n_shown])
        if source.sample is not None:
            return None
        lanes = np.arange(self.lanes)
        return np.stack([source.sets[lanes, slot, :, first], source.sets[lanes, slot, :, second]], axis=1)

    def remember_like(self, source: OfferedSets) -> None:
        """Recognise the sets that both know, as `source` does."""
        oldest = CONTINUOUS - len(self.continuous.sets)
        self._remembered = {digest: slot for digest, slot in source._remembered.items() if oldest < slot < self.n_sets}

    def remember_all_of(self, source: OfferedSets) -> None:
        """Recognise every set that `source` does, and number new ones as it would."""
        self.n_sets, self._remembered = source.n_sets, dict(source._remembered)

    def to_arrays(self, rounds: int) -> dict[str, Any]:
        """Everything needed to rebuild this value, as plain arrays."""
        return {
            "repeats": self.repeats[: self.n_sets].copy(),
            "shown": self._shown[: self._n_shown],
            "continuous": self.continuous.sets,
            "sets": self.sets[:, : self.n_sets] if self.keep_sets and self.sample is None else self.sets[:, :0],
            "digests": np.frombuffer(b"".join(self._remembered), dtype=np.uint8),
            "digest_slots": np.array(list(self._remembered.values()), dtype=np.int64),
            **({} if self.sample is None else {**self.sample.to_arrays(), "middles": self.middles[:rounds]}),
        }

    def fill_from(self, arrays: dict[str, Any], n_sets: int) -> None:
        """Take over what `to_arrays` wrote, except what is counted again from the log."""
        if "sample" in arrays:
            middles = arrays["middles"]
            self.sample, self.middles = SetSample.from_arrays(arrays), enlarge(middles, 0, capacity_for(len(middles) + 1))
        self.n_sets, self._shown, self.sets = n_sets, arrays["shown"], arrays["sets"]
        self.continuous.sets = list(arrays["continuous"])
        slots, digests = arrays["digest_slots"], arrays["digests"].tobytes()
        width = len(digests) // len(slots) if len(slots) else 0
        self._remembered = {digests[i * width : (i + 1) * width]: int(slot) for i, slot in enumerate(slots)}
