"""CCB agrees with sets and loops, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.environments import MatrixDuels
from duelist.experiments import simulate
from duelist.kernels.philox import arm_uniforms
from duelist.policies import CCB, Uniform
from tests.policies.matrix.slow import SlowRule, play_beside

ODD, WORD = 0x9E3779B97F4A7C15, 2**64


class SlowCCB(SlowRule):
    """Algorithm 1 of Zoghi et al. (2015)."""

    alpha = 0.51

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.reset()
        self.resets = 0

    def reset(self) -> None:
        self.b, self.rivals = set(range(self.k)), [set[int]() for _ in range(self.k)]
        self.losses = self.k

    def number(self, name: str, i: int, j: int) -> float:
        out, prints = np.empty((1, 1)), np.array([[(self._prints[i] * ODD % WORD) ^ self._prints[j]]], dtype=np.uint64)
        arm_uniforms(out, prints, self._streams.keys(name)[[self._lane]], self.t - 1)
        return float(out[0, 0])

    def choose(self) -> tuple[int, int]:  # noqa: C901 - the algorithm in one piece, to be read beside the paper
        k = range(self.k)
        u = [[self.upper(i, j, self.alpha, never=2.0) for j in k] for i in k]
        low = [[1.0 - u[j][i] for j in k] for i in k]
        upper = [sum(u[i][j] >= 0.5 for j in k if j != i) for i in k]
        lower = [sum(low[i][j] > 0.5 for j in k if j != i) for i in k]
        candidates = {i for i in k if upper[i] == max(upper)}
        if any(low[i][j] > 0.5 for i in k for j in self.rivals[i]):
            self.reset()
            self.resets += 1
        for i in sorted(self.b):
            if upper[i] < max(lower):
                self.b.remove(i)
                if len(self.rivals[i]) != self.losses + 1:
                    self.rivals[i] = {j for j in k if u[i][j] < 0.5}
        if not self.b:
            self.reset()
        exact = {i for i in candidates if upper[i] == lower[i]}
        for i in exact:
            self.b.add(i)
            self.losses = self.k - 1 - upper[i]
        for j in k if exact else ():
            if j in exact or len(self.rivals[j]) < self.losses + 1:
                self.rivals[j] = set()
            elif len(self.rivals[j]) > self.losses + 1:
                ranked = sorted(self.rivals[j], key=lambda i, j=j: -self.number("ccb keep", j, i))  # type: ignore[misc]
                self.rivals[j] = set(ranked[: self.losses + 1])
        undecided = [(i, j) for i in k for j in self.rivals[i] if low[i][j] <= 0.5 <= u[i][j]]
        if undecided and self.coin("ccb explore") < 0.25:
            return max(undecided, key=lambda pair: self.number("ccb pair", *pair))
        if self.b & candidates and self.coin("ccb narrow") < 2.0 / 3.0:
            candidates &= self.b
        first = self.draw(candidates, "ccb first")
        allowed = {j for j in k if low[j][first] <= 0.5}
        pool = allowed & self.rivals[first]
        if not pool or self.coin("ccb rivals") >= 0.5:
            pool = allowed
        if not pool - {first} or max(u[j][first] for j in pool - {first}) < 0.5:
            return first, self.draw(pool, "ccb second") if first not in pool else first
        return first, self.best({j: u[j][first] for j in pool - {first}}, "ccb second")


@pytest.mark.parametrize(("arms", "seed"), [(2, 5), (4, 1), (5, 2), (7, 3)])
def test_every_pair_is_that_of_the_plain_loop(arms: int, seed: int) -> None:
    state = play_beside(CCB(), SlowCCB, arms=arms, rounds=1500, seed=seed)
    np.testing.assert_array_equal(state.memory.sizes, state.memory.rivals.sum(axis=2))


@pytest.mark.slow
def test_the_hypotheses_of_long_runs_are_used() -> None:
    """A matrix without a Condorcet winner: every losing arm ends with as many rivals as refute it."""
    env = MatrixDuels.random(5, seed=3)
    run, floor = (simulate(policy, env, rounds=6000, trials=6, seed=0) for policy in (CCB(), Uniform()))
    assert run.final_regret.mean() < 0.35 * floor.final_regret.mean()
