"""Arms by their content: what a rule without features knows an arm by.

An arm has a place, given when it is first seen and never taken away; statistics of a rule are by place. Rows of an action set
are matched to places by the fingerprint of their features, so that arms may come, go, and stand in another order. A set with
the digest of the last one needs no matching. Rows with equal features are one arm, and its lowest row is played.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.history.duels import Duels
from duelist.typing import BoolArray, IntArray, Keys

Column = TypeVar("Column", bound=npt.NDArray[Any])
MOST_ARMS = 4096  # tables of pairs would have a gigabyte per lane beyond it


@stored("known-arms")
class KnownArms(NamedTuple):
    """The arms seen so far, and which of them are offered.

    Attributes:
        prints: (lanes, K) fingerprints by place, in the order of first sight; 0 where a lane knows fewer arms than others.
        order: (lanes, K) places in ascending order of fingerprints.
        number: (lanes,) arms that each lane knows.
        rows: (lanes, K) row of every arm in the set that was offered last; -1 where it was not in it.
        places: (lanes, n_arms) place of every row of that set.
        digest: of that set, as text.
        everyone: whether that set has all known arms, in every lane.
    """

    prints: Keys
    order: IntArray
    number: IntArray
    rows: IntArray
    places: IntArray
    digest: str
    everyone: bool

    @classmethod
    def start(cls, lanes: int) -> KnownArms:
        """Nothing seen."""
        nothing = np.empty((lanes, 0), dtype=np.int64)
        return cls(nothing.astype(np.uint64), nothing, np.zeros(lanes, dtype=np.int64), nothing, nothing, "", False)

    @property
    def size(self) -> int:
        """K."""
        return int(self.prints.shape[1])

    @property
    def offered(self) -> BoolArray:
        """(lanes, K) the arms of the last set."""
        return self.rows >= 0

    def meet(self, actions: FiniteActions) -> KnownArms:
        """The same with this set as the last: its new arms have places."""
        digest = actions.digest.hex()
        if digest == self.digest:
            return self
        known, places = self.place(actions.fingerprints)
        rows = np.full(known.prints.shape, -1)
        # Backwards, so that the lowest of several equal rows is written last and stays.
        np.put_along_axis(rows, places[:, ::-1], np.arange(actions.n_arms)[::-1][None], axis=1)
        return known._replace(rows=rows, places=places, digest=digest, everyone=bool((rows >= 0).all()))

    def find(self, actions: ActionSet, duels: Duels) -> tuple[KnownArms, IntArray]:
        """The places (2, lanes) of the two arms of every duel; of arms that were never offered, new ones."""
        if actions.digest.hex() == self.digest:
            lanes, places = np.arange(len(duels.first)), np.empty((2, len(duels.first)), dtype=np.int64)
            places[0], places[1] = self.places[lanes, duels.first], self.places[lanes, duels.second]
            return self, places
        known, places = self.place(FiniteActions(duels.features).fingerprints)
        return known, np.ascontiguousarray(places.T)

    def place(self, prints: Keys) -> tuple[KnownArms, IntArray]:
        """The places (lanes, n) of arms with these fingerprints (lanes, n), new ones for those not seen before."""
        same = self.prints[:, None] == prints[:, :, None]
        # A lane that knows fewer arms than others has zeros behind them.
        same &= (np.arange(self.size) < self.number[:, None])[:, None]
        places = np.where(same.any(axis=2), same.argmax(axis=2), -1) if self.size else np.full(prints.shape, -1)
        if (places >= 0).all():
            return self, places
        count, new = self.number.copy(), []
        for k in np.flatnonzero((places < 0).any(axis=0)):
            fresh = np.flatnonzero(places[:, k] < 0)
            places[fresh, k] = count[fresh]
            new.append((fresh, count[fresh], prints[fresh, k]))
            count[fresh] += 1
            # Further rows with the same content are the same arm.
            later = (places[fresh, k + 1 :] < 0) & (prints[fresh, k + 1 :] == prints[fresh, k, None])
            places[fresh, k + 1 :] = np.where(later, places[fresh, k, None], places[fresh, k + 1 :])
        size = int(count.max())
        if size > MOST_ARMS:
            raise InvalidInputError(
                f"a rule that compares arms without their features keeps at most {MOST_ARMS} different arms; got {size}. Where "
                f"arms are new in every round, use a rule that learns from features, such as FGTS."
            )
        known = np.zeros((len(count), size), dtype=np.uint64)
        known[:, : self.size] = self.prints
        for lanes, where, content in new:
            known[lanes, where] = content
        order = known.argsort(axis=1, kind="stable")
        return self._replace(prints=known, order=order, number=count, rows=padded(self.rows, size, -1), everyone=False), places


def padded(column: Column, size: int, value: float) -> Column:
    """A column (..., k) of numbers by place with room for `size` arms, the new ones with this value.

    Example:
        >>> padded(np.array([[1.0, 2.0]]), 3, 9.0)
        array([[1., 2., 9.]])
    """
    wider: Any = np.full((*column.shape[:-1], size), value, dtype=column.dtype)
    wider[..., : column.shape[-1]] = column
    grown: Column = wider
    return grown
