"""Many users who fall into clusters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.actions import users_of
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments import UserDuels
from duelist.history.duels import duels_between


def test_votes_and_regret_are_those_of_the_user_who_asks() -> None:
    """The winning probability and the cost of a pair, by the theta of that user's cluster, in a loop."""
    env = UserDuels(dim=3, arms=5, users=6, clusters=3, theta_norm=2.0)
    instance = env.instance(Streams(7, range(4)))
    asked = set()
    for t in range(30):
        actions = instance.actions(t)
        duels = duels_between(actions, np.array([0, 1, 2, 3]), np.array([4, 0, 1, 2]))
        chances, cost = instance.win_probability(t, duels), instance.regret(actions, duels)
        for lane in range(4):
            user = int(users_of(actions)[lane])
            asked.add(user)
            theta = instance.thetas[lane, user % 3]
            utilities = [float(theta @ x) for x in actions.features[lane]]
            i, j = int(duels.first[lane]), int(duels.second[lane])
            assert chances[lane] == pytest.approx(1.0 / (1.0 + math.exp(utilities[j] - utilities[i])), rel=1e-12)
            assert cost.average[lane] == pytest.approx(max(utilities) - 0.5 * (utilities[i] + utilities[j]), abs=1e-12)
    assert asked == set(range(6))


def test_skewed_users_ask_in_proportion_to_their_place() -> None:
    """6/11, 3/11 and 2/11 of 4,000 rounds, within 4 standard errors."""
    instance = UserDuels(users=3, clusters=1, asks="skewed").instance(Streams(1, [0]))
    users = np.array([int(instance.users(t)[0]) for t in range(4000)])
    for user, share in enumerate((6 / 11, 3 / 11, 2 / 11)):
        assert abs((users == user).mean() - share) < 4.0 * math.sqrt(share * (1.0 - share) / 4000)


def test_likeness_is_the_cosine_between_clusters() -> None:
    """Mean over 3,000 pairs of clusters in dimension 30, where random directions are nearly orthogonal."""
    thetas = UserDuels(dim=30, users=4, clusters=4, likeness=0.6, theta_norm=2.0).instance(Streams(0, range(500))).thetas
    np.testing.assert_allclose(np.linalg.norm(thetas, axis=2), 2.0, rtol=1e-12)
    cosines = [thetas[:, i] * thetas[:, j] / 4.0 for i in range(4) for j in range(i)]
    assert abs(np.sum(cosines, axis=2).mean() - 0.6) < 0.02


@pytest.mark.parametrize(
    ("setting", "word"),
    [
        ({"users": 2, "clusters": 3}, "clusters"),
        ({"likeness": 1.0}, "likeness"),
        ({"asks": "often"}, "asks"),
        ({"arms": 1}, "arms"),
    ],
)
def test_bad_settings_are_named(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        UserDuels(**setting)
