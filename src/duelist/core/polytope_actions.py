"""The polytope { phi : A phi <= b } as an action set: by its vertices where they are few, else by linear programmes."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.action_kernels import finite_best
from duelist.core.checks import FloatArray, finite_array, whole_number
from duelist.core.continuous import MEMBERSHIP, ContinuousActions, refuse_infinite
from duelist.core.errors import EmptySetError, InvalidInputError, UnboundedSetError
from duelist.core.polytope_geometry import Inside, bounding_box, inside, maximiser, vertices_of
from duelist.core.support import SupportForm


class PolytopeActions(ContinuousActions):
    """The polytope { phi : A phi <= b }, the same in every lane.

    A linear function is largest at a vertex. Where the vertices are few (at most 4096) they are listed once, and a maximum is a
    compiled scan; else every maximum is a linear programme (SciPy's HiGHS), exact to its tolerance of 1e-7 relative to the
    largest entry of theta. Among equally good vertices any may be the answer.

    Args:
        A: (m, dim) one row a constraint. Give an equality as two rows.
        b: (m,).
        lanes: number of independent runs.

    Example:
        >>> triangle = PolytopeActions([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0])
        >>> triangle.best(np.array([[[1.0, 2.0]]])).features
        array([[[0., 1.]]])
    """

    def __init__(self, A: npt.ArrayLike, b: npt.ArrayLike, lanes: int = 1) -> None:
        refuse_infinite("b", b, UnboundedSetError, "Leave out the constraints that are none.")
        self.A, self.b = finite_array("A", A, "(m, dim)", 2).copy(), finite_array("b", b, "(m,)", 1).copy()
        self.lanes = whole_number("lanes", lanes, at_least=1)
        if self.b.shape != (len(self.A),) or 0 in self.A.shape:
            raise InvalidInputError(
                f"A must be (m, dim) and b (m,) with at least one constraint and one dimension; got {self.A.shape} and "
                f"{self.b.shape}."
            )
        self.dim = self.A.shape[1]
        found = bounding_box(self.A, self.b)
        if found == "empty":
            raise EmptySetError(
                f"no phi satisfies all {len(self.b)} constraints A phi <= b: the polytope is empty. Check the signs; for "
                f"phi_i >= c the row is -e_i and the bound -c."
            )
        if isinstance(found, int):
            raise UnboundedSetError(
                f"the polytope is unbounded: feature {found} can be as large or as small as one likes, so for some theta no "
                f"arm is best. Add bounds on it to A and b."
            )
        self.low, self.high = found

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        return {"A": self.A, "b": self.b, "lanes": self.lanes}

    @cached_property
    def vertices(self) -> FloatArray | None:
        """(n, dim) all vertices; None where there may be too many to list."""
        return vertices_of(self.A, self.b, self.low, self.high, self._inside)

    @cached_property
    def _inside(self) -> Inside:
        return inside(self.A, self.b, float((self.high - self.low).max()))

    @cached_property
    def _columns(self) -> FloatArray | None:
        if self.vertices is None:
            return None
        return np.ascontiguousarray(np.broadcast_to(self.vertices.T, (self.lanes, self.dim, len(self.vertices))))

    @property
    def form(self) -> SupportForm | None:
        """The vertices, where they are listed."""
        if self._columns is None:
            return None
        return SupportForm.nothing(self.lanes, self.dim)._replace(points=(self._columns,))

    def _best(self, theta: FloatArray) -> FloatArray:
        features = np.empty(theta.shape)
        if self._columns is not None:
            value, row = np.empty(theta.shape[:2]), np.empty(theta.shape[:2], dtype=np.int64)
            finite_best(self._columns, np.ascontiguousarray(theta), value, row, features)
            return features
        for lane, draw in np.ndindex(*theta.shape[:2]):
            features[lane, draw] = maximiser(self.A, self.b, theta[lane, draw])
        return features

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        # HiGHS holds constraints to 1e-7; a maximiser that it found must count as inside.
        tolerance = MEMBERSHIP if self._columns is not None else 1e-6
        slack = tolerance * (1.0 + np.abs(self.b) + np.abs(self.A) @ np.maximum(np.abs(self.low), np.abs(self.high)))
        return np.asarray((points @ self.A.T <= self.b + slack).all(axis=2))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One point a lane, (lanes, dim), nearly uniform: 50 dim steps of hit-and-run from the middle."""
        middle, basis = self._inside
        points = np.tile(middle, (self.lanes, 1))
        if basis.shape[1] == 0:
            return points
        for _ in range(50 * self.dim):
            direction = generator.standard_normal((self.lanes, basis.shape[1])) @ basis.T
            speed, room = direction @ self.A.T, np.maximum(self.b - points @ self.A.T, 0.0)
            # Constraints along which this direction runs parallel do not stop it.
            still = np.abs(speed) <= 1e-12 * np.abs(direction).max()
            reach = room / np.where(still, 1.0, speed)
            forward = np.where(still | (speed < 0.0), np.inf, reach).min(axis=1)
            backward = np.where(still | (speed > 0.0), -np.inf, reach).max(axis=1)
            points = points + (backward + (forward - backward) * generator.random(self.lanes))[:, None] * direction
        return points
