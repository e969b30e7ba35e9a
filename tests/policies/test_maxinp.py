"""MaxInP keeps the arms that may still be best and plays the most informative pair of them."""

from __future__ import annotations

import numpy as np
import pytest

import duelist
from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies.algorithms.confidence.maxinp import MaxInP
from duelist.policies.parts.confidence import UCBState
from tests.support.reference_policies import Choice, Taught, play_beside, slow_fit, slow_matrix, slow_maxinp

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def after_one_duel(policy: MaxInP, *, live: bool = False) -> UCBState:
    """Arm 0 has beaten arm 1, so z = (1, -1) and y = +1."""
    state = policy.start(Problem(dim=2, live=live), STREAMS)
    return policy.learn(state, ARMS, duels_between(ARMS, np.array([0]), np.array([1])), np.array([1]))


def test_the_fit_and_the_matrix_after_one_duel_are_those_computed_by_hand() -> None:
    # theta = c (1, -1): ridge 1 gives c = s(-2c), so c = 0.337416. M = I + z z^T.
    state = after_one_duel(MaxInP(ridge=1.0))
    np.testing.assert_allclose(state.theta, [[0.337416, -0.337416]], atol=1e-5)
    np.testing.assert_allclose(state.gram, [[[2.0, -1.0], [-1.0, 2.0]]])
    np.testing.assert_allclose(state.whitener[0].T @ state.whitener[0], np.array([[2.0, 1.0], [1.0, 2.0]]) / 3, rtol=1e-12)


@pytest.mark.parametrize(
    ("radius", "live", "pair"),
    [
        # Utilities 0.3374, -0.3374, -0.3374; widths |x0 - x1| = 0.8165, |x0 - x2| = 1.6330, |x1 - x2| = 1.4142.
        # 0.5: arm 1 falls 0.6748 - 0.4082 short of arm 0 and is dropped; arm 2 has 0.8165 > 0.6748 and stays.
        (0.5, False, (0, 2)),
        # 0.9: all stay (0.7348 > 0.6748 for arm 1), and (0, 2) is the widest pair.
        (0.9, False, (0, 2)),
        # 0.4: arm 2 has 0.6532 < 0.6748 and is dropped too; arm 0 is alone and meets itself...
        (0.4, False, (0, 0)),
        # ...and live its strongest challenger: arm 2 with -0.6748 + 0.6532, not arm 1 with -0.6748 + 0.3266.
        (0.4, True, (0, 2)),
        (0.0, False, (0, 0)),
        # Without optimism arms 1 and 2 are equally weak; either may challenge.
        (0.0, True, (0, None)),
    ],
)
def test_a_round_computed_by_hand(radius: float, live: bool, pair: tuple[int, int | None]) -> None:
    policy = MaxInP(radius=radius, ridge=1.0)
    duels, _ = policy.choose(after_one_duel(policy, live=live), ARMS, STREAMS)
    assert duels.first[0] == pair[0]
    assert duels.second[0] == pair[1] if pair[1] is not None else duels.second[0] in (1, 2)


def test_pairs_equally_informative_are_played_equally_often_whatever_their_rows() -> None:
    square = np.array([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]])  # nothing learnt: both diagonals are widest
    turned = square[[2, 0, 3, 1]]
    policy, streams = MaxInP(), Streams(1, range(400))
    state = policy.start(Problem(dim=2, lanes=400), streams)
    duels, again = (policy.choose(state, FiniteActions(np.tile(arms, (400, 1, 1))), streams)[0] for arms in (square, turned))
    np.testing.assert_array_equal(duels.features, again.features)
    assert (duels.contrast[:, 0] * duels.contrast[:, 1] != 0).all()
    main_diagonal = int((duels.contrast[:, 0] * duels.contrast[:, 1] > 0).sum())
    assert abs(main_diagonal - 200) < 50  # five standard deviations of Binomial(400, 1/2)


def test_of_equal_arms_the_lowest_row_plays() -> None:
    arms = FiniteActions([[0.0], [2.0], [2.0], [0.0], [1.0]])
    duels, _ = MaxInP().choose(MaxInP().start(Problem(dim=1), STREAMS), arms, STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 1}


def test_a_column_of_radii_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(MaxInP(radius=(0.5, 0.5, 4.0, 4.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, radius in ((slice(0, 2), 0.5), (slice(2, 4), 4.0)):
        alone = duelist.simulate(MaxInP(radius=radius), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.parametrize("radius", [0.0, 0.7, 3.0])
def test_every_round_agrees_with_the_rule_in_plain_python(radius: float) -> None:
    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        return slow_maxinp(actions.features[0], slow_fit(record, 3, 0.5), slow_matrix(record, 3, 0.5), radius)

    # With no width in play nothing decides between the pairs of the first round but their widths, which differ.
    choices = play_beside(MaxInP(radius=radius, ridge=0.5), rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)


@pytest.mark.parametrize("radius", [0.7, 3.0])
def test_with_a_ridge_in_the_matrix_alone_every_round_agrees_with_the_rule_in_plain_python(radius: float) -> None:
    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        return slow_maxinp(actions.features[0], slow_fit(record, 3, 0.05), slow_matrix(record, 3, 2.0), radius)

    policy = MaxInP(radius=radius, ridge=2.0, fit_ridge=0.05)
    choices = play_beside(policy, rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)


def test_a_ball_has_no_random_pairs_to_warm_up_with() -> None:
    policy = MaxInP(warmup=3)
    with pytest.raises(InvalidInputError, match="warmup=3"):
        policy.choose(policy.start(Problem(dim=2), STREAMS), BallActions(1, 2), STREAMS)
