"""Input checks: bad input gets an error that says what to do, and never reaches the history."""

from __future__ import annotations

import difflib
import math
import numbers
import os
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
    if callable(getattr(value, "toarray", None)):
        raise InvalidInputError(
            f"{name} must be a dense {expected} array; got a sparse {type(value).__name__}. Pass {name}.toarray()."
        )
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
    raise UnknownNameError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.{nearest(value, allowed)}")


def nearest(value: object, allowed: Collection[str]) -> str:
    """A sentence with the allowed name that is most like `value`, in any case, to end a message with; empty where none is.

    Example:
        >>> nearest("fgst", ["Uniform", "FGTS"])
        " Did you mean 'FGTS'?"
    """
    by_lower_case = {known.lower(): known for known in allowed}
    near = difflib.get_close_matches(str(value).lower(), list(by_lower_case), n=1, cutoff=0.4)
    return f" Did you mean {by_lower_case[near[0]]!r}?" if near else ""


def require_methods(thing: object, what: str, methods: Collection[str]) -> None:
    """Refuse what lacks a method; `thing` may be a class."""
    missing = [method for method in methods if not callable(getattr(thing, method, None))]
    if missing:
        kind = thing if isinstance(thing, type) else type(thing)
        base = {"policy": " Inherit from duelist.policies.Policy, which answers what you do not write."}.get(what, "")
        raise InvalidInputError(
            f"{what} must have the method{'s' * (len(methods) > 1)} {', '.join(methods)}; {kind.__name__} has no "
            f"{' and no '.join(missing)}.{base}"
        )


def require_memory(what: str, n_bytes: int, advice: str) -> None:
    """Refuse what needs more memory than the machine has, before anything is computed; `advice` says what to do instead."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # a system that does not say: Python will
        return
    if n_bytes > there:
        raise InvalidInputError(
            f"{what} would need {n_bytes / 2**30:,.0f} GiB of memory for the results alone; this machine has "
            f"{there / 2**30:,.0f}. {advice}"
        )
