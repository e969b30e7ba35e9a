"""Short ways to build what many tests need: rounds at random, and the history that learnt them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.history.duels import duels_between
from duelist.history.history import History
from tests.support.oracles import Floats, Round


def random_rounds(rng: np.random.Generator, n_rounds: int, sets: Sequence[Floats]) -> list[Round]:
    """Rounds that offer one of the sets each, with random pairs (an arm may meet itself) and random outcomes."""
    rounds = []
    for _ in range(n_rounds):
        arms = sets[int(rng.integers(len(sets)))]
        first, second = rng.integers(len(arms), size=2)
        rounds.append(Round(arms, int(first), int(second), int(rng.choice([-1, 1]))))
    return rounds


def learn_round(history: History, lanes: Sequence[Round]) -> History:
    """The history with one more round, one entry a lane."""
    actions = FiniteActions(np.stack([played.arms for played in lanes]))
    first, second = np.array([r.first for r in lanes]), np.array([r.second for r in lanes])
    return history.append(actions, duels_between(actions, first, second), np.array([r.outcome for r in lanes]))


def history_of(lanes: Sequence[Sequence[Round]], *, keep_sets: bool = True) -> History:
    """The history of several runs of equal length, one list of rounds a lane."""
    history = History.start(lanes=len(lanes), dim=lanes[0][0].arms.shape[1], keep_sets=keep_sets)
    for together in zip(*lanes, strict=True):
        history = learn_round(history, together)
    return history
