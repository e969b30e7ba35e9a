"""A policy written for one run plays like one written for all lanes at once."""

# ruff: noqa: ARG002 - signatures of methods
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.journal import MemoryJournal
from duelist.policies import SingleRun
from duelist.testing import check_policy

ENV = duelist.LinearDuels(dim=3, arms=5)


@dataclass(frozen=True, kw_only=True)
class Greedy(SingleRun):
    """Greedy in place, as one would write it for one run."""

    rate: float = 0.5

    def start_one(self, dim: int, rng: np.random.Generator) -> Any:
        return {"theta": 0.01 * rng.standard_normal(dim), "seen": [0]}

    def choose_one(self, memory: Any, features: Any, rng: np.random.Generator) -> Any:
        order = np.argsort(-(features @ memory["theta"]))
        return (order[0], order[1]) if rng.random() > 0.2 else rng.choice(len(features), 2, replace=False)

    def learn_one(self, memory: Any, features: Any, i: int, j: int, outcome: int) -> None:
        z = features[i] - features[j]
        memory["theta"] += self.rate * (0.5 + 0.5 * outcome - 1 / (1 + np.exp(-z @ memory["theta"]))) * z
        memory["seen"].append(i)


@dataclass(frozen=True, kw_only=True)
class Functional(Greedy):
    """The same, returning another memory."""

    def learn_one(self, memory: Any, features: Any, i: int, j: int, outcome: int) -> Any:
        z = features[i] - features[j]
        slope = 0.5 + 0.5 * outcome - 1 / (1 + np.exp(-z @ memory["theta"]))
        return {"theta": memory["theta"] + self.rate * slope * z, "seen": [*memory["seen"], i]}


def by_hand(trial: int, rounds: int) -> list[tuple[int, int]]:
    """One run without lanes: the plain loop that the author had in mind."""
    rule, streams = Greedy(), Streams(7, [trial])
    instance = ENV.instance(streams)
    memory, pairs = rule.start_one(3, streams.generator("single run: start", 0)), []
    for t in range(rounds):
        features = instance.actions(t).features[0]
        i, j = map(int, rule.choose_one(memory, features, streams.generator("single run", 0, t)))
        z = (features[i] - features[j])[None]
        chance = 1 / (1 + np.exp(-np.einsum("ld,ld->l", instance.theta, z)))
        outcome = 1 if streams.uniforms("outcome", t)[0] < chance[0] else -1
        rule.learn_one(memory, features, i, j, outcome)
        pairs.append((i, j))
    return pairs


@pytest.mark.parametrize("policy", [Greedy(), Functional()], ids=["in place", "functional"])
def test_every_lane_plays_what_the_plain_loop_plays(policy: Any) -> None:
    run = duelist.simulate(policy, ENV, rounds=40, trials=[4, 1, 6], seed=7, workers=2)
    for lane, trial in enumerate(run.trials):
        assert list(zip(run.first[lane].tolist(), run.second[lane].tolist(), strict=True)) == by_hand(trial, 40)


def test_it_passes_the_checks_that_every_policy_must() -> None:
    report = check_policy(Greedy())
    assert not report.failures
    assert "permuted" not in str(report)


def test_it_plays_live_is_saved_and_survives_on_a_journal(tmp_path: Path) -> None:
    features = np.random.default_rng(0).normal(size=(6, 3))
    journal = MemoryJournal()
    agents = [duelist.Agent(Greedy(), dim=3, seed=1), duelist.Agent(Greedy(), dim=3, seed=1, journal=journal)]
    for t in range(15):
        duels = [agent.choose(features) for agent in agents]
        assert len({(duel.first, duel.second) for duel in duels}) == 1
        for agent, duel in zip(agents, duels, strict=True):
            agent.learn(duel, winner=("first", "second", "tie")[t % 3])
    agents[0].save(tmp_path / "agent.npz")
    loaded = duelist.Agent.load(tmp_path / "agent.npz", policy=Greedy())
    reopened = duelist.Agent(Greedy(), dim=3, seed=1, journal=journal)
    assert len({(duel.first, duel.second) for duel in (each.choose(features) for each in (agents[0], loaded, reopened))}) == 1


class Opaque:
    """A memory that is no plain data."""

    def __init__(self) -> None:
        self.wins = 0


@dataclass(frozen=True, kw_only=True)
class WithObject(Greedy):
    def start_one(self, dim: int, rng: np.random.Generator) -> Any:
        return Opaque()

    def choose_one(self, memory: Any, features: Any, rng: np.random.Generator) -> Any:
        return memory.wins % 2, 2

    def learn_one(self, memory: Any, features: Any, i: int, j: int, outcome: int) -> None:
        memory.wins += outcome == 1


def test_a_memory_that_is_no_plain_data_plays_and_is_refused_where_it_must_be_saved(tmp_path: Path) -> None:
    assert duelist.simulate(WithObject(), ENV, rounds=5, trials=2).first.shape == (2, 5)
    with pytest.raises(InvalidInputError, match="got Opaque"):
        duelist.Agent(WithObject(), dim=3).save(tmp_path / "agent.npz")
    with pytest.raises(InvalidInputError, match="got Opaque"):
        duelist.Agent(WithObject(), dim=3, journal=MemoryJournal())


@pytest.mark.parametrize("pair", [(0, 9), (0, -1), (0, 1, 2), 3, None, (0.5, 1), ("a", "b")])
def test_what_is_no_pair_of_rows_is_refused_by_name(pair: Any) -> None:
    class Wrong(Greedy):
        def choose_one(self, memory: Any, features: Any, rng: np.random.Generator) -> Any:
            return pair

    with pytest.raises(InvalidInputError, match=r"Wrong\.choose_one must return two rows \(i, j\) from 0 to 4"):
        duelist.simulate(Wrong(), ENV, rounds=3, trials=1)


def test_a_method_that_is_missing_is_named() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Empty(SingleRun):
        pass

    with pytest.raises(InvalidInputError, match="Empty must have the method start_one"):
        duelist.simulate(Empty(), ENV, rounds=3, trials=1)
