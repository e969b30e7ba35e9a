"""FGTS draws from the law it says on the histories that it plays itself, also where a strong tilt gives them several peaks.

False alarms: mean regrets are compared at two standard errors, so each of the eight comparisons would fail by chance for one
seed in 22; the seeds are fixed. The limit on total variation is three times its noise or more at 4,000 draws.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import integrate, stats

from duelist.environments.linear import LinearDuels
from duelist.experiments.simulation import simulate
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.samplers.peaks import PeakState
from tests.support.exact_laws import exact_play_on_the_line, grid_law, probability_above_zero, temper
from tests.support.oracles import Floats
from tests.support.played_histories import Play, play, total_variation

LIMIT = 0.05
LINE, PLANE = LinearDuels(dim=1, arms=2), LinearDuels(dim=2, arms=4)


@cache
def exact_regret(alpha: float) -> Floats:
    return exact_play_on_the_line(alpha, rounds=400, trials=240, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["mala", "polya_gamma"])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0, 10.0])
def test_regret_on_the_line_is_that_of_exact_draws(alpha: float, sampler: str) -> None:
    exact = exact_regret(alpha)
    found = simulate(FGTS(alpha=alpha, sampler=sampler), LINE, rounds=400, trials=120, seed=0, progress=False).final_regret
    error = math.hypot(float(stats.sem(exact)), float(stats.sem(found)))
    assert abs(found.mean() - exact.mean()) < 2.0 * error


def distances(played: Play, draws: int) -> list[float]:
    """Total variation of P(best arm) between the grid and that many draws at the last potential, for every trial and draw j."""
    positions, _ = played.draws(draws)
    found = []
    for history, chains in zip(played.histories, positions, strict=True):
        for j in range(2):
            law = grid_law(history, j)
            assert law.edge < 1e-10
            found.append(total_variation(law.arm_law(history), history.arm_law(chains[j])))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "trials"), [("mala", 5), ("polya_gamma", 2)])
@pytest.mark.parametrize("alpha", [0.1, 1.0, 10.0])
def test_the_best_arm_has_the_law_of_the_grid(alpha: float, sampler: str, trials: int) -> None:
    played = play(FGTS(alpha=alpha, sampler=sampler), PLANE, rounds=500, trials=trials, seed=0)
    assert max(distances(played, 4000)) < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.0, 10.0])
def test_chains_that_do_not_jump_are_seen(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def stay(state: PeakState, *_: object) -> PeakState:
        return state

    monkeypatch.setattr("duelist.samplers.mala.visit_peaks", stay)
    played = play(FGTS(alpha=alpha), PLANE, rounds=500, trials=4, seed=0)
    assert max(distances(played, 1000)) > 10 * LIMIT


def test_the_potential_of_a_history_is_that_of_the_policy() -> None:
    played = play(FGTS(alpha=1.0), PLANE, rounds=60, trials=2, seed=3)
    positions = np.random.default_rng(0).normal(size=(30, 2, 2, 2)) * 3.0
    potential = played.policy.potential(played.state)
    theirs = np.array([potential.value(position) for position in positions])
    ours = np.array(
        [
            [
                [history.potential(position[lane, j][None], j)[0] for j in range(2)]
                for lane, history in enumerate(played.histories)
            ]
            for position in positions
        ]
    )
    # Up to a constant: an arm against itself adds log 2 to the policy's.
    np.testing.assert_allclose((ours - ours[0]), (theirs - theirs[0]), atol=1e-9)


def test_the_references_agree_with_each_other() -> None:
    line = play(FGTS(alpha=1.0), LINE, rounds=100, trials=1, seed=0).histories[0]

    def density(theta: float) -> float:
        return math.exp(-float(line.potential(np.array([[theta]]), 0)[0]) + float(line.potential(np.zeros((1, 1)), 0)[0]))

    above, below = integrate.quad(density, 0.0, 20.0, limit=200)[0], integrate.quad(density, -20.0, 0.0, limit=200)[0]
    assert probability_above_zero(line, 0) == pytest.approx(above / (above + below), abs=1e-5)
    plane = play(FGTS(alpha=1.0), PLANE, rounds=100, trials=1, seed=0).histories[0]
    law = grid_law(plane, 0).arm_law(plane)
    np.testing.assert_allclose(grid_law(plane, 0, n=480).arm_law(plane), law, atol=0.005)
    tempered = np.concatenate(temper(plane, 0, steps=2000).halves)
    assert total_variation(law, plane.arm_law(tempered)) < 2 * LIMIT
