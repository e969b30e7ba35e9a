"""How long before the first round: importing, and a small simulation with kernels compiled before or not."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

_NOTHING = "pass"
_IMPORT = "import duelist"
_SIMULATE = "import duelist; duelist.simulate(duelist.FGTS(), duelist.LinearDuels(), rounds=2, trials=2, progress=False)"


class StartUp(NamedTuple):
    """Seconds, each beyond starting Python itself.

    Attributes:
        import_: `import duelist`.
        first_run: a two-round simulation, everything compiled.
        second_run: the same in the next process.
        recompiled: compiled files that the second run wrote; 0 if the cache works.
    """

    import_: float
    first_run: float
    second_run: float
    recompiled: int


def measure_start_up() -> StartUp:
    """Time fresh processes, with an empty cache of compiled code first and the same cache again after."""
    bare = median(_seconds(_NOTHING) for _ in range(5))
    importing = median(_seconds(_IMPORT) for _ in range(5)) - bare
    with tempfile.TemporaryDirectory() as cache:
        first = _seconds(_SIMULATE, cache) - bare
        compiled = _compiled(cache)
        second = median(_seconds(_SIMULATE, cache) for _ in range(3)) - bare
        return StartUp(importing, first, second, len(_compiled(cache) ^ compiled))


def _compiled(cache: str) -> set[tuple[str, int]]:
    return {(str(file), file.stat().st_mtime_ns) for file in Path(cache).rglob("*.nb*")}


def _seconds(program: str, cache: str | None = None) -> float:
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache} if cache else dict(os.environ)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    return time.perf_counter() - started
