"""Products of action sets: a feature vector whose blocks come from sets of their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import ContinuousActions
from duelist.actions.custom import CustomActions
from duelist.actions.finite import FiniteActions
from duelist.actions.support import SupportForm
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray

Factor = ContinuousActions | FiniteActions | CustomActions


@stored("product-actions")
class ProductActions(ContinuousActions):
    """The product of sets: { (phi_1, ..., phi_n) : phi_i in factor i }, blocks side by side.

    Its support function is the sum of the factors' over their blocks of theta, and its best point is made of theirs. A
    product of finite sets is never listed: three sets of a hundred arms are a million arms, and three scans of a hundred.

    Args:
        factors: at least one set, all with the same number of lanes.

    Example:
        >>> from duelist.actions import BoxActions
        >>> wheel = ProductActions([FiniteActions([[1.0], [3.0]]), BoxActions([-1.0], [1.0])])
        >>> wheel.best(np.array([[[2.0, -1.0]]])).features
        array([[[ 3., -1.]]])
    """

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = tuple(factors)
        for factor in self.factors:
            if not all(hasattr(factor, name) for name in ("best", "contains", "sample", "lanes", "dim", "digest")):
                raise InvalidInputError(f"factors must be action sets; got {type(factor).__name__}.")
        if not self.factors or len({factor.lanes for factor in self.factors}) != 1:
            lanes = [factor.lanes for factor in self.factors]
            raise InvalidInputError(f"factors must be at least one set, all of one number of lanes; got lanes {lanes}.")
        self.lanes = self.factors[0].lanes
        self.dim = sum(factor.dim for factor in self.factors)
        edges = np.cumsum([0, *(factor.dim for factor in self.factors)])
        self.blocks = [slice(int(a), int(b)) for a, b in pairwise(edges)]

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        return {f"factor {i}": factor for i, factor in enumerate(self.factors)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The set that `to_arrays` took apart."""
        return cls([arrays[f"factor {i}"] for i in range(len(arrays))])

    @property
    def form(self) -> SupportForm | None:
        """The pieces of all factors, each in its block; None if a factor has none."""
        whole = SupportForm.nothing(self.lanes, self.dim)
        for factor, block in zip(self.factors, self.blocks, strict=True):
            form = _form_of(factor)
            if form is None:
                return None
            whole.centre[:, block], whole.half_widths[:, block] = form.centre, form.half_widths
            shapes = np.zeros((self.lanes, form.shapes.shape[1], self.dim, self.dim))
            shapes[:, :, block, block] = form.shapes
            points = []
            for piece in form.points:
                points.append(np.zeros((self.lanes, self.dim, piece.shape[2])))
                points[-1][:, block] = piece
            whole = whole._replace(shapes=np.concatenate([whole.shapes, shapes], axis=1), points=(*whole.points, *points))
        return whole

    def _best(self, theta: FloatArray) -> FloatArray:
        parts = [
            factor.best(np.ascontiguousarray(theta[..., block])).features
            for factor, block in zip(self.factors, self.blocks, strict=True)
        ]
        return np.concatenate(parts, axis=2)

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        inside = [f.contains(points[..., block]) for f, block in zip(self.factors, self.blocks, strict=True)]
        return np.asarray(np.all(inside, axis=0))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """A random point of every factor, side by side: (lanes, dim)."""
        return np.concatenate([factor.sample(generator) for factor in self.factors], axis=1)


def _form_of(factor: Factor) -> SupportForm | None:
    if isinstance(factor, FiniteActions):
        return SupportForm.nothing(factor.lanes, factor.dim)._replace(points=(factor.columns,))
    return factor.form
