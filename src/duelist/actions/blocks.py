"""One context in a block of its own for every arm, without the zeros around it."""

from __future__ import annotations

import hashlib
import struct
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import Best, FiniteActions, arms_last
from duelist.core.checks import finite_array, whole_number
from duelist.core.stored_names import stored
from duelist.kernels.actions import block_best, fingerprint_blocks
from duelist.typing import FloatArray, IntArray


@stored("block-actions")
class BlockActions(FiniteActions):
    """Arms with a parameter vector each, that share one context x: <theta, phi_k> = <theta_k, x>, theta_k block k of theta.

    It is the set of the rows (0, ..., x, ..., 0), which `features` and `columns` build when something asks for them: a rule
    that looks at all arms at once. Drawing, the best arm under a draw, what is shown and what is kept need the context alone.

    Args:
        context: (lanes, n), or (n,) for one lane.
        n_arms: number of arms, at least two.

    Attributes:
        context: (lanes, n), read-only.

    Example:
        >>> arms = BlockActions([5.0, 7.0], n_arms=2)
        >>> arms.best(np.array([[[1.0, 0.0, 0.0, 1.0]]])).features
        array([[[0., 0., 5., 7.]]])
        >>> arms.features
        array([[[5., 7., 0., 0.],
                [0., 0., 5., 7.]]])
    """

    context: FloatArray

    def __init__(self, context: npt.ArrayLike, n_arms: int) -> None:
        array = finite_array("context", context, "(n,) or (lanes, n)", 1, 2)
        self.n_arms = whole_number("n_arms", n_arms, at_least=2)
        self.context = np.atleast_2d(array) + 0.0  # a copy, in which no zero is -0.0
        self.context.setflags(write=False)
        self.lanes, self.dim = len(self.context), n_arms * self.context.shape[1]

    @cached_property
    def features(self) -> FloatArray:  # type: ignore[override] # built when it is asked for
        """(lanes, n_arms, dim) the arms with all their zeros, read-only."""
        rows = self.arms_at(np.broadcast_to(np.arange(self.n_arms), (self.lanes, self.n_arms)))
        rows.setflags(write=False)
        return rows

    @cached_property
    def columns(self) -> FloatArray:  # type: ignore[override]
        """(lanes, dim, n_arms) the same with arms last."""
        return arms_last(self.features)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the context and the number of arms."""
        fingerprint = hashlib.blake2b(struct.pack("=6s3q", b"blocks", *self.context.shape, self.n_arms), digest_size=16)
        fingerprint.update(self.context.data)
        return fingerprint.digest()

    @cached_property
    def fingerprints(self) -> npt.NDArray[np.uint64]:
        """(lanes, n_arms) a number for the content of every arm, that of the same arm with all its zeros."""
        prints = np.empty((self.lanes, self.n_arms), dtype=np.uint64)
        fingerprint_blocks(prints, self.context.view(np.uint64))
        return prints

    @property
    def nbytes(self) -> int:
        """Bytes that the set takes."""
        return self.context.nbytes

    def arms_at(self, rows: IntArray) -> FloatArray:
        """Features (lanes, n, dim) of the arms of these rows (lanes, n)."""
        n = self.context.shape[1]
        arms = np.zeros((*rows.shape, self.n_arms, n))
        lanes, places = np.indices(rows.shape)
        arms[lanes, places, rows] = self.context[:, None]
        return arms.reshape(*rows.shape, self.dim)

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the arms, for theta of shape (lanes, draws, dim)."""
        self._check_theta(theta)
        value, row = np.empty(theta.shape[:2]), np.empty(theta.shape[:2], dtype=np.int64)
        block_best(self.context, theta, self.n_arms, value, row)
        return Best(value, row, self.arms_at(row))

    def utilities(self, theta: FloatArray) -> FloatArray:
        """Utility of every arm under theta (lanes, dim): (lanes, n_arms)."""
        return np.asarray(np.einsum("ln,lkn->lk", self.context, theta.reshape(self.lanes, self.n_arms, -1)))

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """What `from_arrays` needs to make the same set again."""
        return {"context": self.context, "n_arms": np.array(self.n_arms)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> BlockActions:
        """The set that `to_arrays` took apart."""
        return cls(arrays["context"], int(arrays["n_arms"]))
