"""Arms are known by their content: they may come late, leave, return, repeat and change rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import MatrixDuels
from duelist.policies.parts import known_arms
from duelist.policies.parts.matrix_policy import MatrixPolicy
from duelist.policies.registry import duel_policies

RULES = {name: kind for name, kind in duel_policies().items() if issubclass(kind, MatrixPolicy)}
every_rule = pytest.mark.parametrize("name", RULES)
ARMS = np.random.default_rng(0).standard_normal((2, 9, 3))


def test_counts_are_by_content_whatever_set_an_arm_was_offered_in() -> None:
    rng, streams = np.random.default_rng(1), Streams(0, [0, 1])
    policy = RULES["RUCB"]()
    state = policy.start(Problem(dim=3, lanes=2), streams)
    wins: dict[tuple[int, tuple[float, ...], tuple[float, ...]], float] = {}
    for t in range(200):
        rows = rng.permutation(9)[: rng.integers(2, 6)]
        rows = np.append(rows, rows[0]) if t % 5 == 0 else rows  # the same arm in two rows
        actions = FiniteActions(ARMS[:, rows])
        duels, state = policy.choose(state, actions, streams)
        outcomes = rng.choice([-1, 0, 1], size=2)
        late = FiniteActions(ARMS[:, rng.permutation(9)])  # another set was offered before the answer came
        if t % 3 == 0:
            _, state = policy.choose(state, late, streams)
        state = policy.learn(state, actions, duels, outcomes)
        for lane in range(2):
            first, second = (tuple(duels.features[lane, side].tolist()) for side in (0, 1))
            if first != second:
                share = 0.5 + 0.5 * float(outcomes[lane])
                wins[lane, first, second] = wins.get((lane, first, second), 0.0) + share
                wins[lane, second, first] = wins.get((lane, second, first), 0.0) + 1.0 - share
    everyone = FiniteActions(ARMS)
    _, state = policy.choose(state, everyone, streams)
    places = state.arms.places
    assert state.counts is not None
    for lane in range(2):
        for i in range(9):
            for j in range(9):
                expected = wins.get((lane, tuple(ARMS[lane, i].tolist()), tuple(ARMS[lane, j].tolist())), 0.0)
                assert state.counts.cells[0, lane, places[lane, i], places[lane, j]] == expected


@every_rule
def test_what_is_kept_of_all_arms_is_what_is_worked_out_for_those_on_offer(name: str) -> None:
    """An arm that nobody offers again is as if it were not there: the same pairs as with the other arms alone."""
    streams, policy = Streams(3, [0, 1]), RULES[name]()
    with_stranger, without = (policy.start(Problem(dim=3, lanes=2, horizon=300), streams) for _ in range(2))
    few, many = FiniteActions(ARMS[:, :4]), FiniteActions(ARMS[:, :5])
    known, _ = with_stranger.arms.place(many.fingerprints)
    with_stranger = policy._know(with_stranger, known)
    rng, played = np.random.default_rng(2), []
    for _ in range(150):
        outcomes = rng.choice([-1, 1], size=2)
        pair = []
        for state in (with_stranger, without):
            duels, asked = policy.choose(state, few, streams)
            pair.append((duels, policy.learn(asked, few, duels, outcomes)))
        (first, with_stranger), (second, without) = pair
        played.append((first.first.tolist(), first.second.tolist()) == (second.first.tolist(), second.second.tolist()))
    assert np.mean(played) == 1.0


@every_rule
def test_nobody_is_shown_one_thing_twice_and_people_asked_at_once_get_different_pairs(name: str) -> None:
    agent: Any = duelist.Agent(RULES[name](), dim=3, seed=0)
    features, rng = ARMS[0, :6], np.random.default_rng(4)
    pairs = []
    for _ in range(60):
        asked = [agent.choose(features) for _ in range(4)]
        assert all(duel.first != duel.second for duel in asked)
        pairs += [len({frozenset(duel.rows) for duel in asked})]
        for duel in asked:
            agent.learn(duel, "first" if rng.random() < 0.5 + 0.4 * np.sign(duel.second - duel.first) else "second")
    # RMED2F begins by asking for every pair eight times in a row, and SCB until it is decided: they mean it.
    assert np.mean(pairs[:20]) > 1.5 or name in ("RMED2F", "SCB")


@pytest.mark.slow
@every_rule
def test_the_arm_that_wins_is_recommended(name: str) -> None:
    env = MatrixDuels.bradley_terry([0.0, 3.0, 0.8, -1.0])
    rounds = 3000 if name == "SCB" else 400  # it decides pairs one after the other
    run = duelist.simulate(RULES[name](), env, rounds=rounds, trials=5, seed=0, simple_regret=rounds)
    assert run.simple_regret is not None
    assert np.median(run.simple_regret[:, -1]) == 0.0


def test_more_arms_than_a_table_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_arms, "MOST_ARMS", 8)
    streams = Streams(0, [0, 1])
    policy = RULES["RUCB"]()
    state = policy.start(Problem(dim=3, lanes=2), streams)
    with pytest.raises(InvalidInputError, match="at most 8 different arms; got 9"):
        policy.choose(state, FiniteActions(ARMS), streams)
