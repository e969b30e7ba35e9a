"""VACDB eliminates arms in layers of accuracy, with duels weighted by their width."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies.algorithms.confidence.vacdb import VACDB, stop_width, variance_radius
from tests.support.oracles import Floats
from tests.support.reference_policies import Choice, SlowLayers, Taught, play_beside, slow_fit, slow_matrix, slow_walk

STREAMS = Streams(0, [0])


def test_the_constants_are_the_authors() -> None:
    assert stop_width(2500) == pytest.approx(2500**-1.5)  # alpha
    assert VACDB().ridges(3).tolist() == [1 / 4, 1 / 16, 1 / 64]  # 2^-2l
    state = VACDB(layers=3).start(Problem(dim=2), STREAMS)
    np.testing.assert_array_equal(state.gram[0, 2], np.eye(2) / 64)


def test_two_rounds_computed_by_hand() -> None:
    # Sigma_1 = 1/4, so widths are 2 |z|: 0.5, 1.5 and 2. The widest pair is the most optimistic, as theta is 0.
    arms = FiniteActions([[0.0], [0.25], [1.0]])
    policy = VACDB(radius=0.5, layers=4, horizon=100)
    state = policy.start(Problem(dim=1), STREAMS)
    duels, state = policy.choose(state, arms, STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 2}
    # w = 2^-1 / 2 = 1/4: the duel counts 1/16 in the loss and in the matrix.
    assert duels.note is not None
    assert duels.note.tolist() == [[0.0, 1 / 16]]
    outcome = 1 if duels.first[0] == 2 else -1  # the arm at 1 wins
    state = policy.learn(state, arms, duels, np.array([outcome]))
    np.testing.assert_allclose(state.gram[0, :, 0, 0], [1 / 4 + 1 / 16, 1 / 16, 1 / 64, 1 / 256])
    # theta / 4 = s(-theta) / 16 at theta = 0.117655.
    np.testing.assert_allclose(state.theta[0, :, 0], [0.117655, 0.0, 0.0, 0.0], atol=1e-5)
    assert state.info.explored.tolist() == [[1.0, 0.0, 0.0, 0.0]]
    # Widths are now |z| / sqrt(0.3125) = 0.4472, 1.3416 and 1.7889: the scores of the wide pairs are
    # 0.1177 + 0.8944 for (0, 1) and 0.1471 + 0.6708 for (0.25, 1).
    duels, state = policy.choose(state, arms, STREAMS)
    assert (duels.first[0], duels.second[0]) == (2, 0)
    assert duels.note is not None
    np.testing.assert_allclose(duels.note, [[0.0, (0.5 / 1.78885438) ** 2]], rtol=1e-6)


def test_narrow_sets_are_passed_up_to_the_first_layer_where_they_are_wide() -> None:
    # Widths in layer l are 2^l |z|, at most 0.04 * 2^l: 0.08, 0.16, 0.32 against 1/2, 1/4, 1/8.
    policy = VACDB(layers=5, horizon=100)
    duels, _ = policy.choose(policy.start(Problem(dim=1), STREAMS), FiniteActions([[0.0], [0.02], [0.04]]), STREAMS)
    assert duels.note is not None
    np.testing.assert_allclose(duels.note, [[2.0, (0.125 / 0.32) ** 2]], rtol=1e-9)


@pytest.mark.parametrize(("radius", "kept"), [(3.9, {2}), (4.1, {1, 2})])
def test_arms_further_than_the_margin_below_the_best_do_not_go_up(radius: float, kept: set[int]) -> None:
    # Layer 1 is narrow, with widths of at most 0.25, and believes in utilities 0, 3 and 5; its margin is radius / 2.
    # Layer 2 knows nothing and exploits the widest pair of what is left.
    policy = VACDB(radius=radius, layers=2, horizon=10_000)
    state = policy.start(Problem(dim=1), STREAMS)
    theta = state.theta.copy()
    theta[0, 0, 0] = 40.0
    arms = FiniteActions([[0.0], [0.075], [0.125]])
    duels, _ = policy.choose(state._replace(theta=theta), arms, STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == kept


@pytest.mark.parametrize("explore", ["optimistic", "widest"])
def test_a_column_of_radii_equals_separate_runs_bit_for_bit(explore: str) -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(
        VACDB(radius=(0.1, 0.1, 2.0, 2.0), explore=explore), env, rounds=80, trials=[3, 7, 3, 7], seed=2
    )
    for lanes, radius in ((slice(0, 2), 0.1), (slice(2, 4), 2.0)):
        alone = duelist.simulate(VACDB(radius=radius, explore=explore), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.parametrize("explore", ["optimistic", "widest"])
@pytest.mark.parametrize("radius", [0.4, 2.0])
def test_every_round_agrees_with_the_rule_in_plain_python(explore: str, radius: float) -> None:
    dim, n_layers, horizon = 2, 4, 20
    ridges = [4.0**-level for level in range(1, n_layers + 1)]

    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        taught = [[duel for duel in record if duel.layer == layer] for layer in range(n_layers)]
        layers = SlowLayers(
            [slow_fit(part, dim, ridge) for part, ridge in zip(taught, ridges, strict=True)],
            [slow_matrix(part, dim, ridge) for part, ridge in zip(taught, ridges, strict=True)],
            radius,
            stop=horizon**-1.5,
            weigh_by_width=True,
            widest_first=explore == "widest",
        )
        return slow_walk(actions.features[0], layers)

    policy = VACDB(radius=radius, explore=explore, layers=n_layers)
    choices = play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(0.3, 0.05, 0.01, 0.002))
    # The walk is seen in full: several layers explore, and some rounds exploit.
    assert len({choice.layer for choice in choices if choice.count > 0}) >= 3
    assert any(choice.count == 0 for choice in choices)


def slow_variance_radius(
    taught: list[Taught], theta: Floats, level: int, asked: int, *, layers: int, horizon: int, kappa: float, scale: float
) -> float:
    """The radius of layer `level` = 1, 2, ... from its duels, one by one."""
    if not taught:
        return float(2.0 ** (1 - level))
    t, delta = max(asked, 1), 1.0 / horizon
    now, later = math.log(4 * t**2 * layers / delta), math.log(4 * (t + 1) ** 2 * layers / delta)
    spread = float(len(taught))
    if 2**level >= 64 * 0.25 / kappa * math.sqrt(later):
        spread = 0.0
        for duel in taught:
            chance = 1.0 / (1.0 + math.exp(-float(theta @ duel.contrast)))
            spread += duel.count * ((1.0 if duel.outcome == 1 else 0.0) - chance) ** 2
    wide = 16 * 2.0**-level / kappa * math.sqrt((8 * spread + 18 * later) * now) + 6 * 2.0**-level / kappa * now
    return scale * wide + 2.0 ** (1 - level)


# At kappa 20 the first layer counts its duels and the others estimate their variance; at 0.5 all of them count.
@pytest.mark.parametrize(("kappa", "scale"), [(20.0, 0.2), (20.0, 2.0), (0.5, 0.003)])
def test_with_the_theorys_radius_every_round_agrees_with_the_rule_in_plain_python(kappa: float, scale: float) -> None:
    dim, n_layers, horizon = 2, 4, 20

    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, asked: int) -> Choice:
        taught = [[duel for duel in record if duel.layer == layer and duel.count > 0] for layer in range(n_layers)]
        levels = range(1, n_layers + 1)
        thetas = [slow_fit(part, dim, kappa * 4.0**-level) for part, level in zip(taught, levels, strict=True)]
        radii = [
            slow_variance_radius(part, theta, level, asked, layers=n_layers, horizon=horizon, kappa=kappa, scale=scale)
            for part, theta, level in zip(taught, thetas, levels, strict=True)
        ]
        matrices = [slow_matrix(part, dim, 4.0**-level) for part, level in zip(taught, levels, strict=True)]
        return slow_walk(actions.features[0], SlowLayers(thetas, matrices, radii, stop=horizon**-1.5, weigh_by_width=True))

    policy = VACDB(radius="variance", kappa=kappa, scale=scale, layers=n_layers)
    choices = play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(0.3, 0.05, 0.01, 0.002))
    assert len({choice.layer for choice in choices if choice.count > 0}) >= 3


@pytest.mark.parametrize(("kappa", "variances"), [(20.0, [False, True, True, True]), (0.5, [False] * 4)])
def test_only_high_layers_estimate_their_variance(kappa: float, variances: list[bool]) -> None:
    # 64 L_mu / kappa sqrt(log(4 * 2^2 * 4 * 20)) is 2.14 at kappa 20, between 2 and 4, and 85.6 at kappa 0.5.
    policy = VACDB(radius="variance", kappa=kappa, layers=4, horizon=20)
    state = policy.start(Problem(dim=1), STREAMS)
    arms = FiniteActions([[0.0], [1.0]])
    for layer in range(4):
        duels = duels_between(arms, np.array([1]), np.array([0]), np.array([[float(layer), 0.25]]))
        state = policy.learn(state, arms, duels, np.array([1]))
    counted = variance_radius(np.ones((1, 4)), 1, horizon=20, kappa=kappa, scale=np.ones(1))
    assert (policy.radii(state) < counted - 1e-9).tolist() == [variances]


def test_a_column_of_scales_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    scales = (1e-4, 1e-4, 1e-2, 1e-2)
    together = duelist.simulate(VACDB(radius="variance", scale=scales), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, scale in ((slice(0, 2), 1e-4), (slice(2, 4), 1e-2)):
        alone = duelist.simulate(VACDB(radius="variance", scale=scale), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)


def test_kappa_is_a_factor_of_the_ridge_in_the_fit_and_not_in_the_matrix() -> None:
    state = VACDB(kappa=0.02, layers=3).start(Problem(dim=2), STREAMS)
    np.testing.assert_allclose(state.settings.ridge[0], [0.02 / 4, 0.02 / 16, 0.02 / 64])
    np.testing.assert_array_equal(state.gram[0, 2], np.eye(2) / 64)


@pytest.mark.parametrize(("name", "value"), [("kappa", 0.0), ("kappa", "small"), ("scale", 0.0), ("radius", "variances")])
def test_settings_that_cannot_be_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=name):
        VACDB(**{name: value})
