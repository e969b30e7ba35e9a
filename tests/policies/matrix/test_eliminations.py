"""The rules that drop arms one by one, Beat the Mean and Interleaved Filter, agree with lists and loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.policies import BeatTheMean, InterleavedFilter
from tests.policies.matrix.slow import SlowRule, play_beside

ROUNDS = 4000


class SlowBeatTheMean(SlowRule):
    """Algorithm 1 of Yue & Joachims (2011): a list of all duels, counted anew in every round."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.left = set(range(self.k))
        self.log: list[tuple[int, int, float]] = []

    def tally(self, arm: int) -> tuple[float, int]:
        mine = [won for first, second, won in self.log if first == arm and second in self.left and second != first]
        return sum(mine), len(mine)

    def choose(self) -> tuple[int, int]:
        if len(self.left) == 1:
            (arm,) = self.left
            return arm, arm
        first = self.best({arm: -self.tally(arm)[1] for arm in self.left}, "beat the mean first")
        return first, self.draw(self.left - {first}, "beat the mean second")

    def learn(self, first: int, second: int, won: float) -> None:
        self.t += 1
        if len(self.left) == 1:
            return
        self.log.append((first, second, won))
        tallies = {arm: self.tally(arm) for arm in self.left}
        fewest = min(met for _, met in tallies.values())
        if fewest == 0:
            return
        share = {arm: won / met for arm, (won, met) in tallies.items()}
        radius = 0.4 * math.sqrt(math.log(2.0 * ROUNDS * self.k) / fewest)
        if min(share.values()) + radius <= max(share.values()) - radius:
            low = min(share.values())
            self.left.remove(self.in_order(arm for arm in self.left if share[arm] == low)[0])


class SlowInterleavedFilter(SlowRule):
    """IF2 of Yue et al. (2012)."""

    champion: int | None = None

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.left = set(range(self.k))
        self.tally = {arm: [0.0, 0] for arm in range(self.k)}

    def choose(self) -> tuple[int, int]:
        if self.champion is None:
            self.champion = self.draw(range(self.k), "interleaved champion")
            self.left.remove(self.champion)
        if not self.left:
            return self.champion, self.champion
        least = min(self.tally[arm][1] for arm in self.left)
        return self.champion, self.in_order(arm for arm in self.left if self.tally[arm][1] == least)[0]

    def learn(self, first: int, second: int, won: float) -> None:
        self.t += 1
        if first == second:
            return
        self.tally[second][0] += won
        self.tally[second][1] += 1
        share = {arm: wins / met if met else 0.5 for arm, (wins, met) in self.tally.items()}
        width = math.sqrt(4.0 * math.log(ROUNDS * self.k**2) / self.tally[second][1])
        if share[second] - width > 0.5:
            self.left.remove(second)
        elif share[second] + width < 0.5:
            self.left = {arm for arm in self.left if share[arm] <= 0.5} - {second}
            self.champion = second
            self.tally = {arm: [0.0, 0] for arm in range(self.k)}


@pytest.mark.parametrize("arms", [2, 5])
def test_beat_the_mean_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(BeatTheMean(width=0.4, horizon=ROUNDS), SlowBeatTheMean, arms=arms, rounds=1200, lanes=2)
    dropped = np.count_nonzero(~state.memory.active, axis=1)
    assert dropped.max() >= 1


@pytest.mark.parametrize("arms", [3, 4, 6])
def test_the_interleaved_filter_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(InterleavedFilter(), SlowInterleavedFilter, arms=arms, rounds=ROUNDS)
    assert np.count_nonzero(~state.memory.active) >= 1
