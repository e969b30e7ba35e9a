"""The loss of a whole table in NumPy is the sum of its rows' losses, and stable far out."""

from __future__ import annotations

import numpy as np

from duelist.posteriors.table import TableLoss
from duelist.preferences.logistic import log_loss
from duelist.typing import FloatArray
from tests.support.oracles import finite_difference

RNG = np.random.default_rng(11)
ROWS = 2.0 * RNG.normal(size=(40, 3))
WINS, LOSSES = RNG.integers(0, 4, size=40).astype(float), RNG.integers(0, 4, size=40).astype(float)
TABLE = TableLoss(np.ascontiguousarray(ROWS.T), WINS + LOSSES, LOSSES, eta=0.7)


def row_by_row(theta: FloatArray) -> float:
    """0.7 times the loss of every win and every loss, written out."""
    pairs = zip(ROWS, WINS, LOSSES, strict=True)
    return 0.7 * float(sum(won * log_loss(z @ theta) + lost * log_loss(-(z @ theta)) for z, won, lost in pairs))


def test_value_and_gradient_are_those_of_the_rows_one_by_one() -> None:
    theta = RNG.normal(size=(5, 3))
    values, gradients = TABLE.value_and_gradient(theta)
    np.testing.assert_allclose(values, [row_by_row(one) for one in theta], rtol=1e-12)
    for one, gradient in zip(theta, gradients, strict=True):
        np.testing.assert_allclose(gradient, finite_difference(row_by_row, one), rtol=1e-6, atol=1e-6)


def test_the_hessian_is_the_derivative_of_the_gradient() -> None:
    theta = RNG.normal(size=3)
    hessian = TABLE.hessian(theta)
    step = 1e-5
    for i, axis in enumerate(np.eye(3)):
        _, (ahead, behind) = TABLE.value_and_gradient(np.stack([theta + step * axis, theta - step * axis]))
        np.testing.assert_allclose(hessian[i], (ahead - behind) / (2.0 * step), rtol=1e-6, atol=1e-6)


def test_far_out_the_loss_is_linear_and_nothing_overflows() -> None:
    far = np.array([[1e5, -2e5, 3e5]])
    value, gradient = TABLE.value_and_gradient(far)
    won = ROWS @ far[0] > 0
    linear = 0.7 * np.where(won, LOSSES, WINS) @ np.abs(ROWS @ far[0])
    np.testing.assert_allclose(value, [linear], rtol=1e-12)
    np.testing.assert_allclose(gradient[0], 0.7 * (np.where(won, LOSSES, -WINS) @ ROWS), rtol=1e-9)
    assert np.isfinite(TABLE.hessian(far[0])).all()


def test_contrasts_of_mostly_zeros_have_the_same_curvature() -> None:
    rng = np.random.default_rng(0)
    columns = np.zeros((600, 1000))
    for p in range(1000):
        columns[rng.choice(600, 2, replace=False), p] = 1.0, -1.0
    totals, theta = rng.integers(1, 4, 1000).astype(float), rng.normal(size=600)
    table = TableLoss(columns, totals, 0.5 * totals)
    lose = 1.0 / (1.0 + np.exp(theta @ columns))
    np.testing.assert_allclose(table.hessian(theta), (columns * (totals * lose * (1 - lose))) @ columns.T, atol=1e-12)
