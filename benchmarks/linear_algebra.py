"""How long the compiled Cholesky factor and triangular inverse take, beside LAPACK and the plain loops they replace.

    python benchmarks/linear_algebra.py
    python benchmarks/linear_algebra.py --dims 64 96 768

Microseconds of processor time, the least of several repeats, everything compiled before and BLAS kept to one thread: on a busy
machine its threads wait for each other, and time that others take is not counted. Two comparisons are made of the inverse.
LAPACK has a routine for that of a triangle, dtrtri; and "whiten", both steps that a policy takes, stands beside dpotrf and
dpotri, which end in the inverse of the whole matrix.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"  # before SciPy

import numba
import numpy as np
from scipy.linalg import lapack

from duelist.kernels.linalg import factors
from duelist.typing import FloatArray

DIMS = (8, 16, 32, 64, 95, 96, 128, 192, 256, 384, 512, 768, 1024, 1536)
_LEAST_SECONDS = 2e-3  # of one measurement: short calls are repeated within it
_REPEATS = 7


class Times(NamedTuple):
    """Microseconds of one operation."""

    ours: float
    loops: float
    lapack: float


def times_of(ours: Callable[[], object], loops: Callable[[], object], lapack: Callable[[], object]) -> Times:
    """Processor time of one call each: the least of several measurements, taken by turns, since a machine has slow moments."""
    calls = [ours, loops, lapack]
    repeats, best = [_calls_a_measurement(call) for call in calls], [math.inf] * len(calls)
    for _ in range(_REPEATS):
        for n, call in enumerate(calls):
            # Loops that take seconds are slow without doubt: twice is enough.
            if n != 1 or best[n] * repeats[n] < 1.0:
                best[n] = min(best[n], _seconds(call, repeats[n]) / repeats[n])
    return Times(*(seconds * 1e6 for seconds in best))


def _calls_a_measurement(call: Callable[[], object]) -> int:
    """How many calls fill a measurement; the first, which may compile, does not count."""
    call()
    return max(1, int(_LEAST_SECONDS / max(_seconds(call, 1), 1e-7)))


def _seconds(call: Callable[[], object], repeats: int) -> float:
    started = time.thread_time()
    for _ in range(repeats):
        call()
    return time.thread_time() - started


def _from_python(part: Any) -> Any:
    """A way from Python into a part of kernels."""

    def call(out: FloatArray, matrix: FloatArray) -> Any:
        return part(out, matrix)

    return numba.njit(error_model="numpy")(call)


_cholesky, _invert = _from_python(factors.cholesky_into), _from_python(factors.invert_lower)
_plain_cholesky = _from_python(factors._cholesky_by_entries)
_plain_invert = _from_python(factors._invert_by_entries)


def measure(dim: int) -> dict[str, Times]:
    """Times of the Cholesky factor, of the inverse of a triangle, and of both."""
    root = np.random.default_rng(dim).standard_normal((dim, dim))
    matrix = root @ root.T + dim * np.eye(dim)
    factor, out = np.empty((dim, dim)), np.empty((dim, dim))
    if not _cholesky(factor, matrix):
        raise ArithmeticError(f"the matrix of dim {dim} must be positive definite.")
    turned, columns = np.asfortranarray(matrix), np.asfortranarray(factor)

    def whiten(cholesky: Any, invert: Any) -> None:
        cholesky(factor, matrix)
        invert(out, factor)

    return {
        "Cholesky": times_of(
            lambda: _cholesky(out, matrix),
            lambda: _plain_cholesky(out, matrix),
            lambda: lapack.dpotrf(turned, lower=1),
        ),
        "inverse": times_of(
            lambda: _invert(out, factor),
            lambda: _plain_invert(out, factor),
            lambda: lapack.dtrtri(columns, lower=1),
        ),
        "whiten": times_of(
            lambda: whiten(_cholesky, _invert),
            lambda: whiten(_plain_cholesky, _plain_invert),
            lambda: lapack.dpotri(lapack.dpotrf(turned, lower=1)[0], lower=1),
        ),
    }


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Time compiled linear algebra beside LAPACK.")
    parser.add_argument("--dims", type=int, nargs="+", default=DIMS)
    headings = "".join(f"{heading:>12}" for heading in ("ours us", "loops us", "LAPACK us", "ours/loops", "ours/LAPACK"))
    print(f"{'dim':>5}  {'operation':<9}{headings}")
    for dim in parser.parse_args(arguments).dims:
        for name, times in measure(dim).items():
            ratios = f"{times.ours / times.loops:>12.2f}{times.ours / times.lapack:>12.2f}"
            print(f"{dim:>5}  {name:<9}" + "".join(f"{each:>12.1f}" for each in times) + ratios, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
