"""The same contrasts give the same digits wherever they lie in memory: a lane must not depend on its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.kernels.actions import utilities_into
from duelist.kernels.logistic import add_weighted_columns, loss_and_slopes
from tests.support.kernels import from_python

call_utilities_into = from_python(utilities_into)
call_add_weighted_columns = from_python(add_weighted_columns)
call_loss_and_slopes = from_python(loss_and_slopes)


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 5, 15, 16, 17, 31])
def test_digits_of_the_loss_do_not_depend_on_capacity_or_place(n: int) -> None:
    rng = np.random.default_rng(n)
    dim = 5
    contrasts, theta = rng.standard_normal((dim, n)), rng.standard_normal(dim)
    totals = rng.integers(1, 5, n).astype(float)
    losses = np.floor(totals * rng.random(n))
    seen = set()
    for capacity in (n, n + 1, n + 3, 64, 128):
        for offset in range(4):
            wide = np.zeros((2, dim, capacity))
            wide[1, :, :n] = contrasts
            counts = np.zeros((2, 2, capacity))
            counts[:, 1, :n] = totals, losses
            scratch = np.empty(2 * capacity + offset)[offset:].reshape(2, capacity)
            logits, slopes, gradient = scratch[0, :n], scratch[1, :n], np.zeros(dim)
            call_utilities_into(logits, wide[1], theta)
            loss = call_loss_and_slopes(logits, counts[0, 1, :n], counts[1, 1, :n], slopes)
            call_add_weighted_columns(gradient, wide[1], slopes, 1.0)
            seen.add((loss, slopes.tobytes(), gradient.tobytes()))
    assert len(seen) == 1
