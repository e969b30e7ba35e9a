"""The weights of the theorem and of the experiments."""

from __future__ import annotations

import math

import pytest

from duelist.core.errors import InvalidInputError
from duelist.theory.linear_bounds import THEORY_ETA, experiment_mu, theory_mu


@pytest.mark.parametrize(("bound", "horizon"), [(1.0, 1), (1.0, 2500), (3.0, 100), (0.1, 10**9)])
def test_the_theorems_mu(bound: float, horizon: int) -> None:
    assert theory_mu(bound, horizon) == pytest.approx(1 / (10 * math.exp(bound) * math.sqrt(horizon)))


def test_the_theorems_eta_is_a_quarter() -> None:
    assert THEORY_ETA == 0.25


def test_the_experiments_mu() -> None:
    assert experiment_mu(0.1, 2500) == pytest.approx(0.1 / 50)
    assert experiment_mu(0.0, 10) == 0.0


@pytest.mark.parametrize(("bound", "horizon"), [(0.0, 10), (-1.0, 10), (math.inf, 10), (math.nan, 10), (1.0, 0), (1.0, 2.5)])
def test_a_bound_or_horizon_that_makes_no_sense_is_refused(bound: float, horizon: int) -> None:
    with pytest.raises(InvalidInputError):
        theory_mu(bound, horizon)


@pytest.mark.parametrize(("alpha", "horizon"), [(-0.1, 10), (math.nan, 10), (0.1, 0)])
def test_a_strength_that_makes_no_sense_is_refused(alpha: float, horizon: int) -> None:
    with pytest.raises(InvalidInputError):
        experiment_mu(alpha, horizon)
