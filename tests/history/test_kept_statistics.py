"""Statistics that a caller keeps stay those of their rounds, whatever the history does afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.box import BoxActions
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.history.last_duel import LastDuel
from duelist.history.statistics import Statistics
from duelist.policies.algorithms.sampling.fgts import FGTS

LANES, DIM = 2, 3
HISTORIES: dict[str, dict[str, Any]] = {
    "plain": {},
    "with sets": {"keep_sets": True},
    "forgetting": {"keep_sets": True, "discount": 0.9},
    "in layers": {"layers": 3},
    "sampled sets": {"keep_sets": True, "max_sets": 16},
}


def numbers(statistics: Statistics) -> list[Any]:
    """Copies of all that is in use."""
    n = statistics.n_rows
    rows = [
        (statistics.contrasts[lane, :, : n[lane]], statistics.totals[lane, : n[lane]], statistics.losses[lane, : n[lane]])
        for lane in range(len(n))
    ]
    sets = [statistics.sets[:, : len(statistics.repeats)], statistics.repeats, statistics.adversary, statistics.ball_reach]
    newest = () if statistics.newest is None else statistics.newest
    support = () if statistics.support is None else [np.asarray(part) for part in statistics.support[:4]]
    return [np.array(part) for group in (*rows, [n], sets, newest, support) for part in group]


def play(history: Any, rounds: int, seed: int, *, fresh: bool, continuous: bool = False, layers: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    fixed = FiniteActions(np.random.default_rng(0).standard_normal((LANES, 5, DIM)))
    for t in range(rounds):
        outcomes = rng.choice([-1, 0, 1], size=LANES)
        if continuous and t % 3 == 1:
            actions = (
                BallActions(LANES, DIM, 1.5) if t % 2 else BoxActions([[-1.0] * DIM] * LANES, [[1.0 + t % 4] * DIM] * LANES)
            )
            nowhere = np.full(LANES, -1)
            history = history.append(actions, Duels(nowhere, nowhere, rng.standard_normal((LANES, 2, DIM))), outcomes)
            continue
        arms = FiniteActions(rng.standard_normal((LANES, 4 + t % 3, DIM))) if fresh else fixed
        duels = duels_between(arms, *rng.integers(4, size=(2, LANES)))
        where = {"layers": rng.integers(layers, size=LANES)} if layers > 1 else {}
        history = history.append(arms, duels, outcomes, **where)
    return history


def assert_same(left: list[Any], right: list[Any]) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("fresh", [False, True], ids=["fixed arms", "fresh arms"])
@pytest.mark.parametrize("kind", HISTORIES)
def test_kept_statistics_do_not_change_when_the_history_grows(kind: str, fresh: bool) -> None:
    settings = HISTORIES[kind]
    mixed = {"fresh": fresh, "layers": settings.get("layers", 1), "continuous": bool(settings.get("keep_sets"))}
    history = History.start(lanes=LANES, dim=DIM, **settings)
    kept = []
    # One round at a time at first, where arrays have just grown and where they have room, then far beyond.
    for t, more in enumerate([0, 1, 1, 1, 14, 1, 30, 1, 40, 1]):
        history = play(history, more, t, **mixed)
        statistics = history.statistics
        kept.append((statistics, numbers(statistics)))
        assert_same(numbers(history.live_statistics), numbers(statistics))
    history = play(history, 150, 99, **mixed)
    for statistics, before in kept:
        assert_same(numbers(statistics), before)


def test_live_statistics_do_change_and_say_the_same_until_then() -> None:
    history = play(History.start(lanes=LANES, dim=DIM, keep_sets=True), 40, 1, fresh=False)
    live, before = history.live_statistics, numbers(history.statistics)
    assert_same(numbers(live), before)
    play(history, 1, 2, fresh=False)
    assert live.totals.sum() == before[1].sum() + before[4].sum() + LANES


def test_what_a_caller_writes_into_kept_statistics_stays_with_the_caller() -> None:
    history = play(History.start(lanes=LANES, dim=DIM), 20, 1, fresh=False)
    before = numbers(history.statistics)
    for array in (history.statistics.totals, history.statistics.losses, history.statistics.contrasts):
        array += 1.0
    assert_same(numbers(history.statistics), before)


def test_a_one_pass_history_gives_new_statistics_every_time() -> None:
    history = play(LastDuel.start(lanes=LANES, dim=DIM), 3, 1, fresh=True)
    kept = history.live_statistics
    before = numbers(kept)
    play(history, 3, 2, fresh=True)
    assert_same(numbers(kept), before)


def test_a_potential_that_a_caller_keeps_stays_that_of_its_rounds() -> None:
    policy, streams = FGTS(), Streams(0, range(LANES))
    arms = FiniteActions(np.random.default_rng(0).standard_normal((LANES, 5, DIM)))
    state = policy.start(Problem(dim=DIM, lanes=LANES, horizon=50), streams)
    potential, theta, before = None, np.random.default_rng(1).standard_normal((LANES, 2, DIM)), None
    for t in range(12):
        duels, state = policy.choose(state, arms, streams)
        state = policy.learn(state, arms, duels, np.array([1, -1]))
        if t == 5:
            potential = policy.potential(state)
            before = potential.value(theta)
    assert potential is not None
    np.testing.assert_array_equal(potential.value(theta), before)
    assert (policy.potential(state).value(theta) != before).all()
