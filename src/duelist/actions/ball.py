"""The ball and the sphere as action sets: every vector of at most, or of exactly, a given length may be compared."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import MEMBERSHIP, ContinuousActions, refuse_infinite
from duelist.actions.finite import Best
from duelist.actions.support import SupportForm
from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import UnboundedSetError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray


@stored("ball-actions")
class BallActions(ContinuousActions):
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
        refuse_infinite("radius", radius, UnboundedSetError, "In an unbounded set no arm is best.")
        self.radius = finite_number("radius", radius, above=0.0)

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        return {"ball": np.array([float(self.lanes), float(self.dim), self.radius])}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The set that `to_arrays` took apart."""
        lanes, dim, radius = (float(number) for number in arrays["ball"])
        return cls(int(lanes), int(dim), radius)

    @property
    def form(self) -> SupportForm:
        """A round ellipsoid."""
        shapes = np.broadcast_to(self.radius * np.eye(self.dim), (self.lanes, 1, self.dim, self.dim))
        return SupportForm.nothing(self.lanes, self.dim)._replace(shapes=shapes.copy())

    def best(self, theta: FloatArray) -> Best:
        """Maximise <theta, phi> over the ball, for theta of shape (lanes, draws, dim); arms of a ball have no rows."""
        self._check("theta", "draws", theta)
        # Dividing by the largest entry first keeps the length of very long and very short theta exact.
        scale = np.abs(theta).max(axis=2, keepdims=True)
        nowhere = scale == 0.0
        direction = theta / np.where(nowhere, 1.0, scale)
        direction[..., :1] += nowhere
        length = np.linalg.norm(direction, axis=2, keepdims=True)
        value = (self.radius * length * scale)[..., 0]
        return Best(value, np.full(value.shape, -1, dtype=np.int64), direction * (self.radius / length))

    def _best(self, theta: FloatArray) -> FloatArray:
        return self.best(theta).features

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(np.linalg.norm(points, axis=2) <= self.radius * (1.0 + MEMBERSHIP))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One uniform point of the ball per lane, (lanes, dim): a direction at a radius whose dim-th power is uniform."""
        lengths = generator.random((self.lanes, 1)) ** (1.0 / self.dim)
        return self.radius * lengths * directions(generator, self.lanes, self.dim)


@stored("sphere-actions")
class SphereActions(BallActions):
    """The sphere { phi : |phi| = radius }, the same in every lane. Its best points and support function are the ball's.

    Example:
        >>> sphere = SphereActions(lanes=1, dim=2)
        >>> sphere.contains([[[0.6, 0.8], [0.0, 0.5]]])
        array([[ True, False]])
    """

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        return np.asarray(np.abs(np.linalg.norm(points, axis=2) - self.radius) <= self.radius * MEMBERSHIP)

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One uniform point of the sphere per lane, (lanes, dim)."""
        return self.radius * directions(generator, self.lanes, self.dim)


def directions(generator: np.random.Generator, lanes: int, dim: int) -> FloatArray:
    """(lanes, dim) independent uniform unit vectors."""
    normals = generator.standard_normal((lanes, dim))
    return np.asarray(normals / np.linalg.norm(normals, axis=1, keepdims=True))
