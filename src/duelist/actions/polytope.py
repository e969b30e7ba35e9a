"""The polytope { phi : A phi <= b } as an action set: by its vertices where they are few, else by linear programmes."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import MEMBERSHIP, ContinuousActions, refuse_infinite
from duelist.actions.support import SupportForm
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import EmptySetError, InvalidInputError, NotConvergedError, UnboundedSetError
from duelist.core.stored_names import stored
from duelist.kernels.actions import finite_best
from duelist.typing import FloatArray


@stored("polytope-actions")
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
        """One point per lane, (lanes, dim), nearly uniform: 50 dim steps of hit-and-run from the middle."""
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


_INFEASIBLE, _UNBOUNDED = 2, 3
_MOST_VERTICES = 4096  # more than this and a scan is no longer cheap
_MOST_POSSIBLE = 100_000  # vertices that there might be: beyond, listing them may take for ever
_FLAT = 1e-7  # a polytope thinner than this, relative to its size, has no volume


class Inside(NamedTuple):
    """A point well inside a polytope, and the directions in which the polytope extends.

    Attributes:
        middle: (dim,) the point.
        basis: (dim, r) an orthonormal basis of those directions; r = dim unless the polytope is flat.
    """

    middle: FloatArray
    basis: FloatArray


def _solve(objective: FloatArray, A: FloatArray, b: FloatArray, **more: Any) -> Any:
    from scipy.optimize import linprog  # here: a fifth of a second to import, and only polytopes need it

    return linprog(objective, A_ub=A, b_ub=b, **{"bounds": (None, None), "method": "highs-ds", **more})


def bounding_box(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray] | Literal["empty"] | int:
    """The smallest box around the polytope: low and high, each (dim,); or "empty"; or a coordinate that is unbounded."""
    dim = A.shape[1]
    if _solve(np.zeros(dim), A, b).status == _INFEASIBLE:
        return "empty"
    low, high = np.empty(dim), np.empty(dim)
    for i in range(dim):
        for sign, edge in ((1.0, low), (-1.0, high)):
            answer = _solve(sign * np.eye(dim)[i], A, b)
            if answer.status != 0:  # 3, or 4 for "infeasible or unbounded", and it is feasible
                return i
            edge[i] = answer.x[i]
    return low, high


def maximiser(A: FloatArray, b: FloatArray, theta: FloatArray) -> FloatArray:
    """A vertex of a bounded polytope where <theta, x> is largest."""
    scale = float(np.abs(theta).max())
    # HiGHS has an absolute tolerance, so short and long theta are scaled to the same length. At 0, theta = e_1 decides.
    answer = _solve(-theta / scale if scale > 0.0 else -np.eye(len(theta))[0], A, b)
    if answer.status != 0:
        raise NotConvergedError(
            f"the linear programme over a polytope ended without an answer ({answer.message}). Scale A and b so that their "
            f"entries are near 1."
        )
    return np.asarray(answer.x)


def inside(A: FloatArray, b: FloatArray, size: float) -> Inside:
    """The centre of a largest ball in the polytope; where it is flat, of a largest ball in the flat that it spans."""
    dim = A.shape[1]
    everything = _deepest(A, b, np.zeros(len(b), dtype=bool), size)
    if everything[-1] > _FLAT * size:
        return Inside(everything[:dim], np.eye(dim))
    # Rows that no point can leave slack are equalities; the polytope extends in their null space only.
    tight = np.array([b[i] - A[i] @ maximiser(A, b, -A[i]) <= _FLAT * (1.0 + abs(b[i])) for i in range(len(b))])
    _, lengths, axes = np.linalg.svd(A[tight]) if tight.any() else (None, np.zeros(0), np.eye(dim))
    rank = int((lengths > 1e-10 * lengths.max(initial=0.0)).sum())
    middle = _deepest(A, b, tight, max(size, 1.0))[:dim]
    return Inside(middle, axes[rank:].T)


def _deepest(A: FloatArray, b: FloatArray, tight: Any, size: float) -> FloatArray:
    """(x, t): the point x whose distance t from every row that is not `tight` is largest."""
    lengths = np.where(tight, 0.0, np.linalg.norm(A, axis=1))
    bounds = [(None, None)] * A.shape[1] + [(0.0, size)]
    answer = _solve(np.r_[np.zeros(A.shape[1]), -1.0], np.c_[A, lengths], b, bounds=bounds)
    if answer.status != 0:
        raise NotConvergedError(f"no point inside the polytope was found ({answer.message}). Scale A and b to entries near 1.")
    return np.asarray(answer.x)


def most_vertices(dim: int, facets: int) -> int:
    """The largest number of vertices that a polytope with that many facets can have (McMullen's upper bound theorem)."""
    if facets <= dim:
        return 0
    half, rest = dim // 2, (dim + 1) // 2
    return math.comb(facets - rest, half) + math.comb(facets - half - 1, rest - 1)


def vertices_of(A: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray, within: Inside) -> FloatArray | None:
    """(n, dim) the vertices; None where there may be too many, or where qhull gives up.

    They are found in the coordinates of `within`: x = middle + basis u, in which the polytope has a volume.
    """
    middle, basis = within
    size = float((high - low).max())
    slopes, room = A @ basis, b - A @ middle
    used = np.abs(slopes).max(axis=1, initial=0.0) > 1e-9 * np.abs(A).max(axis=1)
    if most_vertices(basis.shape[1], int(used.sum())) > _MOST_POSSIBLE:
        return None
    corners = _corners(slopes[used], room[used])
    if corners is None:
        return None
    corners = middle + corners @ basis.T
    _, first = np.unique(np.round(corners / (1e-9 * (size or 1.0))), axis=0, return_index=True)
    if not len(first) or len(first) > _MOST_VERTICES:
        return None
    vertices = np.array([_polished(A, b, corners[i], size or 1.0) for i in np.sort(first)])
    # The vertices are all there only if they span the bounding box.
    spans = np.abs(vertices.min(axis=0) - low).max(), np.abs(vertices.max(axis=0) - high).max()
    return vertices if max(spans) <= 1e-6 * (size + np.abs(low).max() + np.abs(high).max()) else None


def _corners(A: FloatArray, b: FloatArray) -> FloatArray | None:
    """Corners (n, r) of { u : A u <= b }, which has 0 well inside; some may come twice."""
    dim = A.shape[1]
    if dim == 0:
        return np.zeros((1, 0))
    if dim == 1:
        ends = b / A[:, 0]
        return np.array([[ends[A[:, 0] > 0.0].min()], [ends[A[:, 0] < 0.0].max()]])
    from scipy.spatial import HalfspaceIntersection, QhullError

    try:
        corners = HalfspaceIntersection(np.c_[A, -b], np.zeros(dim)).intersections
    except QhullError:
        return None  # too thin for qhull: linear programmes will do
    return np.asarray(corners[np.isfinite(corners).all(axis=1)])


def _polished(A: FloatArray, b: FloatArray, corner: FloatArray, size: float) -> FloatArray:
    """The corner to machine precision: the point where its active constraints meet."""
    lengths = np.linalg.norm(A, axis=1)
    active = (np.abs(A @ corner - b) <= 1e-8 * size * lengths) & (lengths > 0.0)
    met, _, rank, _ = np.linalg.lstsq(A[active], b[active], rcond=None)
    if rank < len(corner):
        return corner
    if active.sum() == rank:
        met = np.linalg.solve(A[active], b[active])  # exact where the numbers are: no squares are taken
    return np.asarray(met) + 0.0  # no negative zeros
