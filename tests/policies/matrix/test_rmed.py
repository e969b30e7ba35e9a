"""RMED agrees with sets and loops, round by round."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies import RMED1, RMED2F
from tests.policies.matrix.slow import SlowRule, play_beside


def kl(p: float) -> float:
    return sum(q * math.log(2.0 * q) for q in (p, 1.0 - p) if q > 0.0)


class SlowRMED(SlowRule):
    """Algorithms 1 and 2 of Komiyama et al. (2015)."""

    meetings = 1

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.now, self.done, self.later = set(range(self.k)), set[int](), set[int]()
        self.listed = False

    def mu(self, i: int, j: int) -> float:
        return self.wins[i][j] / self.n(i, j) if self.n(i, j) else 0.5

    def against(self, i: int) -> float:
        terms = [round(self.n(i, j) * kl(self.mu(i, j)) * 2**32) for j in range(self.k) if j != i and self.mu(i, j) < 0.5]
        return sum(terms) / 2**32

    def seems_best(self) -> int:
        return self.best({i: -self.against(i) for i in range(self.k)}, "rmed best")

    def choose(self) -> tuple[int, int]:
        for i in self.in_order(range(self.k)):
            for j in self.in_order(range(self.k)):
                if i != j and self.n(i, j) < self.meetings:
                    self.listed = False
                    return i, j
        self.listed = True
        arm = self.in_order(self.now)[0]
        return arm, self.opponent(arm)

    def opponent(self, arm: int) -> int:
        beaten_by = [j for j in range(self.k) if j != arm and self.mu(arm, j) <= 0.5]
        seems_best = self.seems_best()
        if seems_best in beaten_by or not beaten_by:
            return seems_best
        return self.best({j: -self.mu(arm, j) for j in beaten_by}, "rmed opponent")

    def learn(self, first: int, second: int, won: float) -> None:
        super().learn(first, second, won)
        if not self.listed:
            return
        self.now.discard(first)
        self.done.add(first)
        against = [self.against(i) for i in range(self.k)]
        slack = math.log(self.t - 1) + 0.3 * self.k**1.01
        self.later |= {j for j in self.done if against[j] - min(against) <= slack}
        if not self.now:
            self.now, self.later = self.later, set()
            self.done = set(range(self.k)) - self.now


class SlowRMED2F(SlowRMED):
    """Algorithm 3, with opponents fixed when every pair has met."""

    meetings = math.ceil(3.0 * math.log(math.log(1500) + 0.01))
    rivals: dict[int, int] | None = None

    def choose(self) -> tuple[int, int]:
        if self.rivals is None and all(self.n(i, j) >= self.meetings for i in range(self.k) for j in range(i)):
            best = self.seems_best()
            self.rivals = {}
            for i in range(self.k):
                cost = {
                    j: max(self.mu(best, i) + self.mu(best, j) - 1.0, 0.01) / kl(self.mu(i, j))
                    for j in range(self.k)
                    if j != i and self.mu(i, j) < 0.5
                }
                low = min(cost.values(), default=0.0)
                self.rivals[i] = self.in_order(j for j in cost if cost[j] == low)[0] if cost else i
        return super().choose()

    def opponent(self, arm: int) -> int:
        assert self.rivals is not None
        rival, seems_best = self.rivals[arm], self.seems_best()
        loses = {j: j != arm and self.mu(arm, j) <= 0.5 for j in range(self.k)}
        seldom = self.n(arm, seems_best) * math.log(math.log(max(self.t, 3)) + 0.01) <= self.n(arm, rival)
        if loses[seems_best] and seldom:
            return seems_best
        return rival if loses[rival] else super().opponent(arm)


@pytest.mark.parametrize("arms", [2, 5, 8])
def test_every_pair_of_rmed1_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(RMED1(), SlowRMED, arms=arms, rounds=1500, lanes=2)
    assert (state.memory.unmet == 0).all()


@pytest.mark.parametrize("arms", [2, 5])
def test_every_pair_of_rmed2f_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(RMED2F(), SlowRMED2F, arms=arms, rounds=1500, lanes=2)
    assert (state.memory.rival >= 0).all()


def test_rmed2f_needs_hardly_more_meetings_for_a_longer_run() -> None:
    streams = Streams(0, [0])
    found = [RMED2F().start(Problem(dim=2, horizon=horizon), streams).memory.meetings for horizon in (100, 10_000, 10**8, None)]
    assert found == [5, 7, 9, 8]
    assert np.isclose(3.0 * math.log(math.log(10_000) + 0.01), 6.66, atol=0.01)
