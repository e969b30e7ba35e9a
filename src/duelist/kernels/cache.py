"""Where compiled kernels are kept on disk, and when they are too old to be used.

Numba compiles a kernel again when its own file changed, but not when a kernel that it calls, in another file, did. Here an
entry is stamped with a digest of all files that hold kernels: an edit of any of them makes every entry stale. Numba then
writes over the stale files, which are named after the function and not after its line, so edits do not pile up.

An entry is looked for in `NUMBA_CACHE_DIR` if that is set, beside the source, and in the user's cache folder, up to the first
of them that can be written to, where new entries go. So an image whose kernels were compiled when it was built starts without
compiling from a disk that nobody can write to. Where no folder can be written to, kernels are compiled and not kept.

Nothing is read, hashed or written before the first kernel is needed.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult

KERNEL_FOLDER = Path(__file__).resolve().parent  # an edit of any file in it makes all compiled code stale

_LOADED = time.time_ns()
_log = logging.getLogger(__name__)
# They have no types.
_index_file: Any = IndexDataCacheFile
_rebuild: Any = CompileResult._rebuild


class KernelCache(FunctionCache):
    """The compiled versions of one function.

    Of Numba's class it keeps the key of an entry, made of the signature, the processor and the function's bytecode. An entry
    that cannot be read is compiled again and one that cannot be written is not kept: a cache saves time and must cost nothing.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        # Numba's own would choose a folder, and write to it to see whether it can, when the module is imported.
        self._py_func = function
        self._name = repr(function)
        self._enabled = True

    @functools.cached_property
    def _source(self) -> Path:
        return Path(inspect.getfile(self._py_func))

    @functools.cached_property
    def _stamp(self) -> str | None:
        """What the sources must be for an entry to be used; None if the running code may not be what the files now hold."""
        folder = _digest_of(KERNEL_FOLDER)
        own = self._source.resolve()
        # Its own file again: a module may have been edited and loaded anew since the others were looked at.
        if folder is None or not _is_as_loaded(own):
            return None
        return folder if own.is_relative_to(KERNEL_FOLDER) else f"{folder} {hashlib.blake2b(own.read_bytes()).hexdigest()}"

    @functools.cached_property
    def _files(self) -> list[Any]:
        """The index of this function in every folder, in the order of looking."""
        if self._stamp is None:
            return []
        python = f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
        name = f"{self._source.stem}.{self._py_func.__qualname__}.{python}".replace("<", "").replace(">", "")
        return [_index_file(str(folder), name, self._stamp) for folder in _folders(self._source.parent.resolve())]

    @property
    def cache_path(self) -> str | None:
        """Where new entries go; None if they are not kept."""
        folder = writable_folder(self._source.parent.resolve())
        return None if folder is None or self._stamp is None else str(folder)

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        # Two functions of one name in one file, which Numba tells apart by the name of the entry's file.
        key_of: Any = super()._index_key
        return (*key_of(sig, codegen), self._py_func.__code__.co_firstlineno)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled version for a signature, or None."""
        if not self._enabled:
            return None
        target_context.refresh()
        for file in self._files:
            try:
                stamp, payload = file.load(self._index_key(sig, target_context.codegen())) or (None, ())
                # An older process may have written its code over ours after we had written the index.
                if stamp == self._stamp:
                    return _rebuild(target_context, *payload)
            except Exception as error:
                _log.debug("compiled code of %s could not be read: %r", self._name, error)
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled version."""
        if not self._enabled or self.cache_path is None or not self._files or data.library.has_dynamic_globals:
            return
        try:
            self._files[-1].save(self._index_key(sig, data.codegen), (self._stamp, data._reduce()))
        except Exception as error:
            _log.debug("compiled code of %s could not be kept: %r", self._name, error)

    def flush(self) -> None:
        """Forget every version."""
        if self.cache_path is not None and self._files:
            self._files[-1].flush()


class CompilationCount(event.Listener):
    """Counts what Numba compiles of duelist's own."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, event: Any) -> None:
        """Count one more."""
        self.count += event.data["dispatcher"].py_func.__module__.startswith("duelist.")

    def on_end(self, event: Any) -> None:
        """It was counted when it started."""


@contextmanager
def count_compilations() -> Iterator[CompilationCount]:
    """Count the kernels that are compiled, and not read from disk, inside the block."""
    counter = CompilationCount()
    with event.install_listener("numba:compile", counter):
        yield counter


def kept_in() -> Path | None:
    """Where the compiled code of duelist is kept; None if it is not."""
    return writable_folder(KERNEL_FOLDER)


def writable_folder(source: Path) -> Path | None:
    """Where the compiled code of the modules in the folder `source` is kept; None if it is not."""
    return next((folder for folder in _candidates(source) if _is_writable(folder)), None)


def _folders(source: Path) -> list[Path]:
    """Folders to look in, up to the first that can be written to."""
    candidates, writable = _candidates(source), writable_folder(source)
    return candidates if writable is None else candidates[: candidates.index(writable) + 1]


def _candidates(source: Path) -> list[Path]:
    # Folders of one name in several trees share a cache: the path tells them apart.
    name = f"{source.name}_{hashlib.blake2b(str(source).encode(), digest_size=10).hexdigest()}"
    asked = getattr(numba.config, "CACHE_DIR", "")
    user = _user_cache()
    return [
        *([Path(asked).absolute() / name] if asked else []),
        source / "__pycache__",
        *([user / name] if user is not None else []),
    ]


def _user_cache() -> Path | None:
    """The platform's folder for what a program can make again; None for a user without a home."""
    if sys.platform == "win32":
        root = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        root = str(Path("~/Library/Caches").expanduser())
    else:
        root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 - Path raises without a home
    return Path(root) / "duelist" if os.path.isabs(root) else None  # noqa: PTH117 - the string may be empty


@functools.cache
def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _is_as_loaded(path: Path) -> bool:
    """Whether a file was neither written nor put in its place since this process imported it. One that is not there was not."""
    try:
        state = path.stat()
    except OSError:
        return False
    return max(state.st_mtime_ns, state.st_ctime_ns) <= _LOADED


@functools.cache
def _digest_of(folder: Path) -> str | None:
    """Digest of every source in a folder, wherever that lies, and of the compiler; None if one is not as it was loaded."""
    # Numba's own key knows its version, the processor and Python, but not LLVM's.
    digest = hashlib.blake2b(f"{numba.__version__} {llvmlite.__version__}".encode(), digest_size=16)
    sources = sorted(folder.rglob("*.py"))
    for path in sources:
        if not _is_as_loaded(path):
            return None
        content = path.read_bytes()
        digest.update(f"\n{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest() if sources else None
