"""Kernel Stein discrepancy: how far draws are from a density that is known up to its constant, without any other draws.

With the score s = -grad U and the inverse-multiquadric kernel k(x, y) = (1 + |x - y|^2)^(-1/2), in coordinates in which the
posterior is round,

    KSD^2 = mean over pairs of  <s(x), s(y)> k + <s(x), grad_y k> + <s(y), grad_x k> + trace(grad_x grad_y k),

whose expectation is zero exactly when the draws have density exp(-U). It sees a bias that every chain shares, which
R-hat does not.

Reference: Gorham & Mackey (2017), Measuring sample quality with kernels; the bootstrap is that of Liu, Lee & Jordan (2016).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.typing import FloatArray


class SteinTest(NamedTuple):
    """The squared discrepancy of independent draws, and its p-value under the wild bootstrap."""

    squared: float
    p_value: float


def stein_test(
    draws: FloatArray, gradients: FloatArray, whitener: FloatArray, *, seed: int = 0, resamples: int = 1000
) -> SteinTest:
    """Test that independent draws (n, dim) with potential gradients (n, dim) have density exp(-U).

    `whitener` (dim, dim) is the inverse of the lower Cholesky factor of the curvature: coordinates become factor^T theta.
    """
    n, dim = draws.shape
    x = draws @ np.linalg.inv(whitener)
    score = -gradients @ whitener.T
    difference = x[:, None] - x[None]
    base = 1.0 + (difference**2).sum(axis=2)
    value = base**-0.5
    slope = base**-1.5  # grad_x k = -(x - y) slope, grad_y k = (x - y) slope
    along_x = np.einsum("ijd,id->ij", difference, score)
    along_y = np.einsum("ijd,jd->ij", difference, score)
    mixed = dim * slope - 3.0 * (base - 1.0) * base**-2.5
    pairs = score @ score.T * value + (along_x - along_y) * slope + mixed
    np.fill_diagonal(pairs, 0.0)
    squared = float(pairs.sum()) / (n * (n - 1))
    generator = np.random.default_rng([seed, 3])
    weights = (generator.multinomial(n, np.full(n, 1.0 / n), size=resamples) - 1.0) / n
    null = np.einsum("ri,ij,rj->r", weights, pairs, weights, optimize=True)
    return SteinTest(squared, float((1 + (null * n / (n - 1) >= squared).sum()) / (resamples + 1)))
