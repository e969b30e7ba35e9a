"""The table of duels: places lead to the arms that were played, repeats count, and states are values."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.history.duel_table import DuelTable
from duelist.history.duels import duels_between


def test_places_lead_to_the_arms_that_were_played_also_when_sets_grow_and_vary_in_size() -> None:
    rng = np.random.default_rng(0)
    sets = [FiniteActions(rng.standard_normal((2, n, 3))) for n in (3, 5, 4)]
    table, played = DuelTable.start(lanes=2, dim=3), []
    for _ in range(300):  # beyond the first capacity of 256
        actions = sets[int(rng.integers(3))]
        first, second = rng.integers(actions.n_arms, size=(2, 2))
        outcomes = rng.choice([-1, 1], size=2)
        duels = duels_between(actions, first, second)
        table = table.append(actions, duels, outcomes)
        played.append((actions, duels.features, outcomes))
    arms = table.sets.reshape(2, -1, 3)
    for t, (_, features, outcomes) in enumerate(played):
        for lane in range(2):
            np.testing.assert_array_equal(arms[lane, table.first[lane, t]], features[lane, 0])
            np.testing.assert_array_equal(arms[lane, table.second[lane, t]], features[lane, 1])
        np.testing.assert_array_equal(table.outcomes[:, t], outcomes)
    assert table.rounds == 300
    assert (table.outcomes[:, 300:] == 0.0).all()
    assert table.repeats.sum() == 300
    for place, digest in enumerate(table.digests):
        assert table.repeats[place] == sum(actions.digest.hex() == digest for actions, _, _ in played)
        offered = next(actions for actions, _, _ in played if actions.digest.hex() == digest)
        theta = rng.standard_normal(3)
        np.testing.assert_allclose((table.sets[:, place] @ theta).max(axis=1), (offered.features @ theta).max(axis=1))


def test_appending_leaves_the_old_table_as_it_was_and_bad_input_changes_nothing() -> None:
    actions = FiniteActions([[0.0, 1.0], [1.0, 0.0]])
    duels = duels_between(actions, np.array([0]), np.array([1]))
    one = DuelTable.start(lanes=1, dim=2).append(actions, duels, np.array([1]))
    before = [np.copy(column) for column in (one.sets, one.repeats, one.first, one.second, one.outcomes)]
    one.append(actions, duels, np.array([-1]))
    with pytest.raises(InvalidInputError, match=r"\+1 .* -1 .* 0"):
        one.append(actions, duels, np.array([2]))
    with pytest.raises(InvalidInputError, match="rows below 2"):
        one.append(actions, duels._replace(second=np.array([2])), np.array([1]))
    with pytest.raises(InvalidInputError, match="dimension 2"):
        one.append(FiniteActions([[0.0], [1.0]]), duels, np.array([1]))
    for old, new in zip(before, (one.sets, one.repeats, one.first, one.second, one.outcomes), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_known_horizon_makes_room_at_once() -> None:
    assert DuelTable.start(lanes=1, dim=2).first.shape == (1, 256)
    assert DuelTable.start(lanes=1, dim=2, horizon=1000).first.shape == (1, 1024)
    assert DuelTable.start(lanes=1, dim=2, horizon=10**9).first.shape == (1, 4096)
