"""CoLSTIM plays a perturbed leader against its strongest optimistic challenger."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.stored_names import upgrade_fields
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.pairs import Candidates, Fit, Ridges, colstim_lanes, refit_lanes
from duelist.policies.algorithms.confidence.colstim import CoLSTIM, CoLSTIMState
from duelist.policies.parts.confidence import UCBState, duel_counts
from duelist.policies.parts.gumbel import coupled_noise, own_noise_chance, theory_radius
from tests.support.reference_policies import Choice, Taught, play_beside, slow_colstim, slow_fit, slow_matrix, slow_noise

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def after_one_duel(policy: CoLSTIM, *, live: bool = False) -> CoLSTIMState:
    """Arm 0 has beaten arm 1, so z = (1, -1) and, with ridge 1, theta = 0.3374 z."""
    state = policy.start(Problem(dim=2, live=live, horizon=100), STREAMS)
    return policy.learn(state, ARMS, duels_between(ARMS, np.array([0]), np.array([1])), np.array([1]))


@pytest.mark.parametrize(
    ("noise", "radius", "different", "pair"),
    [
        # Utilities 0.3374, -0.3374, -0.3374; every arm has norm 0.8165; |x0 - x1| = 0.8165, |x0 - x2| = 1.6330.
        # Leader 0 with 0.3374; challengers: itself 0, arm 1 -0.6748 + 0.8165 r, arm 2 -0.6748 + 1.6330 r.
        ([0.0, 0.0, 0.0], 0.5, False, (0, 2)),
        ([0.0, 0.0, 0.0], 0.4, False, (0, 0)),
        ([0.0, 0.0, 0.0], 0.4, True, (0, 2)),
        # A perturbation of 0.9 lifts arm 2 to -0.3374 + 0.7348 = 0.3974, and arm 0 challenges it with 0.6748 + 1.6330 r.
        ([0.0, 0.0, 0.9], 0.5, False, (2, 0)),
        # 0.8 is too little: -0.3374 + 0.6532 = 0.3158 < 0.3374.
        ([0.0, 0.0, 0.8], 0.5, False, (0, 2)),
        # Noise shared by all changes nothing, as all norms are equal here.
        ([5.0, 5.0, 5.0], 0.4, False, (0, 0)),
    ],
)
def test_a_round_computed_by_hand(noise: list[float], radius: float, different: bool, pair: tuple[int, int]) -> None:
    fit = after_one_duel(CoLSTIM(ridge=1.0)).fit
    first, second = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    priority = np.array([[0.1, 0.2, 0.3]])
    bounds = fit.bounds._replace(radius=np.array([radius]))
    colstim_lanes(first, second, Candidates(ARMS.columns, priority), bounds, np.array([noise]), different)
    assert (first[0], second[0]) == pair


def test_the_schedules_are_the_papers() -> None:
    # c_1 = C = sqrt(d log T) and p_t = min(1, sqrt(d log(d T) / (t - tau))).
    assert theory_radius(10, 2500) == pytest.approx(math.sqrt(10 * math.log(2500)))
    assert own_noise_chance(10, 2500, since=0) == 1.0
    assert own_noise_chance(10, 2500, since=2499) == pytest.approx(math.sqrt(10 * math.log(25_000) / 2500))
    state = CoLSTIM(radius="theory").start(Problem(dim=10, lanes=2, horizon=2500), Streams(0, [0, 1]))
    np.testing.assert_allclose(state.fit.settings.radius, math.sqrt(10 * math.log(2500)))


def test_early_rounds_perturb_every_arm_by_itself_and_late_rounds_all_alike() -> None:
    arms, streams = FiniteActions(np.tile(np.eye(3), (500, 1, 1))), Streams(0, range(500))
    early = coupled_noise(arms, streams, 0, since=0, horizon=100, clip=None)
    assert (np.ptp(early, axis=1) > 0).all()
    # p = sqrt(3 log(300) / 10^5) = 0.013 of 500 lanes are 6.5 on average; 20 is more than five deviations above.
    late = coupled_noise(arms, streams, 99_999, since=99_999, horizon=100, clip=None)
    assert 0 < int((np.ptp(late, axis=1) > 0).sum()) < 20


def test_noise_is_gumbel_and_clipped_on_both_sides() -> None:
    arms, streams = FiniteActions(np.tile(np.eye(4), (2000, 1, 1))), Streams(0, range(2000))
    noise = coupled_noise(arms, streams, 0, since=0, horizon=100, clip=100.0).ravel()
    # 8000 draws: deviations of the mean and of the share below zero are 0.0143 and 0.0054; five of each.
    assert noise.mean() == pytest.approx(np.euler_gamma, abs=0.072)
    assert (noise < 0.0).mean() == pytest.approx(math.exp(-1.0), abs=0.027)
    clipped = coupled_noise(arms, streams, 0, since=0, horizon=100, clip=0.5).ravel()
    np.testing.assert_array_equal(clipped, np.clip(noise, -0.5, 0.5))
    assert (clipped == 0.5).any()
    assert (clipped == -0.5).any()


def test_equal_arms_are_perturbed_alike_and_rows_do_not_matter() -> None:
    arms = np.array([[0.5, 1.0], [2.0, 0.0], [0.5, 1.0]])
    noise, turned = (
        coupled_noise(FiniteActions(rows), STREAMS, 3, since=3, horizon=100, clip=None)[0] for rows in (arms, arms[::-1])
    )
    assert noise[0] == noise[2] != noise[1]
    np.testing.assert_array_equal(noise, turned[::-1])


def test_a_column_of_radii_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(CoLSTIM(radius=(0.5, 0.5, 4.0, 4.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, radius in ((slice(0, 2), 0.5), (slice(2, 4), 4.0)):
        alone = duelist.simulate(CoLSTIM(radius=radius), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.parametrize(("radius", "perturbation"), [(0.3, 1.0), (2.0, 0.5)])
def test_every_round_agrees_with_the_rule_in_plain_python(radius: float, perturbation: float) -> None:
    dim, horizon = 3, 40
    clip = math.sqrt(dim * math.log(horizon))

    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        chance = min(1.0, math.sqrt(dim * math.log(dim * horizon) / (asked + 1)))
        noise = perturbation * slow_noise(actions, streams, asked, own_chance=chance, clip=clip)
        arms = actions.features[0]
        return slow_colstim(arms, range(len(arms)), slow_fit(record, dim, 0.5), slow_matrix(record, dim, 0.5), radius, noise)

    policy = CoLSTIM(radius=radius, perturbation=perturbation, ridge=0.5)
    choices = play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)


def test_a_column_of_perturbations_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(CoLSTIM(perturbation=(0.1, 0.1, 4.0, 4.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, perturbation in ((slice(0, 2), 0.1), (slice(2, 4), 4.0)):
        alone = duelist.simulate(CoLSTIM(perturbation=perturbation), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
    with pytest.raises(InvalidInputError, match="one per lane"):
        CoLSTIM(perturbation=(0.1, 0.2, 0.3)).start(Problem(dim=2, lanes=2), Streams(0, [0, 1]))


def test_with_a_ridge_in_the_matrix_alone_every_round_agrees_with_the_rule_in_plain_python() -> None:
    dim, horizon = 3, 40
    clip = math.sqrt(dim * math.log(horizon))

    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        chance = min(1.0, math.sqrt(dim * math.log(dim * horizon) / (asked + 1)))
        noise = slow_noise(actions, streams, asked, own_chance=chance, clip=clip)
        arms = actions.features[0]
        return slow_colstim(arms, range(len(arms)), slow_fit(record, dim, 0.05), slow_matrix(record, dim, 2.0), 0.3, noise)

    policy = CoLSTIM(radius=0.3, ridge=2.0, fit_ridge=0.05)
    play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(1.0, 0.4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [duelist.CoLSTIM, duelist.MaxPairUCB])
def test_in_large_dimensions_the_fit_follows_the_full_one_to_six_digits(kind: Any) -> None:
    rng, dim = np.random.default_rng(0), LARGE + 4
    truth, policy, streams = rng.standard_normal(dim) / 3.0, kind(same_arm="different"), Streams(0, [0, 1])
    state = policy.start(Problem(dim=dim, lanes=2), streams)
    for t in range(150):
        features = (
            rng.standard_normal((2, 6, dim)) if t < 100 else 3.0 * np.eye(dim)[None, rng.permutation(dim)[:6]].repeat(2, 0)
        )
        arms = FiniteActions(features)
        duels, state = policy.choose(state, arms, streams)
        wins = rng.random(2) < 1.0 / (1.0 + np.exp(-duels.contrast @ truth))
        state = policy.learn(state, arms, duels, np.where(wins, 1, -1))
        if t % 15:
            continue
        fit = state.fit if kind is duelist.CoLSTIM else state
        counts, full = duel_counts(fit.history), np.zeros((2, dim))
        exact = Fit(full, np.empty((2, dim, dim)), fit.gram.copy(), np.zeros(2))
        nothing = np.full((2, dim), 1e-300)  # a contrast that adds nothing to M and makes the fit run
        refit_lanes(exact, nothing, counts, Ridges(fit.settings.fit_ridge, fit.settings.ridge), False)
        np.testing.assert_allclose(fit.theta, exact.theta, atol=1e-6)
        np.testing.assert_allclose(fit.whitener, exact.whitener, atol=1e-9)
        assert not fit.info.unconverged.any()


def test_a_state_of_version_2_goes_on_where_it_was() -> None:
    rng, dim = np.random.default_rng(1), LARGE
    policy, streams = duelist.MaxPairUCB(), Streams(0, [0])
    state = policy.start(Problem(dim=dim), streams)
    for _ in range(5):
        arms = FiniteActions(rng.standard_normal((4, dim)))
        duels, state = policy.choose(state, arms, streams)
        state = policy.learn(state, arms, duels, np.array([1]))
    fields = {name: value for name, value in state._asdict().items() if name != "shape"}
    old = UCBState(**upgrade_fields(UCBState, 2, fields))
    assert old.shape.shape == (1, dim, dim)
    after = [policy.learn(each, arms, duels, np.array([-1])).theta for each in (state, old)]
    np.testing.assert_allclose(after[0], after[1], atol=1e-6)
