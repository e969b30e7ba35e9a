"""MaxPairUCB plays the pair with the largest optimistic sum of utilities."""

from __future__ import annotations

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies.algorithms.confidence.maxpairucb import MaxPairUCB
from duelist.policies.parts.confidence import UCBState
from tests.support.reference_policies import Choice, Taught, play_beside, slow_fit, slow_matrix, slow_max_pair

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def after_one_duel(policy: MaxPairUCB, *, live: bool = False) -> UCBState:
    """Arm 0 has beaten arm 1, so z = (1, -1) and, with ridge 1, theta = 0.3374 z."""
    state = policy.start(Problem(dim=2, live=live), STREAMS)
    return policy.learn(state, ARMS, duels_between(ARMS, np.array([0]), np.array([1])), np.array([1]))


@pytest.mark.parametrize(
    ("radius", "width", "live", "pair"),
    [
        # (0, 0) scores 0.6748; (0, 1) 0.8165 r; (0, 2) 1.6330 r; (1, 2) -0.6748 + 1.4142 r.
        (0.5, "global", False, (0, 2)),
        (0.4, "global", False, (0, 0)),
        (0.4, "global", True, (0, 2)),
        # Local widths are those of H = I + 0.22357 z z^T: |x0 - x2| = 1.8390, and 0.7356 > 0.6748.
        (0.4, "local", False, (0, 2)),
        (0.36, "local", False, (0, 0)),
        (0.0, "global", False, (0, 0)),
    ],
)
def test_a_round_computed_by_hand(radius: float, width: str, live: bool, pair: tuple[int, int]) -> None:
    policy = MaxPairUCB(radius=radius, ridge=1.0, width=width)
    duels, _ = policy.choose(after_one_duel(policy, live=live), ARMS, STREAMS)
    assert (duels.first[0], duels.second[0]) == pair


def test_local_widths_are_those_of_the_curvature_at_the_fit() -> None:
    state = after_one_duel(MaxPairUCB(ridge=1.0, width="local"))
    curvature = np.array([[1.22356638, -0.22356638], [-0.22356638, 1.22356638]])  # s'(0.67483) = 0.22357
    np.testing.assert_allclose(state.whitener[0].T @ state.whitener[0], np.linalg.inv(curvature), rtol=1e-5)


def test_before_anything_is_learnt_the_widest_pairs_tie_and_their_content_decides() -> None:
    square = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])
    policy, streams = MaxPairUCB(), Streams(1, range(400))
    state = policy.start(Problem(dim=2, lanes=400), streams)
    duels, again = (
        policy.choose(state, FiniteActions(np.tile(arms, (400, 1, 1))), streams)[0] for arms in (square, square[::-1])
    )
    np.testing.assert_array_equal(duels.features, again.features)
    assert abs(int((duels.contrast.prod(axis=1) > 0).sum()) - 200) < 50  # five deviations of Binomial(400, 1/2)


def test_an_arm_against_itself_teaches_nothing() -> None:
    policy = MaxPairUCB()
    before = after_one_duel(policy)
    after = policy.learn(before, ARMS, duels_between(ARMS, np.array([2]), np.array([2])), np.array([1]))
    assert after.theta.tobytes() == before.theta.tobytes()
    assert after.whitener.tobytes() == before.whitener.tobytes()
    assert after.history.rounds == 2


def test_a_column_of_radii_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(
        MaxPairUCB(radius=(0.5, 0.5, 4.0, 4.0), width="local"), env, rounds=80, trials=[3, 7, 3, 7], seed=2
    )
    for lanes, radius in ((slice(0, 2), 0.5), (slice(2, 4), 4.0)):
        alone = duelist.simulate(MaxPairUCB(radius=radius, width="local"), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.parametrize("width", ["global", "local"])
@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_every_round_agrees_with_the_rule_in_plain_python(width: str, radius: float) -> None:
    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        theta = slow_fit(record, 3, 0.5)
        matrix = slow_matrix(record, 3, 0.5, theta if width == "local" else None)
        return slow_max_pair(actions.features[0], theta, matrix, radius)

    policy = MaxPairUCB(radius=radius, ridge=0.5, width=width)
    choices = play_beside(policy, rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)


@pytest.mark.parametrize("width", ["global", "local"])
def test_with_a_ridge_in_the_matrix_alone_every_round_agrees_with_the_rule_in_plain_python(width: str) -> None:
    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        theta = slow_fit(record, 3, 0.05)
        matrix = slow_matrix(record, 3, 2.0, theta if width == "local" else None)
        return slow_max_pair(actions.features[0], theta, matrix, 2.0)

    policy = MaxPairUCB(radius=2.0, ridge=2.0, fit_ridge=0.05, width=width)
    choices = play_beside(policy, rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)
