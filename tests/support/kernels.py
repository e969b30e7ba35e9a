"""Compile a test's own kernel without keeping it: code kept on disk would outlive an edit of the kernels that it calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def uncached_kernel(function: F) -> F:
    compile_ = cast(Any, numba.njit(error_model="numpy"))
    return cast(F, compile_(function))


def from_python(part: F) -> F:
    """A way for a test into a part of kernels, which Python cannot call."""

    def door(*arguments: Any) -> Any:
        return part(*arguments)

    return cast(F, uncached_kernel(door))
