"""The ellipsoid as an action set: a ball, stretched and moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.ball import BallActions
from duelist.actions.continuous import MEMBERSHIP, ContinuousActions, in_lanes, refuse_infinite
from duelist.actions.support import SupportForm
from duelist.core.errors import InvalidInputError, UnboundedSetError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray


@stored("ellipsoid-actions")
class EllipsoidActions(ContinuousActions):
    """The ellipsoid { centre + shape u : |u| <= 1 }.

    Its support function is <centre, theta> + |shape^T theta|, attained at centre + shape v with v = shape^T theta scaled to
    length 1. For { phi : (phi - c)^T Q (phi - c) <= 1 } take shape = inv(cholesky(Q)).T.

    Args:
        shape: (dim, dim) for the same ellipsoid in every lane, or (lanes, dim, dim); not singular.
        centre: (dim,) or (lanes, dim); None for the origin.
        lanes: number of independent runs, where shape does not say.

    Example:
        >>> EllipsoidActions([[2.0, 0.0], [0.0, 1.0]]).support(np.array([[[1.5, 4.0]]]))
        array([[5.]])
    """

    def __init__(self, shape: npt.ArrayLike, centre: npt.ArrayLike | None = None, lanes: int = 1) -> None:
        refuse_infinite("shape", shape, UnboundedSetError, "In an unbounded set no arm is best.")
        self.shape = in_lanes("shape", shape, 2, lanes)
        self.lanes, self.dim, width = self.shape.shape
        if width != self.dim:
            raise InvalidInputError(f"shape must be square, (dim, dim); got {self.shape.shape[1:]}.")
        self.centre = in_lanes("centre", np.zeros(self.dim) if centre is None else centre, 1, self.lanes)
        if self.centre.shape != (self.lanes, self.dim):
            raise InvalidInputError(
                f"centre must be ({self.dim},) or ({self.lanes}, {self.dim}), as shape says; got {self.centre.shape}."
            )
        if (np.linalg.cond(self.shape) > 1e12).any():
            raise InvalidInputError(
                "shape must not be singular; got one whose ellipsoid is flat in some direction. Drop that direction from the "
                "features, or use ProductActions of a smaller ellipsoid and a fixed box."
            )

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        return {"shape": self.shape, "centre": self.centre}

    @property
    def form(self) -> SupportForm:
        """A centre and a shape."""
        return SupportForm.nothing(self.lanes, self.dim)._replace(centre=self.centre, shapes=self.shape[:, None])

    def _best(self, theta: FloatArray) -> FloatArray:
        # The ball's answer to shape^T theta, which is careful with very short and very long vectors.
        pulled = BallActions(self.lanes, self.dim).best(np.einsum("lij,lki->lkj", self.shape, theta)).features
        return np.asarray(self.centre[:, None] + np.einsum("lij,lkj->lki", self.shape, pulled))

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        moved = np.linalg.solve(self.shape, np.swapaxes(points - self.centre[:, None], 1, 2))
        return np.asarray(np.linalg.norm(moved, axis=1) <= 1.0 + MEMBERSHIP)

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One uniform point of the ellipsoid a lane, (lanes, dim)."""
        point = BallActions(self.lanes, self.dim).sample(generator)
        return np.asarray(self.centre + np.einsum("lij,lj->li", self.shape, point))
