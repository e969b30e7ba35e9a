"""Slow, obvious versions of K-armed rules: one lane, lists and loops, all K^2 pairs in every round.

They share the random numbers of the package and none of its code for rules: `draw` names the numbers as the package does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.matrix import MatrixDuels

SEED = 5


class SlowRule:
    """What every slow rule has: the wins, the round, and random choice by content."""

    def __init__(self, prints: list[int], streams: Streams, lane: int) -> None:
        self.k = len(prints)
        self.wins = [[0.0] * self.k for _ in range(self.k)]
        self.t = 1
        self._prints, self._streams, self._lane = prints, streams, lane

    def coin(self, name: str) -> float:
        """One uniform number of this round."""
        return float(self._streams.uniforms(name, self.t - 1)[self._lane])

    def in_order(self, arms: Iterable[int]) -> list[int]:
        """Arms in the order of their contents."""
        return sorted(arms, key=lambda arm: self._prints[arm])

    def draw(self, arms: Iterable[int], name: str) -> int:
        """One of the arms at random."""
        ordered = self.in_order(arms)
        return ordered[int(self.coin(name) * len(ordered))] if len(ordered) > 1 else ordered[0]

    def best(self, scores: dict[int, float], name: str) -> int:
        """The arm of the largest score, at random among equals."""
        top = max(scores.values())
        return self.draw([arm for arm, score in scores.items() if score == top], name)

    def n(self, i: int, j: int) -> float:
        """How often two arms met."""
        return self.wins[i][j] + self.wins[j][i]

    def upper(self, i: int, j: int, alpha: float, never: float = math.inf) -> float:
        """u_ij."""
        if i == j:
            return 0.5
        if self.n(i, j) == 0:
            return never
        return self.wins[i][j] / self.n(i, j) + math.sqrt(alpha * math.log(self.t) / self.n(i, j))

    def choose(self) -> tuple[int, int]:
        raise NotImplementedError

    def learn(self, first: int, second: int, won: float) -> None:
        """Count the duel; a rule that keeps more does so here."""
        if first != second:
            self.wins[first][second] += won
            self.wins[second][first] += 1.0 - won
        self.t += 1


def play_beside(
    policy: Any, make: Callable[..., SlowRule], *, arms: int, rounds: int, lanes: int = 3, ties: bool = True, seed: int = SEED
) -> Any:
    """Play a policy and a slow rule beside it: they must agree on every pair. Returns the last state.

    Args:
        policy: the rule of the package.
        make: the slow rule, given prints, streams and lane.
        arms: K of a random matrix with a Condorcet winner.
        rounds: how many.
        lanes: how many.
        ties: whether every seventh duel ends in a tie.
        seed: names everything.
    """
    rng = np.random.default_rng(seed)
    matrix = np.triu(rng.uniform(0.2, 0.8, (arms, arms)), 1)
    matrix[0, 1:] = rng.uniform(0.55, 0.9, arms - 1)
    matrix = matrix + np.tril(1.0 - matrix.T, -1) + 0.5 * np.eye(arms)
    streams = Streams(seed, range(lanes))
    instance = MatrixDuels(matrix=matrix).instance(streams)
    actions = instance.actions(0)
    slow = [make([int(print_) for print_ in actions.fingerprints[lane]], streams, lane) for lane in range(lanes)]
    state = policy.start(Problem(dim=arms, lanes=lanes, horizon=rounds), streams)
    for t in range(rounds):
        duels, state = policy.choose(state, actions, streams)
        expected = [rule.choose() for rule in slow]
        assert list(zip(duels.first.tolist(), duels.second.tolist(), strict=True)) == expected, f"round {t}"
        outcomes = np.where((t % 7 == 3) & ties, 0, instance.outcomes(t, duels))
        state = policy.learn(state, actions, duels, outcomes)
        for lane, rule in enumerate(slow):
            rule.learn(*expected[lane], 0.5 + 0.5 * float(outcomes[lane]))
    return state
