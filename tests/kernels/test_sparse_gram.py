"""Contrasts of mostly zeros: the same products as by all entries, whichever way they are read."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.history.statistics import Statistics
from duelist.preferences.fit import fit


@pytest.mark.parametrize("entries", [2, 40, 200])
def test_a_fit_to_large_sparse_contrasts_ends_where_its_gradient_is_zero(entries: int) -> None:
    """2 and 40 entries of 512 are read by those entries; 200 are more than an eighth and read in full."""
    rng = np.random.default_rng(entries)
    dim, rows, ridge = 512, 1100, 0.5
    assert dim * rows >= 1 << 19
    contrasts = np.zeros((dim, rows))
    for p in range(rows):
        contrasts[rng.choice(dim, entries, replace=False), p] = rng.normal(size=entries)
    totals = rng.integers(1, 5, rows).astype(float)
    losses = np.floor(totals * rng.random(rows))
    statistics = Statistics(
        contrasts[None],
        totals[None],
        losses[None],
        np.array([rows]),
        np.empty((1, 0, dim, 0)),
        np.empty(0),
        np.zeros((1, 2, dim)),
    )
    found = fit(statistics, ridge=np.array([ridge]), weight=np.ones(1), start=np.zeros((1, dim)))
    theta = found.theta[0]
    lose = 1.0 / (1.0 + np.exp(contrasts.T @ theta))
    gradient = ridge * theta + contrasts @ (losses - totals * lose)
    hessian = ridge * np.eye(dim) + (contrasts * (totals * lose * (1.0 - lose))) @ contrasts.T
    assert found.converged[0]
    np.testing.assert_allclose(found.hessian[0], hessian, rtol=1e-10, atol=1e-10)
    assert gradient @ np.linalg.solve(hessian, gradient) < 1e-6
