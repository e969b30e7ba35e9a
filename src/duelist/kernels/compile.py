"""The one place that knows how kernels are compiled.

A kernel is a plain function over arrays. Compiled code is kept on disk, so a second process starts without compiling;
the interpreter lock is released, so blocks of lanes can advance in threads.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


# No door from C on any of them: nothing here is handed to C code, and a door costs compiling.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True}
# A part borrows the arrays of the kernel that calls it. Counting who holds them took two fifths of a sampler's time.
_BORROWS: dict[str, Any] = {**_INNER, "_nrt": False}
_MAKES: dict[str, Any] = {**_INNER, "_nrt": True}
# Operations keep the order they are written in; a product and a sum may be fused, which every path does alike.
_IN_ORDER = {"contract"}
_IN_ANY_ORDER = {"contract", "reassoc", "nsz"}
_KEPT_FOR_C: list[Any] = []  # Numba frees code that nothing holds


def keep_on_disk(compiled: Any, function: Callable[..., object]) -> None:
    """Let what Numba compiles of `function` be kept on disk.

    Our own cache stands on parts of Numba that may change; where they did, Numba's own serves, which does not notice an edit
    of another file. Where that finds no folder to write to, nothing is kept.
    """
    if not hasattr(compiled, "enable_caching"):
        return  # NUMBA_DISABLE_JIT is set: this is the plain function
    try:
        from duelist.kernels.cache import KernelCache

        if not hasattr(compiled, "_cache"):
            raise ImportError("Numba's dispatchers have another cache.")
        compiled._cache = KernelCache(function)
    except ImportError:
        with contextlib.suppress(RuntimeError):
            compiled.enable_caching()


class CompileClock:
    """Wall time in which kernels were compiled. Loading one from disk is not compiling.

    Attributes:
        seconds: so far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        self._started = 0.0

    def on_start(self, _event: object) -> None:
        """A kernel, or a part of one that is being compiled, begins."""
        if self._depth == 0:
            self._started = time.perf_counter()
        self._depth += 1

    def on_end(self, _event: object) -> None:
        """The same ends. One thread compiles at a time, so begins and ends are nested."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started


@contextlib.contextmanager
def compile_clock() -> Iterator[CompileClock]:
    """Measure what compiling takes inside the block, in any thread; 0 where Numba does not say."""
    clock = CompileClock()
    try:
        from numba.core import event

        listener: Any = type("Listener", (event.Listener,), {"on_start": clock.on_start, "on_end": clock.on_end})()
        installed: Any = event.install_listener("numba:compile", listener)
    except (ImportError, AttributeError):
        yield clock
        return
    with installed:
        yield clock


def _compile(function: F, options: dict[str, Any]) -> F:
    compiled = numba.njit(**options)(function)
    keep_on_disk(compiled, function)
    return cast(F, compiled)


def entry(function: F) -> F:
    """Compile `function` on first call from Python, cached on disk, without the interpreter lock."""
    return _compile(function, {**_OPTIONS, "fastmath": _IN_ORDER})


def inner(function: F) -> F:
    """Compile `function` as a part of the kernels that call it. Python cannot call it.

    The door from Python, which checks and unpacks arguments, takes longer to compile than most parts themselves. It makes
    no array and returns none; see `maker`.
    """
    return _compile(function, {**_BORROWS, "fastmath": _IN_ORDER})


def maker(function: F) -> F:
    """Like `inner`, for a part that makes arrays or returns one. Only kernels and other makers may call it."""
    return _compile(function, {**_MAKES, "fastmath": _IN_ORDER})


def inlined(function: F) -> F:
    """Copy `function` into the kernels and parts that call it, before they are compiled. Python cannot call it.

    For a long function that is called in one place of a kernel. A part is optimised by itself and again inside every kernel;
    a fragment only inside. Called in several places of one kernel, or nested deeply, it would cost more than it saves.
    """
    return _compile(function, {**_INNER, "fastmath": _IN_ORDER, "inline": "always"})


def reduction(function: F) -> F:
    """Like `inner`, for a sum that may be reordered, which is what lets it use vector instructions.

    Only for functions that write to no array. A loop that also writes is compiled twice, with and without vector
    instructions, and which one runs depends on how far apart its arrays lie in memory: the same lane would then end in other
    digits beside other lanes. A loop that only reads has one path.
    """
    return _compile(function, {**_BORROWS, "fastmath": _IN_ANY_ORDER})


def address_for_c(function: Callable[..., object], signature: str) -> int:
    """Compile `function` for callers that have only its address, kept on disk too. It stays for the life of the process."""
    options = {"error_model": "numpy", "fastmath": _IN_ORDER, "nopython": True}
    try:
        from numba.core import sigutils
        from numba.core.ccallback import CFunc

        read: Any = sigutils.normalize_signature
        made: Any = CFunc(function, read(signature), {}, options)
        keep_on_disk(made, function)
        made.compile()
    except (ImportError, TypeError):  # Numba changed: without a cache, then
        made = numba.cfunc(signature, error_model="numpy", fastmath=_IN_ORDER)(function)
    _KEPT_FOR_C.append(made)
    return int(made.address)
