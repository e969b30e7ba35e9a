"""The box as an action set: every feature has its own interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import MEMBERSHIP, ContinuousActions, in_lanes, refuse_infinite
from duelist.actions.support import SupportForm
from duelist.core.errors import EmptySetError, InvalidInputError, UnboundedSetError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray


@stored("box-actions")
class BoxActions(ContinuousActions):
    """The box { phi : low_i <= phi_i <= high_i }.

    With centre c and half-widths w its support function is <c, theta> + sum_i w_i |theta_i|, attained at the corner whose
    i-th entry is high_i where theta_i >= 0 and low_i where it is negative.

    Args:
        low: (dim,) for the same box in every lane, or (lanes, dim).
        high: of the shape of low.
        lanes: number of independent runs, where low and high do not say.

    Example:
        >>> BoxActions([0.0, -1.0], [2.0, 1.0]).best(np.array([[[1.0, -3.0]]])).features
        array([[[ 2., -1.]]])
    """

    def __init__(self, low: npt.ArrayLike, high: npt.ArrayLike, lanes: int = 1) -> None:
        for name, value in (("low", low), ("high", high)):
            refuse_infinite(name, value, UnboundedSetError, "In an unbounded set no arm is best: give every feature a bound.")
        self.low, self.high = in_lanes("low", low, 1, lanes), in_lanes("high", high, 1, lanes)
        if self.low.shape != self.high.shape:
            raise InvalidInputError(f"low and high must have one shape; got {self.low.shape} and {self.high.shape}.")
        if (self.low > self.high).any():
            lane, i = (int(index) for index in np.argwhere(self.low > self.high)[0])
            raise EmptySetError(
                f"low must be at most high; feature {i} of lane {lane} has low {self.low[lane, i]:g} above high "
                f"{self.high[lane, i]:g}, so the box is empty. Swap them."
            )
        self.lanes, self.dim = self.low.shape

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        return {"low": self.low, "high": self.high}

    @property
    def form(self) -> SupportForm:
        """A centre and half-widths."""
        nothing = SupportForm.nothing(self.lanes, self.dim)
        return nothing._replace(centre=0.5 * (self.low + self.high), half_widths=0.5 * (self.high - self.low))

    def _best(self, theta: FloatArray) -> FloatArray:
        return np.where(theta >= 0.0, self.high[:, None], self.low[:, None])

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        slack = MEMBERSHIP * (1.0 + np.maximum(np.abs(self.low), np.abs(self.high)))[:, None]
        return np.asarray(((points >= self.low[:, None] - slack) & (points <= self.high[:, None] + slack)).all(axis=2))

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One uniform point of the box per lane, (lanes, dim)."""
        return self.low + (self.high - self.low) * generator.random(self.low.shape)
