"""Compiled linear algebra: plain loops for small matrices, without the cost of a library call, and BLAS for large ones.

Below `LARGE` the digits come from the loops here alone. From there on `tiles` does what takes dim^3 operations, and
loops over whole rows what takes dim^2.
"""

from __future__ import annotations

import math

from duelist.kernels.compile import inner
from duelist.kernels.linalg.tiles import invert_large_lower, is_large_code_at_hand, large_cholesky_into
from duelist.kernels.linalg.vectors import dot
from duelist.typing import FloatArray

LARGE = 96  # where tiles overtake plain loops: `benchmarks/linear_algebra.py`


@inner
def _cholesky_by_entries(factor: FloatArray, matrix: FloatArray) -> bool:
    dim = matrix.shape[0]
    for i in range(dim):
        for j in range(i + 1):
            entry = matrix[i, j]
            for k in range(j):
                entry -= factor[i, k] * factor[j, k]
            if i == j:
                if not entry > 0.0:
                    return False
                factor[i, i] = math.sqrt(entry)
            else:
                factor[i, j] = entry / factor[j, j]
        for j in range(i + 1, dim):
            factor[i, j] = 0.0
    return True


@inner
def cholesky_into(factor: FloatArray, matrix: FloatArray) -> bool:
    """Lower Cholesky factor of `matrix`, zeros above it; False, and anything in `factor`, if it is not positive definite.

    Only the lower triangle of `matrix` is read.
    """
    if matrix.shape[0] >= LARGE and is_large_code_at_hand(factor, matrix):
        return large_cholesky_into(factor, matrix)
    return _cholesky_by_entries(factor, matrix)


@inner
def solve_cholesky(factor: FloatArray, vector: FloatArray) -> None:
    """Solve (factor factor^T) x = vector in place."""
    dim = vector.shape[0]
    if dim >= LARGE:
        for i in range(dim):
            vector[i] = (vector[i] - dot(factor[i], vector, i)) / factor[i, i]
        # Row by row too: a column of the factor is spread over as many cache lines as it has entries.
        for i in range(dim - 1, -1, -1):
            entry = vector[i] / factor[i, i]
            vector[i] = entry
            for k in range(i):
                vector[k] -= entry * factor[i, k]
        return
    for i in range(dim):
        entry = vector[i]
        for k in range(i):
            entry -= factor[i, k] * vector[k]
        vector[i] = entry / factor[i, i]
    for i in range(dim - 1, -1, -1):
        entry = vector[i]
        for k in range(i + 1, dim):
            entry -= factor[k, i] * vector[k]
        vector[i] = entry / factor[i, i]


@inner
def _invert_by_entries(inverse: FloatArray, factor: FloatArray) -> None:
    dim = factor.shape[0]
    for column in range(dim):
        for i in range(dim):
            if i < column:
                inverse[i, column] = 0.0
            else:
                entry = 1.0 if i == column else 0.0
                for k in range(column, i):
                    entry -= factor[i, k] * inverse[k, column]
                inverse[i, column] = entry / factor[i, i]


@inner
def invert_lower(inverse: FloatArray, factor: FloatArray) -> None:
    """Inverse of a lower triangular matrix, zeros above it. Only the lower triangle of `factor` is read."""
    if factor.shape[0] >= LARGE and is_large_code_at_hand(inverse, factor):
        invert_large_lower(inverse, factor)
    else:
        _invert_by_entries(inverse, factor)


@inner
def lower_times(out: FloatArray, lower: FloatArray, vector: FloatArray) -> None:
    """Product of a lower triangular matrix and a vector."""
    dim = vector.shape[0]
    if dim >= LARGE:
        for i in range(dim):
            out[i] = dot(lower[i], vector, i + 1)
        return
    for i in range(dim):
        entry = 0.0
        for k in range(i + 1):
            entry += lower[i, k] * vector[k]
        out[i] = entry


@inner
def lower_transposed_times(out: FloatArray, lower: FloatArray, vector: FloatArray) -> None:
    """Product of the transpose of a lower triangular matrix and a vector."""
    dim = vector.shape[0]
    for i in range(dim):
        out[i] = 0.0
    for k in range(dim):
        for i in range(k + 1):
            out[i] += lower[k, i] * vector[k]


@inner
def extend_whitener(whitener: FloatArray, vector: FloatArray, whitened: FloatArray, total: FloatArray) -> None:
    """Replace the inverse Cholesky factor of M by that of M + vector vector^T, in dim^2 operations.

    With a = W vector, the factor C of I + a a^T has C_ii = sqrt(t_i / t_{i-1}) and C_ij = a_i a_j / sqrt(t_j t_{j-1}), where
    t_i = 1 + a_1^2 + ... + a_i^2, and the new W solves C W' = W row by row. `whitened` and `total` (dim,) are scratch.
    """
    dim = vector.shape[0]
    lower_times(whitened, whitener, vector)
    for k in range(dim):
        total[k] = 0.0  # sum over the rows above of C_ij / a_i times the new row j
    before = 1.0
    for i in range(dim):
        a = whitened[i]
        after = before + a * a
        scale, share = math.sqrt(before / after), a / math.sqrt(before * after)
        for k in range(i + 1):
            whitener[i, k] = (whitener[i, k] - a * total[k]) * scale
            total[k] += share * whitener[i, k]
        before = after
