"""Does a round get dearer as the history grows? One lane, fixed arms, early and late rounds measured in turn."""

from __future__ import annotations

import time
from statistics import median
from typing import Any, NamedTuple

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.base import Policy

_WINDOW = 1000  # rounds measured in each of the two runs


class Growth(NamedTuple):
    """Median seconds of choose + learn, early and late in a run."""

    early: float
    late: float


class _LiveRun:
    """One lane that can be stepped and timed."""

    def __init__(self, policy: Policy[Any], environment: LinearDuels, seed: int) -> None:
        self.policy, self.streams = policy, Streams(seed, [0])
        self.instance = environment.instance(self.streams)
        self.state: Any = policy.start(Problem(dim=environment.dim, horizon=None), self.streams)
        self.rounds = 0

    def step(self) -> float:
        actions = self.instance.actions(self.rounds)
        started = time.perf_counter()
        duels, asked = self.policy.choose(self.state, actions, self.streams)
        chosen = time.perf_counter()
        outcomes = self.instance.outcomes(self.rounds, duels)
        told = time.perf_counter()
        self.state = self.policy.learn(asked, actions, duels, outcomes)
        self.rounds += 1
        return (chosen - started) + (time.perf_counter() - told)

    def until(self, rounds: int) -> _LiveRun:
        while self.rounds < rounds:
            self.step()
        return self


def measure_growth(
    policy: Policy[Any] | None = None,
    *,
    early: int = 1_000,
    late: int = 100_000,
    window: int = _WINDOW,
    fresh_arms: bool = False,
) -> Growth:
    """Bring two runs to just before `early` and `late` rounds, then step them in turn, so that both meet the same machine.

    The policy is FGTS if none is given; `window` rounds of each run are measured.
    """
    environment, played = LinearDuels(dim=10, arms=32, fresh_arms=fresh_arms), policy or FGTS()
    young = _LiveRun(played, environment, seed=0).until(early - window // 2)
    old = _LiveRun(played, environment, seed=0).until(late - window // 2)
    times = [(young.step(), old.step()) for _ in range(window)]
    return Growth(median(t for t, _ in times), median(t for _, t in times))
