"""The one place that knows how kernels are compiled.

A kernel is a plain function over arrays. Compiled code is kept on disk, so a second process starts without compiling;
the interpreter lock is released, so blocks of lanes can advance in threads.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

_MARKS = (b"@kernel", b"@part", b"@fragment", b"@reduction")

F = TypeVar("F", bound=Callable[..., object])


# No door from C on any of them: nothing here is handed to C code, and a door costs compiling.
_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
# Operations keep the order they are written in; a product and a sum may be fused, which every path does alike.
_IN_ORDER = {"contract"}
_IN_ANY_ORDER = {"contract", "reassoc", "nsz"}


def kernel(function: F) -> F:
    """Compile `function` on first call from Python, cached on disk, without the interpreter lock."""
    return cast(F, numba.njit(**_OPTIONS, fastmath=_IN_ORDER)(function))


def part(function: F) -> F:
    """Compile `function` as a part of the kernels that call it. Python cannot call it.

    The door from Python, which checks and unpacks arguments, takes longer to compile than most parts themselves.
    """
    return cast(F, numba.njit(**_INNER, fastmath=_IN_ORDER)(function))


def fragment(function: F) -> F:
    """Copy `function` into the kernels and parts that call it, before they are compiled. Python cannot call it.

    For a long function that is called in one place of a kernel. A part is optimised by itself and again inside every kernel;
    a fragment only inside. Called in several places of one kernel, or nested deeply, it would cost more than it saves.
    """
    return cast(F, numba.njit(**_INNER, fastmath=_IN_ORDER, inline="always")(function))


def reduction(function: F) -> F:
    """Like `part`, for a sum that may be reordered, which is what lets it use vector instructions.

    Only for functions that write to no array. A loop that also writes is compiled twice, with and without vector
    instructions, and which one runs depends on how far apart its arrays lie in memory: the same lane would then end in other
    digits beside other lanes. A loop that only reads has one path.
    """
    return cast(F, numba.njit(**_INNER, fastmath=_IN_ANY_ORDER)(function))


def _forget_stale_kernels(package: Path) -> None:
    """Drop the compiled code of a source tree whose kernels were edited since.

    Numba recompiles a kernel when its own file changed, but not when a kernel that it calls, in another file, did.
    """
    sources = [path.read_bytes() for path in sorted(package.rglob("*.py"))]
    digest = hashlib.blake2b(b"".join(s for s in sources if any(mark in s for mark in _MARKS)), digest_size=16).hexdigest()
    stamp = package / "__pycache__" / "kernels.digest"
    # A read-only installation is never edited, so there is nothing to forget.
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.read_text() == digest:
            return
        for index in package.rglob("*.nbi"):
            index.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(digest)


_forget_stale_kernels(Path(__file__).parents[1])
