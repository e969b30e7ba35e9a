"""The one place that knows how kernels are compiled.

A kernel is a plain function over arrays. Compiled code is kept on disk, so a second process starts without compiling;
the interpreter lock is released, so blocks of lanes can advance in threads.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile `function` on first call, cached on disk, without the interpreter lock.

    Operations keep the order they are written in; a product and a sum may be fused, which every path does alike.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})(function))


def kernel_reduction(function: F) -> F:
    """Like `kernel`, for a sum that may be reordered, which is what lets it use vector instructions.

    Only for functions that write to no array. A loop that also writes is compiled twice, with and without vector
    instructions, and which one runs depends on how far apart its arrays lie in memory: the same lane would then end in other
    digits beside other lanes. A loop that only reads has one path.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"})(function))


def _forget_stale_kernels(package: Path) -> None:
    """Drop the compiled code of a source tree whose kernels were edited since.

    Numba recompiles a kernel when its own file changed, but not when a kernel that it calls, in another file, did.
    """
    sources = [path.read_bytes() for path in sorted(package.rglob("*.py"))]
    digest = hashlib.blake2b(b"".join(s for s in sources if b"@kernel" in s), digest_size=16).hexdigest()
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
