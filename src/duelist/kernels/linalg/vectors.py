"""Sums and copies of vectors."""

from __future__ import annotations

from duelist.kernels.compile import inner, reduction
from duelist.typing import FloatArray


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


@inner
def copy_into(out: FloatArray, values: FloatArray) -> None:
    """Copy a vector. Slice assignment would do, but brings along the text of its errors: a second of compiling a kernel."""
    for i in range(out.shape[0]):
        out[i] = values[i]


@inner
def copy_rows_into(out: FloatArray, values: FloatArray) -> None:
    """Copy a matrix, row by row for the same reason."""
    for i in range(out.shape[0]):
        copy_into(out[i], values[i])
