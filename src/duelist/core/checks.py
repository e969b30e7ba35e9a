"""Input checks: bad input gets an error that says what to do, and never reaches the history."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.typing import FloatArray


def finite_array(name: str, value: npt.ArrayLike, expected: str, *ndims: int) -> FloatArray:
    """Return `value` as a contiguous float array whose number of axes is one of `ndims`, refusing NaN and infinity.

    `expected` describes the shape for the message, for example ``"(n_arms, dim)"``.
    """
    if isinstance(value, np.ndarray) and np.iscomplexobj(value):
        raise InvalidInputError(f"{name} must be real numbers; got complex ones. Pass the real part.")
    try:
        array: FloatArray = np.ascontiguousarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be a {expected} array of numbers; got {type(value).__name__} that NumPy cannot "
            f"turn into one ({error}). Every row needs the same length and only numbers."
        ) from error
    # ascontiguousarray turns a scalar into one element: report the shape that the caller sent.
    if np.ndim(value) not in ndims:
        axes = " or ".join(map(str, ndims))
        raise InvalidInputError(f"{name} must be {expected}; got shape {np.shape(value)}. Reshape it to {axes} axes.")
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.argwhere(~finite)
        where = tuple(int(i) for i in bad[0])
        raise InvalidInputError(
            f"{name} must be finite; got {array[where]} at index {where} and {len(bad)} such value(s) in all. "
            f"Remove or impute them first."
        )
    return array


def finite_number(
    name: str,
    value: object,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return `value` as a finite float within the stated bounds."""
    bounds = []
    if above > -math.inf:
        bounds.append(f"above {above:g}")
    if at_least > -math.inf:
        bounds.append(f"at least {at_least:g}")
    if at_most < math.inf:
        bounds.append(f"at most {at_most:g}")
    wanted = "a finite number" + (" " + " and ".join(bounds) if bounds else "")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidInputError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if not math.isfinite(number) or number <= above or number < at_least or number > at_most:
        raise InvalidInputError(f"{name} must be {wanted}; got {number:g}.")
    return number


def whole_number(name: str, value: object, *, at_least: int = 0, at_most: int | None = None) -> int:
    """Return `value` as an int within the stated bounds."""
    wanted = f"a whole number of at least {at_least}"
    if at_most is not None:
        wanted += f" and at most {at_most}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidInputError(f"{name} must be {wanted}; got {value!r} of type {type(value).__name__}.")
    number = int(value)
    if number < at_least or (at_most is not None and number > at_most):
        raise InvalidInputError(f"{name} must be {wanted}; got {number}.")
    return number


def one_of(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the allowed names; otherwise say which name is nearest."""
    if isinstance(value, str) and value in allowed:
        return value
    near = difflib.get_close_matches(str(value), list(allowed), n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownNameError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.{hint}")
