"""Action sets. A set answers one question, `best(theta)`; choosing, the Feel-Good maximum and regret all ask it.

Arrays carry a leading axis of lanes, and `theta` a second axis of draws: the two posterior draws of a duel ask together.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.kernels.actions import fingerprint_arms, finite_best
from duelist.kernels.philox import arm_uniforms
from duelist.typing import FloatArray, IntArray

_LARGE_SET, _ARMS_AT_A_TIME = 2**17, 256
_SAME_ARM = 1e-9  # features that differ by less than this, relative to their size, are those of one arm


class Best(NamedTuple):
    """The answer of an action set.

    Attributes:
        value: (lanes, draws) the maximum of <theta, phi> over the set: its support function.
        row: (lanes, draws) the row that attains it, lowest first among equals; -1 where arms have no rows.
        features: (lanes, draws, dim) the feature vector that attains it.
    """

    value: FloatArray
    row: IntArray
    features: FloatArray


class ActionSet(Protocol):
    """What may be compared in one round, for every lane."""

    @property
    def lanes(self) -> int:
        """Number of independent runs."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def digest(self) -> bytes:
        """A fingerprint of the content: sets with the same digest are the same set, and the history counts them as one."""

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the set, for theta of shape (lanes, draws, dim)."""


def digest_of(features: FloatArray) -> bytes:
    """A fingerprint of features (lanes, n_arms, dim), without a copy of them."""
    fingerprint = hashlib.blake2b(struct.pack("=3q", *features.shape), digest_size=16)
    fingerprint.update(np.ascontiguousarray(features).data)
    return fingerprint.digest()


def arms_last(features: FloatArray) -> FloatArray:
    """Features (lanes, n_arms, dim) as (lanes, dim, n_arms); part by part where they do not fit the processor's cache."""
    if features.size < _LARGE_SET:
        return features.transpose(0, 2, 1).copy()
    columns = np.empty((features.shape[0], features.shape[2], features.shape[1]))
    for begin in range(0, features.shape[1], _ARMS_AT_A_TIME):
        columns[:, :, begin : begin + _ARMS_AT_A_TIME] = features[:, begin : begin + _ARMS_AT_A_TIME].transpose(0, 2, 1)
    return columns


@stored("finite-actions")
class FiniteActions:
    """A finite set of arms for every lane.

    Args:
        features: (lanes, n_arms, dim), or (n_arms, dim) for one lane. At least two arms: a duel needs two candidates.

    Attributes:
        features: (lanes, n_arms, dim), read-only.
        columns: (lanes, dim, n_arms), the same with arms last.
        offsets: (lanes, n_arms) what is added to every arm's utility; None for nothing. See `OffsetActions`.
        lanes: number of independent runs.
        n_arms: number of arms, the same for every lane.
        dim: length of a feature vector.

    Example:
        >>> arms = FiniteActions([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> arms.best(np.array([[[0.2, 0.9]]])).row
        array([[1]])
    """

    features: FloatArray
    columns: FloatArray
    offsets: FloatArray | None = None
    lanes: int
    n_arms: int
    dim: int

    def __init__(self, features: npt.ArrayLike) -> None:
        array = finite_array("features", features, "(n_arms, dim) or (lanes, n_arms, dim)", 2, 3)
        if array.shape[-2] < 2 or array.shape[-1] < 1:
            raise InvalidInputError(
                f"features must be (n_arms, dim) with n_arms >= 2 and dim >= 1; got {array.shape}. A duel needs two candidates."
            )
        # Copies: the caller may fill its array again for the next round.
        self.features = array.reshape(-1, *array.shape[-2:]).copy()
        # (lanes, dim, n_arms): with arms last, utilities of all arms are vector operations whatever the dimension.
        self.columns = arms_last(self.features)
        self.features.setflags(write=False)
        self.lanes, self.n_arms, self.dim = self.features.shape

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the features, so that rounds offering the same arms are counted instead of stored."""
        return digest_of(self.features)

    @cached_property
    def fingerprints(self) -> npt.NDArray[np.uint64]:
        """(lanes, n_arms) a number for the content of every arm.

        Random numbers that belong to an arm are named by its content, never by its row: then permuting the arms permutes
        the choice, and nothing else.
        """
        prints = np.empty(self.features.shape[:2], dtype=np.uint64)
        fingerprint_arms(prints, self.columns.view(np.uint64))
        return prints

    def random_priority(self, streams: Streams, name: str, round_: int) -> FloatArray:
        """(lanes, n_arms) one uniform number in (0, 1) per arm for a round of the named stream; equal arms get equal numbers.

        Example:
            >>> from duelist.core import Streams
            >>> FiniteActions([[1.0], [2.0], [1.0]]).random_priority(Streams(0, [0]), "ties", 0).round(3).tolist()
            [[0.65, 0.101, 0.65]]
        """
        numbers = np.empty((self.lanes, self.n_arms))
        arm_uniforms(numbers, self.fingerprints, streams.keys(name), round_)
        return numbers

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the arms, for theta of shape (lanes, draws, dim)."""
        self._check_theta(theta)
        lanes, draws, _ = theta.shape
        value = np.empty((lanes, draws))
        row = np.empty((lanes, draws), dtype=np.int64)
        features = np.empty((lanes, draws, self.dim))
        finite_best(self.columns, theta, value, row, features)
        return Best(value, row, features)

    def _check_theta(self, theta: FloatArray) -> None:
        if theta.ndim != 3 or theta.shape[::2] != (self.lanes, self.dim):
            raise InvalidInputError(
                f"theta must be ({self.lanes}, draws, {self.dim}), as these arms have {self.lanes} lane(s) of dimension "
                f"{self.dim}; got {theta.shape}. Offer arms of the dimension that the policy was started with."
            )

    @property
    def nbytes(self) -> int:
        """Bytes that the features take."""
        return self.features.nbytes

    def arms_at(self, rows: IntArray) -> FloatArray:
        """Features (lanes, n, dim) of the arms of these rows (lanes, n)."""
        return self.features[np.arange(self.lanes)[:, None], rows]

    def contains(self, features: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which of the points (lanes, n, dim) are arms, up to rounding: (lanes, n)."""
        points = finite_array("features", features, f"({self.lanes}, n, {self.dim})", 3)
        if points.shape[::2] != (self.lanes, self.dim):
            raise InvalidInputError(f"features must be ({self.lanes}, n, {self.dim}); got {points.shape}.")
        away = np.abs(points[:, :, None] - self.features[:, None]).max(axis=3).min(axis=2)
        return np.asarray(away <= _SAME_ARM * (1.0 + np.abs(points).max(axis=2)))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One uniformly random arm per lane, (lanes, dim)."""
        return self.features[np.arange(self.lanes), generator.integers(self.n_arms, size=self.lanes)]

    def take(self, rows: IntArray) -> FiniteActions:
        """The set of some rows (n,), the same in every lane.

        Example:
            >>> FiniteActions([[1.0], [2.0], [3.0]]).take(np.array([2, 0])).features.tolist()
            [[[3.0], [1.0]]]
        """
        return FiniteActions(self.features[:, rows])

    def to_arrays(self) -> dict[str, npt.NDArray[np.floating[Any]]]:
        """What `from_arrays` needs to make the same set again; in single precision where that holds every number exactly."""
        with np.errstate(over="ignore"):
            single = self.features.astype(np.float32)
        return {"features": single if (single == self.features).all() else self.features}

    @classmethod
    def from_arrays(cls, arrays: dict[str, FloatArray]) -> FiniteActions:
        """The set that `to_arrays` took apart."""
        return cls(arrays["features"])

    def utilities(self, theta: FloatArray) -> FloatArray:
        """Utility of every arm under theta (lanes, dim): (lanes, n_arms)."""
        return np.asarray(np.einsum("lkd,ld->lk", self.features, theta))


class OffsetActions(FiniteActions):
    """Arms to choose from whose utility is <theta, phi_k> + offset_k: minus what each costs, for instance.

    An offset is a further feature whose weight is known to be 1, so whatever chooses by utilities and by how well they are
    known needs no other rule. Answers are learnt with the arms alone: a vote says nothing about a cost.

    Args:
        arms: the arms.
        offsets: (lanes, n_arms) in the units of utility, log-odds.

    Attributes:
        arms: the same without offsets.

    Example:
        >>> arms = OffsetActions(FiniteActions([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, -2.0]]))
        >>> arms.best(np.array([[[0.2, 0.9]]])).row
        array([[0]])
    """

    offsets: FloatArray

    def __init__(self, arms: FiniteActions, offsets: FloatArray) -> None:
        if offsets.shape != (arms.lanes, arms.n_arms):
            raise InvalidInputError(
                f"offsets must be ({arms.lanes}, {arms.n_arms}), one for each arm; got {offsets.shape}. Use 0 for none."
            )
        self.arms, self.offsets = arms, offsets
        self.features, self.columns = arms.features, arms.columns
        self.lanes, self.n_arms, self.dim = arms.lanes, arms.n_arms, arms.dim
        self.__dict__["fingerprints"] = arms.fingerprints  # random numbers of an arm are the same whatever it costs

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the features and the offsets."""
        return hashlib.blake2b(self.arms.digest + self.offsets.tobytes(), digest_size=16).digest()

    @cached_property
    def extended_columns(self) -> FloatArray:
        """(lanes, dim + 1, n_arms) features with the offset as one more: what goes with `extended_weights`."""
        return np.concatenate([self.columns, self.offsets[:, None]], axis=1)

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> plus the offset."""
        lanes, draws, _ = theta.shape
        value, row = np.empty((lanes, draws)), np.empty((lanes, draws), dtype=np.int64)
        features = np.empty((lanes, draws, self.dim + 1))
        finite_best(self.extended_columns, extended_weights(theta), value, row, features)
        return Best(value, row, np.ascontiguousarray(features[:, :, : self.dim]))

    def utilities(self, theta: FloatArray) -> FloatArray:
        """Utility of every arm under theta (lanes, dim), plus its offset: (lanes, n_arms)."""
        return self.arms.utilities(theta) + self.offsets


def extended_weights(theta: FloatArray) -> FloatArray:
    """(..., dim + 1) weights theta (..., dim) and a 1, the weight of an offset."""
    return np.concatenate([theta, np.ones((*theta.shape[:-1], 1))], axis=-1)
