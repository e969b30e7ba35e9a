"""A user's own action set: anything that can maximise <theta, phi>."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import ContinuousActions, digest_of
from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError, UnboundedSetError
from duelist.typing import FloatArray


class CustomActions(ContinuousActions):
    """A set known by its solver alone: a shortest path, a knapsack, a schedule, anything that maximises <theta, phi>.

    Args:
        solver: an object with `best(theta)`, or a function: theta (dim,) in, the feature vector (dim,) of a best arm out. It
            may also have `contains(phi)`, true or false, and `sample(generator)`, a random arm.
        dim: length of a feature vector.
        name: stands for the content. Rounds whose sets have the same name are taken to have offered the same set, so a set
            that changes needs a name that changes.
        lanes: number of independent runs; all ask the same solver.

    Example:
        >>> def cheapest_two(theta):
        ...     chosen = np.zeros(4)
        ...     chosen[np.argsort(-theta)[:2]] = 1.0
        ...     return chosen
        >>> CustomActions(cheapest_two, dim=4, name="two of four").support(np.array([[[0.1, 0.5, 0.3, 0.2]]]))
        array([[0.8]])
    """

    def __init__(self, solver: Any, *, dim: int, name: str, lanes: int = 1) -> None:
        asked = getattr(solver, "best", solver)
        if not callable(asked):
            raise InvalidInputError(f"solver must be a function of theta, or an object with best(theta); got {solver!r}.")
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"name must be a text that stands for the content of the set; got {name!r}.")
        self.dim = whole_number("dim", dim, at_least=1)
        self.lanes = whole_number("lanes", lanes, at_least=1)
        self.name, self._solver = name, solver
        self._ask: Callable[[FloatArray], npt.ArrayLike] = asked

    @cached_property
    def digest(self) -> bytes:
        """A fingerprint of the name, which is all that can be compared."""
        return digest_of("own", self.name.encode(), f"{self.lanes}/{self.dim}".encode())

    def to_arrays(self) -> dict[str, Any]:
        """Refused: a function cannot be written down."""
        raise InvalidInputError(
            f"the set {self.name!r} is known by its solver alone and cannot be saved. Make a class of your own with lanes, "
            f"dim, digest, best, to_arrays and from_arrays; see docs/continuous-actions.md."
        )

    def _best(self, theta: FloatArray) -> FloatArray:
        features = np.empty(theta.shape)
        for lane, draw in np.ndindex(*theta.shape[:2]):
            answer = np.asarray(self._ask(theta[lane, draw].copy()), dtype=np.float64)
            if answer.shape != (self.dim,):
                raise InvalidInputError(
                    f"the solver of {self.name!r} must answer a feature vector ({self.dim},); got shape {answer.shape}."
                )
            if not np.isfinite(answer).all():
                raise UnboundedSetError(
                    f"the solver of {self.name!r} answered {answer}; a best arm must be finite. In an unbounded set no arm "
                    f"is best."
                )
            features[lane, draw] = answer
        return features

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        ask = self._optional("contains")
        return np.array([[bool(ask(point)) for point in lane] for lane in points])

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """One random arm per lane, (lanes, dim), if the solver has `sample`."""
        draw = self._optional("sample")
        return np.array([np.asarray(draw(generator), dtype=np.float64) for _ in range(self.lanes)])

    def _optional(self, verb: str) -> Callable[[Any], Any]:
        found = getattr(self._solver, verb, None)
        if not callable(found):
            raise InvalidInputError(f"the solver of {self.name!r} has no {verb}; give it one to ask for it.")
        return found  # type: ignore[no-any-return]
