"""What continuous action sets share: asking for the support function, checks at the door, a fingerprint, saving."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import Best
from duelist.actions.support import SupportForm
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray

# Points this much outside a set, relative to its size, count as inside: a maximiser is on the boundary up to rounding.
MEMBERSHIP = 1e-9


class ContinuousActions(ABC):
    """A set of feature vectors that are not listed one by one. Arms have no rows: `Best.row` is -1.

    A subclass says which arrays make it (`to_arrays`, the arguments of its constructor), what maximises <theta, phi> over it
    (`_best`), which points it holds (`_contains`), and how to draw one (`sample`).
    """

    lanes: int
    dim: int

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the content, so that rounds offering the same set are counted instead of stored."""
        return digest_of(type(self).__name__, *(_stamp(name, value) for name, value in self.to_arrays().items()))

    @property
    def form(self) -> SupportForm | None:
        """The support function in closed form; None where only `best` knows it."""
        return None

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the set, for theta of shape (lanes, draws, dim)."""
        self._check("theta", "draws", theta)
        features = self._best(theta)
        value = np.einsum("lkd,lkd->lk", theta, features)
        return Best(value, np.full(value.shape, -1, dtype=np.int64), features)

    def support(self, theta: FloatArray) -> FloatArray:
        """The support function, max of <theta, phi> over the set: (lanes, draws) for theta (lanes, draws, dim)."""
        return self.best(theta).value

    def contains(self, features: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of the points (lanes, n, dim) are in the set, up to rounding: (lanes, n)."""
        points = finite_array("features", features, f"({self.lanes}, n, {self.dim})", 3)
        self._check("features", "n", points)
        return self._contains(points)

    @abstractmethod
    def _best(self, theta: FloatArray) -> FloatArray:
        """The maximisers, of the shape of theta."""

    @abstractmethod
    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        """Membership of points (lanes, n, dim) that were checked."""

    @abstractmethod
    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One random point per lane, (lanes, dim)."""

    @abstractmethod
    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The set that `to_arrays` took apart."""
        return cls(**arrays)

    def _check(self, name: str, axis: str, array: FloatArray) -> None:
        if array.ndim != 3 or array.shape[::2] != (self.lanes, self.dim):
            raise InvalidInputError(
                f"{name} must be ({self.lanes}, {axis}, {self.dim}), as this {type(self).__name__} has {self.lanes} lane(s) of "
                f"dimension {self.dim}; got {array.shape}. Offer a set of the dimension that the policy was started with."
            )


def digest_of(kind: str, *parts: bytes) -> bytes:
    """Sixteen bytes that stand for a kind of set and its parts."""
    mixed = hashlib.blake2b(kind.encode(), digest_size=16)
    for part in parts:
        mixed.update(len(part).to_bytes(8, "little") + part)
    return mixed.digest()


def _stamp(name: str, value: Any) -> bytes:
    """Bytes that name one array of a set: a part that is itself a set gives its own fingerprint."""
    if hasattr(value, "digest"):
        return name.encode() + bytes(value.digest)
    array = np.asarray(value)
    return f"{name}/{array.shape}/".encode() + array.tobytes()


def in_lanes(name: str, value: npt.ArrayLike, axes: int, lanes: int) -> FloatArray:
    """`value` as an array of its own with a leading axis of lanes, repeated where it has only the other `axes`."""
    whole_number("lanes", lanes, at_least=1)
    expected = ", ".join(["dim"] * axes)
    array = finite_array(name, value, f"({expected}) or (lanes, {expected})", axes, axes + 1)
    if array.ndim == axes:
        array = np.broadcast_to(array, (lanes, *array.shape))
    elif lanes not in (1, len(array)):
        raise InvalidInputError(f"{name} has {len(array)} lane(s) and lanes is {lanes}; leave lanes out, or make them agree.")
    if 0 in array.shape:
        raise InvalidInputError(f"{name} must have at least one lane and one dimension; got shape {array.shape}.")
    return array.copy()


def refuse_infinite(name: str, value: npt.ArrayLike, error: type[InvalidInputError], why: str) -> None:
    """Raise `error` where a bound is infinite: it deserves another message than a NaN does."""
    try:
        infinite = np.isinf(np.asarray(value, dtype=np.float64)).any()
    except (TypeError, ValueError):
        return  # not numbers at all: the ordinary check says so
    if infinite:
        raise error(f"{name} must be finite; got {value!r}. {why}")
