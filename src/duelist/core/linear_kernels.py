"""Compiled linear algebra on small matrices, without the cost of a library call."""

from __future__ import annotations

import math

from duelist.core.checks import FloatArray
from duelist.core.compiled import part, reduction


@reduction
def total_of(values: FloatArray) -> float:
    """Sum of all values."""
    total = 0.0
    for p in range(values.shape[0]):
        total += values[p]
    return total


@reduction
def dot(left: FloatArray, right: FloatArray, n: int) -> float:
    """Inner product of the first n entries."""
    total = 0.0
    for p in range(n):
        total += left[p] * right[p]
    return total


@reduction
def two_dots(vector: FloatArray, one: FloatArray, two: FloatArray, n: int) -> tuple[float, float]:
    """Inner products of `vector` with two others in one pass over it."""
    first, second = 0.0, 0.0
    for p in range(n):
        first += vector[p] * one[p]
        second += vector[p] * two[p]
    return first, second


@part
def copy_into(out: FloatArray, values: FloatArray) -> None:
    """Copy a vector. Slice assignment would do, but brings along the text of its errors: a second of compiling a kernel."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@part
def cholesky_into(factor: FloatArray, matrix: FloatArray) -> bool:
    """Lower Cholesky factor of `matrix`; False if it is not positive definite."""
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


@part
def solve_cholesky(factor: FloatArray, vector: FloatArray) -> None:
    """Solve (factor factor^T) x = vector in place."""
    dim = vector.shape[0]
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


@part
def invert_lower(inverse: FloatArray, factor: FloatArray) -> None:
    """Inverse of a lower triangular matrix."""
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


@part
def lower_times(out: FloatArray, lower: FloatArray, vector: FloatArray) -> None:
    """Product of a lower triangular matrix and a vector."""
    for i in range(vector.shape[0]):
        entry = 0.0
        for k in range(i + 1):
            entry += lower[i, k] * vector[k]
        out[i] = entry


@part
def lower_transposed_times(out: FloatArray, lower: FloatArray, vector: FloatArray) -> None:
    """Product of the transpose of a lower triangular matrix and a vector."""
    dim = vector.shape[0]
    for i in range(dim):
        out[i] = 0.0
    for k in range(dim):
        for i in range(k + 1):
            out[i] += lower[k, i] * vector[k]
