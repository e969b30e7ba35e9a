"""On the unit ball the regret of FGTS grows not much faster than sqrt(T)."""

from __future__ import annotations

import numpy as np
import pytest

import duelist


@pytest.mark.slow
def test_the_exponent_over_the_second_half_is_at_most_three_fifths() -> None:
    # d = 10, |theta*| = 3, T = 2500: 0.55 with this seed; linear regret would be 1 and the lower bound's rate is 1/2.
    env = duelist.ContinuousDuels(dim=10, actions="ball", theta_norm=3.0)
    run = duelist.simulate(duelist.FGTS(), env, rounds=2500, trials=10, seed=0)
    rounds, late = np.arange(1, 2501), slice(1250, None)
    mean = run.regret.mean(axis=0)
    exponent = np.polyfit(np.log(rounds[late]), np.log(mean[late]), 1)[0]
    assert exponent <= 0.6
