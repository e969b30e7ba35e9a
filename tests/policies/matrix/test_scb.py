"""SCB agrees with lists and loops, round by round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from duelist.policies import SCB
from tests.policies.matrix.slow import SlowRule, play_beside


def kl(p: float, q: float) -> float:
    return sum(a * math.log(a / b) for a, b in ((p, q), (1.0 - p, 1.0 - q)) if a > 0.0)


def bound(mean: float, width: float, end: float) -> float:
    """The q between the mean and the end with KL(mean, q) = width."""
    edge = abs(end - 1e-15)
    if mean == end or kl(mean, edge) <= width:
        return end
    return float(brentq(lambda q: kl(mean, q) - width, mean, edge))


class SlowSCB(SlowRule):
    """A virtual bandit over Copeland scores, in phases."""

    length = 400

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.reset()

    def reset(self) -> None:
        self.wins = [[0.0] * self.k for _ in range(self.k)]
        self.left, self.plays, self.pay = set(range(self.k)), [0] * self.k, [0] * self.k
        self.pair: tuple[int, int] | None = None
        self.step = 0

    def level(self, rounds: int, step: int) -> float:
        return 0.51 * (math.log(4 * rounds * self.k) + 2 * max(1.0, math.log(max(1.0, math.log(step)))))

    def is_sure(self, i: int, j: int, step: int) -> bool:
        n = self.n(i, j)
        return n > 0 and n * kl(self.wins[i][j] / n, 0.5) > self.level(step, step)

    def credit(self, i: int, j: int, step: int) -> None:
        self.plays[i] += 1
        self.pay[i] += self.wins[i][j] > self.wins[j][i]
        if len({self.plays[arm] for arm in self.left}) == 1:
            width = {arm: self.level(self.length, step) / self.plays[arm] for arm in self.left}
            mean = {arm: self.pay[arm] / self.plays[arm] for arm in self.left}
            best = max(bound(mean[arm], width[arm], 0.0) for arm in self.left)
            self.left = {arm for arm in self.left if bound(mean[arm], width[arm], 1.0) >= best}

    def choose(self) -> tuple[int, int]:
        for attempt in range(33):
            if self.pair is not None or len(self.left) == 1:
                break
            least = min(self.plays[arm] for arm in self.left)
            i = self.in_order(arm for arm in self.left if self.plays[arm] == least)[0]
            j = self.draw([arm for arm in range(self.k) if arm != i], f"scb opponent {attempt}")
            if attempt < 32 and self.is_sure(i, j, self.step + 1):
                self.credit(i, j, self.step + 1)
            else:
                self.pair = (i, j)
        if self.pair is None:
            (last,) = self.left
            return last, last
        return self.pair

    def learn(self, first: int, second: int, won: float) -> None:
        super().learn(first, second, won)
        self.step += 1
        if self.step >= self.length:
            self.length **= 2
            self.reset()
        elif self.pair is not None and self.is_sure(first, second, self.step):
            self.credit(first, second, self.step)
            self.pair = None


@pytest.mark.parametrize("arms", [2, 4, 6])
def test_every_pair_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(SCB(phase=400), SlowSCB, arms=arms, rounds=3000, lanes=3)
    assert state.memory.length == 160_000
    assert (state.memory.plays.sum(axis=1) >= 2).all()
    assert np.count_nonzero(state.memory.active) < 3 * arms or arms > 2
