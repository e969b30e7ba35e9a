"""Every duel of every lane as row numbers into the sets that were offered: what a nonlinear reward has to read.

For a linear reward contrasts are enough; here the arms themselves are needed. A set that is offered again is stored once and
counted, so with fixed arms a potential evaluates K rewards, however many rounds were played. Arrays are padded and grow by
doubling: code that is compiled for their shapes is compiled again only when they grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.history.duels import Duels, check_outcomes
from duelist.typing import FloatArray, IntArray

_FIRST_ROUNDS = 256
_MOST_AT_ONCE = 4096


@stored("duel-table")
class DuelTable(NamedTuple):
    """Duels learnt so far; a value, never changed in place.

    Attributes:
        sets: (lanes, n_sets, n_arms, dim) the distinct sets; a smaller set is filled up with copies of its first arm, which
            leave its maximum alone.
        repeats: (n_sets,) rounds that offered the set; 0 for padding.
        first: (lanes, capacity) place of the first arm among all arms of all sets, set * n_arms + row.
        second: (lanes, capacity) place of the second arm.
        outcomes: (lanes, capacity) +1, -1, or 0 for a tie; padding from `rounds` on.
        digests: fingerprints of the sets, in order, as hexadecimal digits.
        rounds: number of duels per lane.
    """

    sets: FloatArray
    repeats: FloatArray
    first: IntArray
    second: IntArray
    outcomes: FloatArray
    digests: tuple[str, ...]
    rounds: int

    @classmethod
    def start(cls, *, lanes: int, dim: int, horizon: int = 0) -> DuelTable:
        """No duels yet. A horizon makes room for that many at once, up to 4096, so that code is compiled only once."""
        capacity = _FIRST_ROUNDS
        while capacity < min(horizon, _MOST_AT_ONCE):
            capacity *= 2
        places = np.zeros((lanes, capacity), dtype=np.int64)
        return cls(np.zeros((lanes, 1, 2, dim)), np.zeros(1), places, places, np.zeros(places.shape), (), 0)

    def append(self, actions: FiniteActions, duels: Duels, outcomes: IntArray) -> DuelTable:
        """The table with one more duel per lane."""
        self._check(actions, duels, outcomes)
        table = self._with_room(actions.n_arms)
        sets, repeats, digests = table.sets, table.repeats.copy(), table.digests
        digest = actions.digest.hex()
        if digest in digests:
            place = digests.index(digest)
        else:
            place, digests = len(digests), (*digests, digest)
            if place == len(repeats):
                sets = np.concatenate([sets, np.zeros_like(sets)], axis=1)
                repeats = np.concatenate([repeats, np.zeros_like(repeats)])
            else:
                sets = sets.copy()
            sets[:, place] = actions.features[:, :1]
            sets[:, place, : actions.n_arms] = actions.features
        repeats[place] += 1.0
        n_arms, t = sets.shape[2], table.rounds
        first, second, results = table.first.copy(), table.second.copy(), table.outcomes.copy()
        first[:, t], second[:, t] = place * n_arms + duels.first, place * n_arms + duels.second
        results[:, t] = outcomes
        return DuelTable(sets, repeats, first, second, results, digests, t + 1)

    def _check(self, actions: FiniteActions, duels: Duels, outcomes: IntArray) -> None:
        lanes, _, _, dim = self.sets.shape
        if (actions.lanes, actions.features.shape[2]) != (lanes, dim):
            raise InvalidInputError(
                f"features must be for {lanes} lane(s) of dimension {dim}; got {actions.lanes} of {actions.features.shape[2]}."
            )
        for name, rows in (("first", duels.first), ("second", duels.second)):
            if np.shape(rows) != (lanes,) or (rows < 0).any() or (rows >= actions.n_arms).any():
                raise InvalidInputError(f"{name} must be (lanes,) = ({lanes},) rows below {actions.n_arms}; got {rows}.")
        check_outcomes(outcomes, lanes)

    def _with_room(self, n_arms: int) -> DuelTable:
        """The same duels with room for one more round and for sets of that many arms."""
        table, held = self, self.sets.shape[2]
        if n_arms > held:
            sets = np.repeat(table.sets[:, :, :1], n_arms, axis=2)
            sets[:, :, :held] = table.sets
            moved = [n_arms * (places // held) + places % held for places in (table.first, table.second)]
            table = table._replace(sets=sets, first=moved[0], second=moved[1])
        if table.rounds == table.first.shape[1]:
            first, second, outcomes = (
                np.concatenate([column, np.zeros_like(column)], axis=1)
                for column in (table.first, table.second, table.outcomes)
            )
            table = table._replace(first=first, second=second, outcomes=outcomes)
        return table
