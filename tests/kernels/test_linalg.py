"""Compiled linear algebra agrees with SciPy on both sides of the size where it changes hands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import duelist
from duelist.kernels.linalg import tiles
from duelist.kernels.linalg.factors import (
    LARGE,
    cholesky_into,
    extend_whitener,
    invert_lower,
    lower_times,
    lower_transposed_times,
    solve_cholesky,
)
from duelist.kernels.linalg.tiles import TILE
from duelist.typing import FloatArray
from tests.support.kernels import from_python, uncached_kernel

DIMS = [1, 2, 17, LARGE - 1, LARGE, LARGE + 1, 3 * TILE - 1, 3 * TILE, 3 * TILE + 1, 250]

call_cholesky = from_python(cholesky_into)
call_solve = from_python(solve_cholesky)
call_invert = from_python(invert_lower)
call_times = from_python(lower_times)
call_transposed_times = from_python(lower_transposed_times)


@uncached_kernel
def whiten_lanes(whitener: FloatArray, matrices: FloatArray) -> None:
    factor = np.empty(matrices.shape[1:])
    for lane in range(matrices.shape[0]):
        if cholesky_into(factor, matrices[lane]):
            invert_lower(whitener[lane], factor)


def positive_definite(dim: int, seed: int = 0) -> FloatArray:
    root = np.random.default_rng(seed).standard_normal((dim, dim))
    matrix: FloatArray = root @ root.T + np.eye(dim)
    return matrix


def filled_with(value: float, dim: int) -> FloatArray:
    return np.full((dim, dim), value)


@pytest.mark.parametrize("dim", DIMS)
def test_the_cholesky_factor_is_scipys_with_zeros_above(dim: int) -> None:
    matrix, factor = positive_definite(dim), filled_with(np.nan, dim)
    assert call_cholesky(factor, matrix)
    expected = scipy.linalg.cholesky(matrix, lower=True)
    np.testing.assert_allclose(factor, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
    assert not np.triu(factor, 1).any()


@pytest.mark.parametrize("dim", DIMS)
def test_the_inverse_of_a_triangle_is_scipys_with_zeros_above(dim: int) -> None:
    lower, inverse = scipy.linalg.cholesky(positive_definite(dim), lower=True), filled_with(np.nan, dim)
    call_invert(inverse, np.ascontiguousarray(lower))
    expected = scipy.linalg.solve_triangular(lower, np.eye(dim), lower=True)
    np.testing.assert_allclose(inverse, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert not np.triu(inverse, 1).any()


@pytest.mark.parametrize("dim", DIMS)
def test_solves_and_products_with_a_factor_are_scipys(dim: int) -> None:
    matrix = positive_definite(dim)
    lower = np.ascontiguousarray(scipy.linalg.cholesky(matrix, lower=True))
    vector = np.random.default_rng(1).standard_normal(dim)
    solution, product, turned = vector.copy(), np.empty(dim), np.empty(dim)
    call_solve(lower, solution)
    call_times(product, lower, vector)
    call_transposed_times(turned, lower, vector)
    expected = scipy.linalg.cho_solve((lower, True), vector)
    np.testing.assert_allclose(solution, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    np.testing.assert_allclose(product, lower @ vector, rtol=0, atol=1e-10)
    np.testing.assert_allclose(turned, lower.T @ vector, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dim", [LARGE - 1, LARGE, 250])
def test_the_upper_triangles_of_the_inputs_are_neither_read_nor_written(dim: int) -> None:
    matrix, above = positive_definite(dim), np.triu_indices(dim, 1)
    plain, marked = filled_with(0.0, dim), filled_with(0.0, dim)
    assert call_cholesky(plain, matrix)
    matrix[above] = np.nan
    before = matrix.copy()
    assert call_cholesky(marked, matrix)
    np.testing.assert_array_equal(marked, plain)
    np.testing.assert_array_equal(matrix, before)
    one, other = filled_with(0.0, dim), filled_with(0.0, dim)
    call_invert(one, plain)
    marked[above] = np.nan
    before = marked.copy()
    call_invert(other, marked)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(marked, before)


@pytest.mark.parametrize("dim", [LARGE - 1, LARGE, 250])
@pytest.mark.parametrize("at", [0, TILE, -1])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, -np.inf])
def test_a_matrix_that_is_not_positive_definite_is_reported(dim: int, at: int, value: float) -> None:
    matrix = positive_definite(dim)
    matrix[at, at] = value
    assert not call_cholesky(np.empty((dim, dim)), matrix)


@pytest.mark.parametrize("dim", [LARGE - 1, LARGE, 250])
def test_one_entry_that_is_not_a_number_is_reported(dim: int) -> None:
    matrix = positive_definite(dim)
    matrix[dim - 2, 1] = np.nan
    assert not call_cholesky(np.empty((dim, dim)), matrix)


@pytest.mark.parametrize("dim", [LARGE - 1, LARGE, 250])
def test_a_badly_scaled_matrix_is_factorised_to_rounding(dim: int) -> None:
    rotation = scipy.linalg.qr(np.random.default_rng(2).standard_normal((dim, dim)))[0]
    matrix = (rotation * np.geomspace(1e-4, 1e6, dim)) @ rotation.T
    matrix = (matrix + matrix.T) / 2
    factor = np.empty((dim, dim))
    assert call_cholesky(factor, matrix)
    # SciPy's own factor leaves about 1e-15; the condition number is 1e10.
    assert np.abs(factor @ factor.T - matrix).max() < 1e-13 * np.abs(matrix).max()


@pytest.mark.parametrize("dim", [LARGE - 1, LARGE, 150])
def test_a_lane_has_the_same_digits_alone_beside_others_and_in_another_thread(dim: int) -> None:
    matrices = np.stack([positive_definite(dim, seed) for seed in range(4)])
    together = np.zeros_like(matrices)
    whiten_lanes(together, matrices)

    def alone(lane: int) -> FloatArray:
        whitener = np.zeros((1, dim, dim))
        whiten_lanes(whitener, matrices[lane : lane + 1])
        return np.asarray(whitener[0])

    with ThreadPoolExecutor(4) as pool:
        for lane, whitener in enumerate(pool.map(alone, range(4))):
            np.testing.assert_array_equal(whitener, together[lane])
            np.testing.assert_allclose(whitener @ matrices[lane] @ whitener.T, np.eye(dim), atol=1e-8)


def test_a_matrix_that_is_not_contiguous_is_handled_all_the_same() -> None:
    dim = LARGE + 5
    wide = np.zeros((dim, dim + 3))
    wide[:, :dim] = positive_definite(dim)
    factor, plain = np.zeros((dim, dim + 3))[:, :dim], np.empty((dim, dim))
    assert call_cholesky(factor, wide[:, :dim])
    assert call_cholesky(plain, np.ascontiguousarray(wide[:, :dim]))
    np.testing.assert_allclose(factor, plain, atol=1e-11)


def test_without_blas_the_plain_loops_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise ImportError("no dgemm")

    dim = LARGE + 5
    matrix, tiled, plain = positive_definite(dim), np.empty((dim, dim)), np.empty((dim, dim))
    assert call_cholesky(tiled, matrix)
    monkeypatch.setattr(tiles, "_dgemm_of_scipy", refuse)
    known = list(tiles._addresses)
    try:
        tiles._addresses[:] = [0, 0]
        assert call_cholesky(plain, matrix)
        assert list(tiles._addresses) == [0, 0]
    finally:
        tiles._addresses[:] = known
    np.testing.assert_allclose(plain, tiled, atol=1e-11)


# Draws of a posterior in more dimensions than `LARGE`, with how the process came to its code.
_LARGE_POSTERIOR = """
import json, sys, warnings
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        compiled.append(happened.data["dispatcher"].py_func.__qualname__)
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
import numpy as np
from duelist.kernels.linalg.tiles import _addresses
import duelist
warnings.simplefilter("ignore")
dim = int(sys.argv[1])
agent = duelist.Agent(duelist.MaxPairUCB(width="local"), dim=dim, seed=0)
arms = np.random.default_rng(0).standard_normal((4, dim))
for _ in range(3):
    duel = agent.choose(arms)
    agent.learn(duel, winner="first")
print(json.dumps([[duel.first, duel.second], compiled, _addresses[0]]))
"""


def play_in_many_dimensions(dim: int, cache: Path) -> tuple[Any, list[str], int]:
    environment = {**os.environ, "PYTHONPATH": str(Path(duelist.__file__).parents[1]), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", _LARGE_POSTERIOR, str(dim)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    pair, compiled, address = json.loads(done.stdout.splitlines()[-1])
    return pair, compiled, address


@pytest.mark.slow
def test_large_matrices_find_blas_in_every_process_and_small_ones_load_nothing_of_this(tmp_path: Path) -> None:
    _, compiled, address = play_in_many_dimensions(4, tmp_path)
    assert compiled != []
    assert "_cholesky" not in compiled
    assert address == 0

    # Compiled in this process, and then read from disk.
    pair, compiled, address = play_in_many_dimensions(LARGE, tmp_path)
    assert "_cholesky" in compiled
    assert address != 0
    again, compiled, address = play_in_many_dimensions(LARGE, tmp_path)
    assert compiled == []
    assert address != 0
    assert again == pair


@pytest.mark.parametrize("dim", [1, 2, 7, 40])
def test_an_extended_whitener_is_that_of_the_larger_matrix(dim: int) -> None:
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((dim, dim + 2))
    matrix, extend = root @ root.T + np.eye(dim), from_python(extend_whitener)
    whitener = np.linalg.inv(np.linalg.cholesky(matrix))
    for _ in range(20):
        vector = 3.0 * rng.standard_normal(dim)
        matrix = matrix + np.outer(vector, vector)
        extend(whitener, vector, np.empty(dim), np.empty(dim))
    np.testing.assert_allclose(whitener, np.linalg.inv(np.linalg.cholesky(matrix)), rtol=1e-8, atol=1e-11)
    assert not np.triu(whitener, 1).any()
