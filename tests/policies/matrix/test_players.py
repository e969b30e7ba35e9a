"""The two rules that keep one number per arm, and none per pair: Versatile-DB and Self-Sparring."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import beta

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import MatrixDuels
from duelist.kernels.philox import arm_uniforms
from duelist.policies import SelfSparring, VersatileDB
from duelist.policies.algorithms.matrix.versatile_db import tsallis_weights
from tests.policies.matrix.slow import SlowRule, play_beside


def test_weights_are_those_of_a_bracketed_root_from_any_start() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        losses, rate = rng.exponential(rng.choice([0.1, 10.0, 1000.0]), size=7), float(rng.choice([2.0, 0.1, 0.002]))

        def excess(x: float, losses: Any = losses, rate: float = rate) -> float:
            return float((4.0 / (rate * (losses - x)) ** 2).sum() - 1.0)

        right = losses.min() - 2.0 / rate
        root = brentq(excess, losses.min() - 2.0 * math.sqrt(7) / rate - 1.0, right, xtol=1e-13)
        start = right - float(rng.exponential(10.0 / rate))
        weights, _ = tsallis_weights(losses, rate, np.array(start))
        np.testing.assert_allclose(weights, 4.0 / (rate * (losses - root)) ** 2, rtol=1e-7)


class SlowVersatileDB(SlowRule):
    """Two players of Tsallis-INF with importance weights."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.losses = np.zeros((2, self.k))
        self.played = (0.0, 0.0)

    def choose(self) -> tuple[int, int]:
        arms, chances = [], []
        rate = 2.0 / math.sqrt(self.t)
        for player, name in enumerate(("first", "second")):
            losses = self.losses[player]
            low = losses.min()

            def excess(x: float, losses: Any = losses, rate: float = rate) -> float:
                return float((4.0 / (rate * (losses - x)) ** 2).sum() - 1.0)

            root = brentq(excess, low - 2.0 * math.sqrt(self.k) / rate - 1.0, low - 2.0 / rate, xtol=1e-13)
            weights = 4.0 / (rate * (losses - root)) ** 2
            order, level = self.in_order(range(self.k)), self.coin(f"versatile {name}")
            total, arm = 0.0, order[-1]
            for candidate in order:
                total += weights[candidate] / weights.sum()
                if total > level:
                    arm = candidate
                    break
            arms.append(arm)
            chances.append(weights[arm])
        self.played = (chances[0], chances[1])
        return arms[0], arms[1]

    def learn(self, first: int, second: int, won: float) -> None:
        self.losses[0, first] += (1.0 - won) / self.played[0]
        self.losses[1, second] += won / self.played[1]
        self.t += 1


def test_versatile_db_is_that_of_the_plain_loop() -> None:
    state = play_beside(VersatileDB(), SlowVersatileDB, arms=5, rounds=600)
    assert state.counts is None


class SlowSelfSparring(SlowRule):
    """Two draws of one Beta posterior per arm."""

    def content(self, name: str, arm: int) -> float:
        out = np.empty((1, 1))
        prints = np.array([[self._prints[arm]]], dtype=np.uint64)
        arm_uniforms(out, prints, self._streams.keys(name)[[self._lane]], self.t - 1)
        return float(out[0, 0])

    def choose(self) -> tuple[int, int]:
        arms = []
        for name in ("self-sparring first", "self-sparring second"):
            won = [sum(self.wins[i]) for i in range(self.k)]
            lost = [sum(self.wins[j][i] for j in range(self.k)) for i in range(self.k)]
            theta = {i: float(beta.ppf(self.content(name, i), 1.0 + won[i], 1.0 + lost[i])) for i in range(self.k)}
            arms.append(self.best(theta, name))
        return arms[0], arms[1]


def test_self_sparring_is_that_of_the_plain_loop() -> None:
    play_beside(SelfSparring(), SlowSelfSparring, arms=6, rounds=300, lanes=2)


def test_versatile_db_follows_preferences_that_turn_round() -> None:
    """The best of four arms becomes the worst after 500 rounds, and is hardly played 4,000 rounds later."""
    streams, policy = Streams(0, range(6)), VersatileDB()
    strengths = np.array([2.0, 0.3, 0.0, 1.0])
    state = policy.start(Problem(dim=4, lanes=6), streams)
    played = []
    for side, rounds in ((1.0, range(500)), (-1.0, range(500, 4500))):
        instance = MatrixDuels.bradley_terry(side * strengths).instance(streams)
        for t in rounds:
            actions = instance.actions(t)
            duels, state = policy.choose(state, actions, streams)
            state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
            played.append(duels.first == 0)
    assert np.mean(played[400:500]) > 0.4
    assert np.mean(played[-500:]) < 0.1
