"""SFGTS: Feel-Good Thompson sampling whose bonus has a smooth bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies import SFGTS
from duelist.policies.algorithms.sampling.sfgts import smooth_minimum
from tests.support.oracles import Floats
from tests.support.reference_policies import Taught, slow_fit, slow_matrix
from tests.support.slow_tilted import SlowDraws


def slow_bonus(past: list[tuple[Floats, int, int]], draw: int, theta: Floats, cap: float, sharpness: float) -> float:
    """The sum over past rounds, one by one: arms, first and second row."""
    total = 0.0
    for arms, first, second in past:
        adversary = arms[second] if draw == 0 else arms[first]
        top = max(float(theta @ x) for x in arms)
        total += cap - math.log(1.0 + math.exp(sharpness * (cap - top))) / sharpness - float(theta @ adversary)
    return total


@pytest.mark.parametrize(("alpha", "cap", "sharpness"), [(0.3, 0.5, 3.0), (1.5, 2.0, 10.0)])
def test_every_round_agrees_with_the_rule_in_plain_python(alpha: float, cap: float, sharpness: float) -> None:
    generator, streams, rounds = np.random.default_rng(8), Streams(4, [6]), 25
    policy = SFGTS(alpha=alpha, cap=cap, sharpness=sharpness, ridge=0.5, tries=3)
    state = policy.start(Problem(dim=3, horizon=rounds), streams)
    slow = SlowDraws("sfgts", streams, 3, 3)
    truth = 2.0 * generator.standard_normal(3)
    offers = [FiniteActions(generator.standard_normal((5, 3))) for _ in range(6)]
    record: list[Taught] = []
    past: list[tuple[Floats, int, int]] = []
    for t in range(rounds):
        actions = offers[int(generator.integers(len(offers)))]
        arms = actions.features[0]
        theta = slow_fit(record, 3, 0.5)

        def bonus(draw: int, drawn: Floats) -> float:
            return alpha / math.sqrt(rounds) * slow_bonus(past, draw, drawn, cap, sharpness)

        drawn = slow.move(t, theta, slow_matrix(record, 3, 0.5, theta), bonus)
        rows = [int(np.argmax(arms @ one)) for one in drawn]
        duels, state = policy.choose(state, actions, streams)
        assert [int(duels.first[0]), int(duels.second[0])] == rows, f"round {t}"
        z = arms[rows[0]] - arms[rows[1]]
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        record.append(Taught(z, outcome))
        past.append((arms, rows[0], rows[1]))
    assert slow.stayed == state.tilted.stayed[0]


def test_the_draws_have_the_moments_of_the_density() -> None:
    """The step leaves the density as it is: over 400 lanes of 100 rounds, means agree with sums over a fine grid."""
    arms, streams, mu = FiniteActions([[1.0, 0.0], [-0.3, 0.8]]), Streams(5, list(range(400))), 1.5
    offered = FiniteActions(np.repeat(arms.features, 400, axis=0))
    policy = SFGTS(alpha=mu, horizon=1, cap=0.5, sharpness=4.0, tries=2)
    state = policy.start(Problem(dim=2, lanes=400), streams)
    same = np.zeros(400, dtype=np.int64)
    state = policy.learn(state, offered, duels_between(offered, same, same), np.ones(400, dtype=np.int64))
    axis = np.linspace(-6.0, 6.0, 601)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    past = [(arms.features[0], 0, 0)]
    tops = (grid @ arms.features[0].T).max(axis=1)
    bounded = 0.5 - np.logaddexp(0.0, 4.0 * (0.5 - tops)) / 4.0
    assert mu * (bounded[7] - grid[7, 0]) == pytest.approx(mu * slow_bonus(past, 0, grid[7], 0.5, 4.0))
    density = multivariate_normal(np.zeros(2), np.eye(2)).pdf(grid) * np.exp(mu * (bounded - grid[:, 0]))
    mean = density @ grid / density.sum()
    drawn = []
    for t in range(120):
        _, state = policy.choose(state, offered, streams)
        if t >= 20:
            drawn.append(state.tilted.white.mean(axis=1))  # the belief is standard normal: white draws are the draws
    lanes = np.mean(drawn, axis=0)
    error = lanes.std(axis=0) / math.sqrt(len(lanes))
    assert np.abs(mean).max() > 0.5
    assert (np.abs(lanes.mean(axis=0) - mean) < 4.5 * error).all()


def test_the_smooth_minimum_is_below_both_and_close_to_the_smaller() -> None:
    values = np.linspace(-5.0, 9.0, 200)
    for sharpness in (1.0, 10.0, 1000.0):
        smooth = smooth_minimum(values, 2.0, sharpness)
        gap = np.minimum(values, 2.0) - smooth
        assert (gap >= -1e-12).all()
        assert gap.max() <= math.log(2.0) / sharpness + 1e-12
        slope = np.diff(smooth) / np.diff(values)
        assert (np.diff(slope) <= 1e-9).all(), "it bends one way only"


def test_without_a_bonus_no_action_set_is_kept() -> None:
    assert not SFGTS(alpha=0.0).keeps_sets()
    assert SFGTS().keeps_sets()


def test_where_arms_are_new_every_round_a_bounded_number_of_sets_is_read() -> None:
    policy, generator, streams = SFGTS(exact_sets=8), np.random.default_rng(0), Streams(0, [0])
    state = policy.start(Problem(dim=2), streams)
    for _ in range(40):
        arms = FiniteActions(generator.standard_normal((3, 2)))
        duels, state = policy.choose(state, arms, streams)
        state = policy.learn(state, arms, duels, np.array([1]))
    repeats = state.tilted.belief.history.statistics.repeats
    assert len(repeats) <= 8
    assert repeats.sum() == pytest.approx(40.0)


def test_a_column_of_alphas_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(SFGTS(alpha=(0.1, 1.0)), env, rounds=60, trials=[3, 3], seed=2)
    for lane, alpha in enumerate((0.1, 1.0)):
        alone = duelist.simulate(SFGTS(alpha=alpha), env, rounds=60, trials=[3], seed=2)
        np.testing.assert_array_equal(together.second[lane], alone.second[0])


@pytest.mark.parametrize(
    "wrong", [{"alpha": -1.0}, {"sharpness": 0.0}, {"cap": math.inf}, {"exact_sets": 3}, {"horizon": 0}, {"tries": 0}]
)
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        SFGTS(**wrong)  # type: ignore[arg-type]
