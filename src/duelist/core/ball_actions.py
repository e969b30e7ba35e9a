"""The ball as an action set: every vector of at most a given length may be compared with every other."""

from __future__ import annotations

import hashlib
from functools import cached_property

import numpy as np

from duelist.core.actions import Best
from duelist.core.checks import FloatArray, finite_number, whole_number


class BallActions:
    """The ball { phi : |phi| <= radius }, the same in every lane.

    Its support function is radius * |theta|, attained at radius * theta / |theta|. At theta = 0 every point is as good as
    every other; the answer is then radius * e_1, so that the best point always lies on the sphere.

    Args:
        lanes: number of independent runs.
        dim: length of a feature vector.
        radius: of the ball; the theory asks for at most 1.

    Example:
        >>> BallActions(lanes=1, dim=2, radius=2.0).best(np.array([[[3.0, 4.0]]])).value
        array([[10.]])
    """

    def __init__(self, lanes: int, dim: int, radius: float = 1.0) -> None:
        self.lanes = whole_number("lanes", lanes, at_least=1)
        self.dim = whole_number("dim", dim, at_least=1)
        self.radius = finite_number("radius", radius, above=0.0)

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the shape and the radius."""
        return hashlib.blake2b(f"ball/{self.lanes}/{self.dim}/{self.radius.hex()}".encode(), digest_size=16).digest()

    def to_arrays(self) -> dict[str, FloatArray]:
        """What `from_arrays` needs to make the same set again."""
        return {"ball": np.array([float(self.lanes), float(self.dim), self.radius])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, FloatArray]) -> BallActions:
        """The set that `to_arrays` took apart."""
        lanes, dim, radius = (float(number) for number in arrays["ball"])
        return cls(int(lanes), int(dim), radius)

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the ball, for theta of shape (lanes, draws, dim); arms of a ball have no rows."""
        # Dividing by the largest entry first keeps the length of very long and very short theta exact.
        scale = np.abs(theta).max(axis=2, keepdims=True)
        nowhere = scale == 0.0
        direction = theta / np.where(nowhere, 1.0, scale)
        direction[..., :1] += nowhere
        length = np.linalg.norm(direction, axis=2, keepdims=True)
        value = (self.radius * length * scale)[..., 0]
        return Best(value, np.full(value.shape, -1, dtype=np.int64), direction * (self.radius / length))
