"""NonlinearFGTS in live use: its state can be saved after any number of answers, so journals and files go on bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from duelist.journal.memory import MemoryJournal
from duelist.live.agent import Agent
from tests.support.agents import ARMS, bytes_of

pytest.importorskip("jax")

from duelist.policies.algorithms.nonlinear.nonlinear_fgts import NonlinearFGTS
from duelist.rewards import Quadratic

POLICY = NonlinearFGTS(reward=Quadratic())


def vote(agent: Agent, times: int) -> list[tuple[int, int]]:
    pairs = []
    for t in range(times):
        duel = agent.choose(ARMS if t % 2 else ARMS[:4])
        pairs.append((duel.first, duel.second))
        agent.learn(duel, winner=min(duel.first, duel.second) if t % 5 else "tie")
    return pairs


@pytest.mark.slow
def test_a_journal_goes_on_bit_for_bit_over_snapshots(tmp_path: Path) -> None:
    straight = Agent(POLICY, dim=4, seed=2)
    pairs = vote(straight, 12) + vote(straight, 6)
    for snapshot_every in (5, 1000):
        with MemoryJournal() as journal:
            agent = Agent(POLICY, dim=4, seed=2, journal=journal, snapshot_every=snapshot_every)
            seen = vote(agent, 12)
            assert (journal.latest_snapshot() is not None) == (snapshot_every == 5)
            again = Agent(POLICY, dim=4, seed=2, journal=journal)
            assert seen + vote(again, 6) == pairs
            assert bytes_of(again, tmp_path) == bytes_of(straight, tmp_path)


def test_a_saved_agent_goes_on_bit_for_bit(tmp_path: Path) -> None:
    straight, broken = Agent(POLICY, dim=4, seed=2), Agent(POLICY, dim=4, seed=2)
    vote(straight, 8)
    vote(broken, 8)
    broken.save(tmp_path / "agent")
    again = Agent.load(tmp_path / "agent", policy=POLICY)
    assert vote(again, 5) == vote(straight, 5)
    assert bytes_of(again, tmp_path) == bytes_of(straight, tmp_path)
