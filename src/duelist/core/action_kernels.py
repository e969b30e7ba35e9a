"""Compiled search for the best arm of a finite set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part


@part
def utilities_into(out: FloatArray, columns: FloatArray, theta: FloatArray) -> None:
    """Utility of every arm, out (n_arms,), from columns (dim, n_arms): a sum of scaled rows, so it vectorises over arms."""
    dim = theta.shape[0]
    for k in range(out.shape[0]):
        out[k] = theta[0] * columns[0, k]
    # Four rows a pass: `out` is read and written a quarter as often, which is what this loop spends its time on.
    i = 1
    while i + 3 < dim:
        t0, t1, t2, t3 = theta[i], theta[i + 1], theta[i + 2], theta[i + 3]
        for k in range(out.shape[0]):
            out[k] += t0 * columns[i, k] + t1 * columns[i + 1, k] + t2 * columns[i + 2, k] + t3 * columns[i + 3, k]
        i += 4
    while i < dim:
        for k in range(out.shape[0]):
            out[k] += theta[i] * columns[i, k]
        i += 1


@part
def first_maximum(values: FloatArray) -> int:
    """Index of the largest value, the lowest among equals."""
    winner = 0
    for k in range(1, values.shape[0]):
        if values[k] > values[winner]:
            winner = k
    return winner


@kernel
def finite_best(columns: FloatArray, theta: FloatArray, value: FloatArray, row: IntArray, features: FloatArray) -> None:
    """Fill value, row and features of the best arm for theta (lanes, draws, dim)."""
    lanes, draws, dim = theta.shape
    utilities = np.empty(columns.shape[2])
    for lane in range(lanes):
        for draw in range(draws):
            utilities_into(utilities, columns[lane], theta[lane, draw])
            winner = first_maximum(utilities)
            row[lane, draw] = winner
            value[lane, draw] = utilities[winner]
            for i in range(dim):
                features[lane, draw, i] = columns[lane, i, winner]


@kernel
def fingerprint_arms(prints: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> None:
    """Mix the bits (lanes, dim, n_arms) of every arm's features into one number, prints (lanes, n_arms)."""
    lanes, dim, n_arms = bits.shape
    for lane in range(lanes):
        for k in range(n_arms):
            mixed = np.uint64(dim)
            for i in range(dim):
                # The finaliser of splitmix64: every input bit reaches every output bit.
                mixed ^= bits[lane, i, k]
                mixed += np.uint64(0x9E3779B97F4A7C15)
                mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                mixed ^= mixed >> np.uint64(31)
            prints[lane, k] = mixed
