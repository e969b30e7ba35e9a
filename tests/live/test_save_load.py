"""A saved agent goes on bit for bit, and a file is whole or refused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import SavedStateError, UnknownDuelError
from duelist.core.serialize import to_bytes
from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.priors import GaussianBall, UniformBall
from duelist.samplers.mala import MALA
from tests.support.agents import ARMS, Ends, bytes_of, pair_policies

OTHER_ARMS = np.random.default_rng(2).standard_normal((9, 4))
EVERY_POLICY = [
    *pair_policies(),
    FGTS(alpha=5.0, prior=UniformBall(2.0)),
    FGTS(discount=0.9),
    FGTS(sampler="paper", mu=0.0),
    FGTS(sampler=MALA(steps=2), same_arm="redraw", prior=GaussianBall(1.0, 3.0), horizon=500),
]


def play(agent: Agent, rounds: int, start: int) -> list[tuple[int, int]]:
    """Ask on two action sets; answer two of three, one of them late and out of order."""
    pairs = []
    for t in range(start, start + rounds):
        duel = agent.choose(ARMS if t % 2 else OTHER_ARMS)
        pairs.append((duel.first, duel.second))
        if t % 3 == 0:
            agent.learn(duel, winner=min(duel.first, duel.second))
        elif t % 3 == 1 and t > 10:
            agent.learn(agent.pending[-3], winner="second")
    return pairs


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
def test_a_loaded_agent_goes_on_bit_for_bit(policy: Any, tmp_path: Path) -> None:
    straight = Agent(policy, dim=4, seed=11, horizon=1000)
    broken = Agent(policy, dim=4, seed=11, horizon=1000)
    pairs = play(straight, 90, 0)
    seen = play(broken, 37, 0)
    broken.save(tmp_path / "agent.duelist")
    again = Agent.load(tmp_path / "agent.duelist")
    assert again.pending == broken.pending
    assert again.policy == policy
    seen += play(again, 53, 37)
    assert seen == pairs
    assert bytes_of(again, tmp_path) == bytes_of(straight, tmp_path)


def test_saving_before_the_first_duel_works(tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4, seed=1)
    agent.save(tmp_path / "new")
    assert Agent.load(tmp_path / "new").choose(ARMS) == agent.choose(ARMS)


def test_saving_changes_nothing(tmp_path: Path) -> None:
    one, other = Agent(FGTS(), dim=4, seed=1), Agent(FGTS(), dim=4, seed=1)
    for t in range(30):
        play(one, 1, t)
        one.save(tmp_path / "one")
    play(other, 30, 0)
    assert bytes_of(one, tmp_path) == bytes_of(other, tmp_path)


def test_a_pending_duel_survives_and_may_be_answered_after_loading(tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4, seed=1)
    duel = agent.choose(ARMS)
    agent.save(tmp_path / "a")
    again = Agent.load(tmp_path / "a")
    again.learn(duel, winner=duel.second)
    assert again.rounds == 1


def test_a_dropped_duel_is_still_dropped_after_loading(tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4, seed=1, max_pending=1)
    agent.choose(ARMS)
    agent.choose(ARMS)
    agent.save(tmp_path / "a")
    with pytest.raises(UnknownDuelError, match="dropped"):
        Agent.load(tmp_path / "a").learn(0, "first")


def test_a_policy_of_the_users_own_is_passed_when_loading(tmp_path: Path) -> None:
    agent = Agent(Ends(), dim=4)
    agent.learn(agent.choose(ARMS), "second")
    agent.save(tmp_path / "mine")
    with pytest.raises(SavedStateError, match=r"policy=Ends\(\.\.\.\)"):
        Agent.load(tmp_path / "mine")
    assert Agent.load(tmp_path / "mine", policy=Ends()).report()["sum"] == -1.0


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda _data: b"",
        lambda _data: b"hello, world",
        lambda data: data[:400] + b"\x00" + data[401:],
    ],
)
def test_a_torn_or_foreign_file_is_refused(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4, seed=1)
    play(agent, 20, 0)
    path = tmp_path / "agent"
    agent.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SavedStateError):
        Agent.load(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SavedStateError, match="nowhere"):
        Agent.load(tmp_path / "nowhere")


def test_a_state_that_is_no_agent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(to_bytes({"weights": np.zeros(3)}))
    with pytest.raises(SavedStateError, match="saved agent"):
        Agent.load(tmp_path / "x")


def test_a_crash_while_writing_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent(FGTS(), dim=4, seed=1)
    path = tmp_path / "agent"
    agent.save(path)
    before = path.read_bytes()
    play(agent, 5, 0)

    def fail(_descriptor: int) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            agent.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["agent"]
