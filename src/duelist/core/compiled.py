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

# Sums may be reordered and fused (that is what lets dot products use vector instructions), but NaN and infinity keep
# their meaning: the samplers test for them.
_FAST_BUT_HONEST = {"reassoc", "contract", "nsz", "arcp"}


def kernel(function: F) -> F:
    """Compile `function` on first call, cached on disk, without the interpreter lock."""
    compile_ = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST_BUT_HONEST)
    return cast(F, compile_(function))


def kernel_in_order(function: F) -> F:
    """Like `kernel`, but operations stay in the order written, for code whose rounding errors are meant to cancel."""
    compile_ = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return cast(F, compile_(function))


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
