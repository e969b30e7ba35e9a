"""The regret of a run split into Bellman errors and Feel-Good parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Environment
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels
from duelist.experiments.simulation import simulate
from duelist.experiments.theory import decompose, split_regret
from duelist.history.duels import Duels, duels_between
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from duelist.posteriors.priors import UniformBall

ENVIRONMENTS: dict[str, Environment] = {
    "fixed arms": LinearDuels(dim=4, arms=8),
    "fresh arms": LinearDuels(dim=4, arms=8, fresh_arms=True, theta_norm=3.0),
    "ball": HardDuels(dim=3, horizon=60),
    "corners": HardDuels(dim=3, horizon=60, actions="corners"),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("policy", [FGTS(), FGTS(eta="theory", mu=5.0, prior=UniformBall(2.0))], ids=["default", "strong"])
def test_every_rounds_regret_is_the_sum_of_its_parts(name: str, policy: FGTS) -> None:
    split = decompose(policy, ENVIRONMENTS[name], rounds=60, trials=3, seed=1)
    parts = (split.bellman.sum(axis=2) - split.feel_good.sum(axis=2)) / 2
    np.testing.assert_allclose(split.regret, parts, atol=1e-9)
    assert split.residual <= 1e-9
    np.testing.assert_allclose(split.from_errors + split.from_optimism, parts, atol=1e-12)
    assert np.abs(split.bellman).max() > 1e-6


def test_the_run_is_the_one_that_simulate_plays() -> None:
    env = LinearDuels(dim=4, arms=8)
    split = decompose(FGTS(), env, rounds=40, trials=[3, 7], seed=5)
    run = simulate(FGTS(), env, rounds=40, trials=[3, 7], seed=5, workers=1)
    np.testing.assert_allclose(np.cumsum(split.regret, axis=1), run.regret, rtol=1e-12, atol=1e-12)


def test_the_parts_are_the_papers_formulas() -> None:
    """One round worked out by hand: three arms on the axes and a diagonal."""
    arms = FiniteActions([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    truth = np.array([[0.5, 1.0]])  # utilities 0.5, 1.0, 1.1: the third is best
    draws = np.array([[[2.0, 0.0], [0.0, 3.0]]])  # choose the first and the second
    bellman, feel_good = split_regret(truth, draws, arms, duels_between(arms, np.array([0]), np.array([1])))
    # BE_1 = <(1.5, -1), (1, -1)> and BE_2 = <(-0.5, 2), (-1, 1)>.
    np.testing.assert_allclose(bellman, [[2.5, 2.5]])
    # FG_1 = (2 - 0) - (1.1 - 1.0) and FG_2 = (3 - 0) - (1.1 - 0.5).
    np.testing.assert_allclose(feel_good, [[1.9, 2.4]])
    np.testing.assert_allclose((bellman.sum() - feel_good.sum()) / 2, 1.1 - (0.5 + 1.0) / 2)


def test_each_difference_is_what_its_own_arm_costs() -> None:
    split = decompose(FGTS(), LinearDuels(dim=3, arms=6), rounds=30, trials=2, seed=2)
    gaps = split.bellman - split.feel_good
    assert gaps.min() >= -1e-12
    np.testing.assert_allclose(gaps.mean(axis=2), split.regret, atol=1e-12)


def test_a_policy_that_draws_nothing_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Uniform draws no parameters"):
        decompose(Uniform(), LinearDuels(dim=3, arms=4), rounds=5, trials=2)


def test_arms_that_are_not_the_best_of_their_draws_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="same_arm"):
        decompose(FGTS(same_arm="runner-up"), LinearDuels(dim=2, arms=3), rounds=60, trials=4, seed=0)


def test_an_environment_without_a_linear_truth_is_refused() -> None:
    class Opaque:
        dim = 3

        def instance(self, streams: Streams) -> Any:
            inner = LinearDuels(dim=3, arms=4).instance(streams)

            class Hidden:
                actions, outcomes, regret = inner.actions, inner.outcomes, inner.regret

            return Hidden()

    with pytest.raises(InvalidInputError, match="Opaque"):
        decompose(FGTS(), Opaque(), rounds=5, trials=1)


def test_a_round_played_against_the_draws_is_caught_even_by_a_hair() -> None:
    arms = FiniteActions([[1.0, 0.0], [0.999, 0.0]])
    draws = np.array([[[1.0, 0.0], [1.0, 0.0]]])
    worse = Duels(np.array([1]), np.array([1]), arms.features[:, [1, 1]])
    with pytest.raises(InvalidInputError, match="best arm"):
        split_regret(np.array([[1.0, 0.0]]), draws, arms, worse)
