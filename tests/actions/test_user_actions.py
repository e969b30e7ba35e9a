"""Action sets that name who is asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions import FiniteActions, OffsetActions, UserActions, users_of
from duelist.core.errors import InvalidInputError
from duelist.policies import COLDB

FEATURES = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_it_is_the_arms_and_the_user() -> None:
    arms = UserActions(FEATURES, 4)
    assert arms.users.tolist() == users_of(arms).tolist() == [4]
    assert users_of(FiniteActions(FEATURES)).tolist() == [0]
    assert users_of(OffsetActions(arms, np.zeros((1, 3)))).tolist() == [4]
    assert arms.digest != UserActions(FEATURES, 5).digest
    # Random numbers of arms do not depend on who is asked.
    np.testing.assert_array_equal(arms.fingerprints, FiniteActions(FEATURES).fingerprints)


def test_it_is_saved_and_cut() -> None:
    arms = UserActions(np.stack([FEATURES, FEATURES]), [2, 7])
    parts: Any = arms.to_arrays()
    again = UserActions.from_arrays(parts)
    assert again.digest == arms.digest
    some = arms.take(np.array([2, 0]))
    assert isinstance(some, UserActions)
    assert some.users.tolist() == [2, 7]
    np.testing.assert_array_equal(some.features, arms.features[:, [2, 0]])


@pytest.mark.parametrize("users", [-1, 1.5, [1, 2], "ann"])
def test_bad_users_are_refused(users: object) -> None:
    with pytest.raises(InvalidInputError, match="users"):
        UserActions(FEATURES, users)  # type: ignore[arg-type]


def test_a_live_agent_asks_users(tmp_path: object) -> None:
    """Two users who want opposite things, in an agent that was saved and loaded."""
    agent = duelist.Agent(COLDB(users=2, edge=0.5), dim=2, seed=0)
    for t in range(120):
        user = t % 2
        duel = agent.choose(UserActions(FEATURES, user), exclude=[2] if t % 3 == 0 else None)
        agent.learn(duel, winner=user if user in (duel.first, duel.second) else 2)
    path = f"{tmp_path}/agent.npz"
    agent.save(path)
    loaded = duelist.Agent.load(path)
    assert [loaded.choose(UserActions(FEATURES, user)).first for user in (0, 1)] == [0, 1]
    assert [loaded.choose(UserActions(FEATURES, user), cost=[5.0, 5.0, 0.0]).first for user in (0, 1)] == [2, 2]
