"""COLDB shares votes between users who seem to want the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions import FiniteActions, UserActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import UserDuels
from duelist.history.duels import duels_between
from duelist.policies import COLDB
from tests.support.reference_policies import Taught, norm, slow_fit, slow_matrix

STREAMS = Streams(0, [0])
ARMS = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]


def reachable(user: int, cut: set[frozenset[int]], users: int) -> list[int]:
    """Who is connected with a user in the complete graph without the edges that were cut."""
    found = [user]
    for one in found:
        found += [other for other in range(users) if other not in found and frozenset((one, other)) not in cut]
    return sorted(found)


@pytest.mark.parametrize("edge", [0.0, 0.9, 1e9])
def test_every_round_agrees_with_the_rule_in_plain_python(edge: float) -> None:
    generator, streams, users = np.random.default_rng(8), Streams(4, [6]), 4
    policy = COLDB(users=users, radius=1.5, edge=edge, ridge=0.5, fit_ridge=0.2)
    state = policy.start(Problem(dim=2), streams)
    truth = 2.0 * np.array([[1.0, 0.3], [-1.0, 0.5]])
    records: list[list[Taught]] = [[] for _ in range(users)]
    cut: set[frozenset[int]] = set()
    sizes = set()
    for t in range(60):
        user = int(generator.integers(users))
        actions = UserActions(generator.standard_normal((5, 2)), user)
        arms = actions.features[0]
        members = reachable(user, cut, users)
        sizes.add(len(members))
        votes = [vote for member in members for vote in records[member]]
        duels, state = policy.choose(state, actions, streams)
        theta, matrix = slow_fit(votes, 2, 0.2), slow_matrix(votes, 2, 0.5)
        first = int(np.argmax(arms @ theta)) if votes else int(duels.first[0])
        scores = [float(theta @ (x - arms[first])) + 1.5 * norm(x - arms[first], matrix) for x in arms]
        assert (int(duels.first[0]), int(duels.second[0])) == (first, int(np.argmax(scores))), f"round {t}"
        assert duels.note is not None
        assert duels.note.tolist() == [[user]]
        z = arms[first] - arms[int(duels.second[0])]
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth[user % 2] @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        records[user].append(Taught(z, outcome))
        alone = [slow_fit(record, 2, 0.2) for record in records]
        counts = [sum(1 for vote in record if vote.contrast.any()) for record in records]
        doubt = [edge * math.sqrt((1.0 + math.log(1.0 + n)) / (1.0 + n)) for n in counts]
        for other in range(users):
            if float(np.linalg.norm(alone[user] - alone[other])) > doubt[user] + doubt[other]:
                cut.add(frozenset((user, other)))
        assert policy.clusters(state)[0].tolist() == [reachable(one, cut, users)[0] for one in range(users)], f"round {t}"
    assert 1 in sizes if edge == 0.0 else 4 in sizes
    assert edge != 0.9 or len(sizes) > 2


def test_users_who_voted_the_same_way_stay_together_by_hand() -> None:
    """With edge = 0.5 and one vote each, 2 x 0.5 x sqrt((1 + log 2) / 2) = 0.92 parts +0.66 from -0.66 and joins equals."""
    policy = COLDB(users=3, edge=0.5, ridge=1.0)
    state = policy.start(Problem(dim=2), STREAMS)
    duel = duels_between(FiniteActions(ARMS), np.array([0]), np.array([2]))
    for user, outcome in enumerate((1, -1, 1)):
        state = policy.learn(state, UserActions(ARMS, user), duel, np.array([outcome]))
    # theta = (c, 0) with c = 2 s(-2c): the first and the last user are 0 apart, the second is 2c from both.
    c = float(state.thetas[0, 0, 0])
    assert c == pytest.approx(2.0 / (1.0 + math.exp(2.0 * c)), abs=1e-5)
    assert state.edges[0, 0].tolist() == [True, False, True]
    assert policy.clusters(state)[0].tolist() == [0, 1, 0]
    assert policy.report(state)["clusters"].tolist() == [2.0]


def test_an_edge_of_nothing_is_one_policy_per_user() -> None:
    """Each user plays as if alone: the rounds of one user are a run of COLDB for that user."""
    env = UserDuels(dim=3, arms=6, users=3, clusters=2, geometry="sphere")
    streams = Streams(5, [0])
    instance, together, alone = env.instance(streams), COLDB(users=3, edge=0.0), COLDB(users=1)
    states = [alone.start(Problem(dim=3), streams) for _ in range(3)]
    state = together.start(Problem(dim=3), streams)
    for t in range(80):
        actions = instance.actions(t)
        user = int(actions.users[0])
        duels, state = together.choose(state, actions, streams)
        if states[user].history.rounds:
            own, _ = alone.choose(states[user], FiniteActions(actions.features), streams)
            assert (own.first.tolist(), own.second.tolist()) == (duels.first.tolist(), duels.second.tolist())
        outcomes = instance.outcomes(t, duels)
        state = together.learn(state, actions, duels, outcomes)
        states[user] = alone.learn(states[user], FiniteActions(actions.features), duels._replace(note=None), outcomes)


def test_pending_questions_of_a_user_differ() -> None:
    policy = COLDB(users=2, same_arm="different", radius=1.0, edge=0.0)
    actions = UserActions(2.0 * np.eye(4), 1)
    state = policy.start(Problem(dim=4), STREAMS)
    first, state = policy.choose(state, actions, STREAMS)
    second, after = policy.choose_with_pending(state, actions, STREAMS, [first])
    assert {int(first.first[0]), int(first.second[0])} != {int(second.first[0]), int(second.second[0])}
    np.testing.assert_array_equal(after.grams, state.grams)


def test_many_users_are_kept_apart_and_saved(tmp_path: Any) -> None:
    """More users than fit a byte."""
    agent = duelist.Agent(COLDB(users=300, edge=0.0), dim=2, seed=0)
    for user in (0, 299):
        for _ in range(6):
            duel = agent.choose(UserActions(ARMS[:2], user))
            agent.learn(duel, winner=0 if user else 1)
    agent.save(tmp_path / "agent.npz")
    loaded = duelist.Agent.load(tmp_path / "agent.npz")
    assert [loaded.choose(UserActions(ARMS[:2], user)).first for user in (0, 299)] == [1, 0]


@pytest.mark.parametrize(("setting", "word"), [({"users": 0}, "users"), ({"edge": -1.0}, "edge"), ({"radius": -1.0}, "radius")])
def test_bad_settings_are_named(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        COLDB(**setting)


def test_unknown_users_and_notes_are_refused() -> None:
    policy = COLDB(users=2)
    state = policy.start(Problem(dim=2), STREAMS)
    with pytest.raises(InvalidInputError, match="users must be numbered from 0 to 1"):
        policy.choose(state, UserActions(ARMS, 2), STREAMS)
    duel = duels_between(FiniteActions(ARMS), np.array([0]), np.array([2]), np.array([[0.5]]))
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, FiniteActions(ARMS), duel, np.array([1]))
