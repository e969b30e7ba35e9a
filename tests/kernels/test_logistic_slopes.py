"""Loss and slopes of the compiled likelihood against the plain formulas, also far out in the tails."""

from __future__ import annotations

import numpy as np

from duelist.kernels.logistic import add_weighted_columns, loss_and_slopes, slopes_alone
from duelist.preferences.logistic import log_loss, log_loss_slope
from tests.support.kernels import from_python

call_add_weighted_columns = from_python(add_weighted_columns)
call_loss_and_slopes = from_python(loss_and_slopes)
call_slopes_alone = from_python(slopes_alone)

LOGITS = np.concatenate([np.linspace(-40, 40, 4001), [-1e4, -710.0, -1e-12, 0.0, 1e-12, 710.0, 1e4]])


def test_loss_and_slopes_are_those_of_the_formula() -> None:
    generator = np.random.default_rng(0)
    totals = generator.integers(1, 9, LOGITS.size).astype(float)
    losses = np.floor(totals * generator.random(LOGITS.size))
    slopes, alone = np.empty_like(LOGITS), np.empty_like(LOGITS)
    value = call_loss_and_slopes(LOGITS.copy(), totals, losses, slopes)
    call_slopes_alone(LOGITS, totals, losses, alone)
    wins = totals - losses
    np.testing.assert_allclose(value, (wins * log_loss(LOGITS) + losses * log_loss(-LOGITS)).sum(), rtol=1e-13)
    np.testing.assert_allclose(slopes, wins * log_loss_slope(LOGITS) - losses * log_loss_slope(-LOGITS), atol=1e-14)
    np.testing.assert_array_equal(slopes, alone)


def test_columns_are_weighted_for_odd_and_even_dimensions_and_unused_columns_are_not_read() -> None:
    generator = np.random.default_rng(1)
    for dim in range(1, 8):
        contrasts = generator.standard_normal((dim, 11))
        contrasts[:, 7:] = np.nan
        slopes = generator.standard_normal(7)
        gradient = np.ones(dim)
        call_add_weighted_columns(gradient, contrasts, slopes, 0.5)
        np.testing.assert_allclose(gradient, 1.0 + 0.5 * contrasts[:, :7] @ slopes, rtol=1e-12)
