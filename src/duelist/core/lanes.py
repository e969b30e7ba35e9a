"""Lanes: the leading axis of independent runs that every state and history carries."""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np

from duelist.core.checks import finite_array, finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.references import type_hints
from duelist.typing import FloatArray

Parameters = TypeVar("Parameters", bound=Any)
# A hyper-parameter that may differ from lane to lane: one number for all, or one per lane (a grid of radii in lock step).
PerLane = float | Sequence[float]


def per_lane(name: str, value: PerLane, lanes: int) -> FloatArray:
    """Return a hyper-parameter, one number or one number per lane, as a (lanes,) column."""
    column = np.atleast_1d(finite_array(name, value, "(lanes,)", np.ndim(value)))
    if column.shape not in ((1,), (lanes,)):
        raise InvalidInputError(
            f"{name} must be one number or one per lane ({lanes}); got {column.shape[0]}. "
            f"Repeat each value once for every trial."
        )
    # A copy: broadcasting to one lane gives a read-only array, for which every kernel would be compiled a second time.
    return np.array(np.broadcast_to(column, (lanes,)))


def check_per_lane(name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf) -> None:
    """Check every number of a hyper-parameter that is one number, or one number per lane."""
    is_column = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    for number in value if is_column else [value]:
        finite_number(name, number, above=above, at_least=at_least)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What a policy may know before the first round.

    Attributes:
        dim: length of a feature vector.
        lanes: number of independent runs that advance together.
        horizon: number of rounds to be played, or None if it is not known.
        live: True when a person sees the pair, so showing one candidate twice makes no sense.
    """

    dim: int
    lanes: int = 1
    horizon: int | None = None
    live: bool = False

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("lanes", self.lanes, at_least=1)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)


def may_be_lanes(hint: Any) -> bool:
    """Whether a field with this annotation may hold one number per lane: `PerLane`, alone or beside other types.

    Example:
        >>> may_be_lanes(PerLane | None), may_be_lanes(tuple[int, ...])
        (True, False)
    """
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return float in options and any(get_origin(option) is Sequence for option in options)


def select_lanes(parameters: Parameters, lanes: slice, total: int) -> Parameters:
    """Return the hyper-parameters of some of the lanes.

    Fields that are annotated `PerLane` and hold a sequence of `total` numbers are cut. Every other field is a value that all
    lanes share, whatever it holds: sizes of layers, a matrix, a list of names.
    """
    columns = {}
    for name in _per_lane_fields(type(parameters)):
        value = getattr(parameters, name)
        if isinstance(value, str) or not isinstance(value, Sequence | np.ndarray) or np.shape(value) == (1,):
            continue
        if len(value) != total:
            # Refused here, where all lanes are known: by chance it might fit the number of lanes of one block.
            raise InvalidInputError(
                f"{name} must be one number or one per lane ({total}); got {len(value)}. "
                f"Repeat each value once for every trial."
            )
        columns[name] = tuple(value)[lanes]
    return replace(parameters, **columns) if columns else parameters


def _per_lane_fields(kind: type[Any]) -> tuple[str, ...]:
    if not is_dataclass(kind):
        return ()
    hints = type_hints(kind)
    return tuple(field.name for field in fields(kind) if may_be_lanes(hints[field.name]))
