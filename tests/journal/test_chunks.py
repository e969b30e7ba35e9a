"""A large snapshot is saved in chunks, read whole, and its chunks go when it does."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Generator, Mapping
from pathlib import Path

import numpy as np
import pytest

from duelist.core.errors import SavedStateError
from duelist.core.serialize import run_through
from duelist.journal.chunks import PREFIX, first_chunk, join_chunks, save_in_chunks, snapshot_size
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from duelist.policies.algorithms.uniform import Uniform

Steps = Generator[Mapping[str, bytes] | None, None, tuple[bytes, Collection[str]]]


def dump(data: bytes) -> Steps:
    yield {"rows/0": b"rows"}
    yield None
    return data, {"rows/0"}


def save(data: bytes, position: int) -> tuple[bytes, dict[str, bytes]]:
    """What the steps return and what they save."""
    pieces: dict[str, bytes] = {}

    def run() -> Generator[None, None, tuple[bytes, Collection[str]]]:
        steps = save_in_chunks(dump(data), position)
        while True:
            try:
                saved = next(steps)
            except StopIteration as end:
                returned: tuple[bytes, Collection[str]] = end.value
                return returned
            if saved is not None:
                pieces.update(saved)
            yield

    whole, names = run_through(run())
    assert names == {"rows/0"}, "chunks are not what the next snapshot goes on from"
    return whole, pieces


@pytest.mark.parametrize("size", [0, 10, 2**16, 2**16 + 1, 200_000])
def test_a_snapshot_comes_back_whole(size: int) -> None:
    data = np.random.default_rng(0).bytes(size)
    saved, pieces = save(data, 7)
    assert join_chunks(saved, 7, pieces.get) == data
    assert snapshot_size(saved) == size
    assert max(map(len, pieces.values())) <= 2**16
    assert len(pieces) == 1 + (0 if size <= 2**16 else -(-size // 2**16))


def test_a_chunk_that_is_gone_or_changed_is_noticed() -> None:
    saved, pieces = save(np.random.default_rng(0).bytes(200_000), 7)
    chunks = sorted(name for name in pieces if name.startswith(PREFIX))
    for damaged in (b"something else", None):
        changed = {**pieces, chunks[1]: damaged}
        with pytest.raises(SavedStateError, match="chunk 1 of the snapshot at event 7"):
            join_chunks(saved, 7, changed.get)


def test_chunks_of_earlier_snapshots_come_before_those_of_later_ones() -> None:
    names = [first_chunk(position) for position in (1, 9, 10, 99, 12_345, 10**12)]
    assert names == sorted(names)


def large_agent(journal: SQLiteJournal) -> Agent:
    """One whose offered sets, which snapshots hold, are 130 KB."""
    return Agent(Uniform(), dim=128, seed=0, journal=journal, snapshot_every=40)


def play(journal: SQLiteJournal, votes: int, seed: int) -> Agent:
    agent, rng = large_agent(journal), np.random.default_rng(seed)
    for _ in range(votes):
        agent.learn(agent.choose(rng.standard_normal((4, 128))), winner="first")
    return agent


def test_a_restart_reads_the_chunks_and_stale_ones_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    with SQLiteJournal(path) as journal:
        play(journal, 400, seed=0)
    with sqlite3.connect(path) as file:
        names = [name for (name,) in file.execute("SELECT name FROM pieces") if name.startswith(PREFIX)]
        kept = [position for (position,) in file.execute("SELECT position FROM snapshots ORDER BY position")]
    file.close()
    assert len(kept) == 2
    positions = {int(name.split("/")[1]) for name in names}
    assert {*kept} <= positions
    assert len(positions) <= 4, "of some twenty snapshots"
    with SQLiteJournal(path) as journal:
        agent = large_agent(journal)
        assert agent.rounds == 400
        assert agent._replica is not None
        assert agent._replica.counters.replayed < 100, "the rest came from the snapshot"


def test_a_damaged_chunk_leads_to_a_replay(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    with SQLiteJournal(path) as journal:
        play(journal, 100, seed=0)
    file = sqlite3.connect(path)
    file.execute("UPDATE pieces SET data = x'00' WHERE name >= ?", (PREFIX,))
    file.commit()
    file.close()
    with SQLiteJournal(path) as journal:
        agent = large_agent(journal)
        assert agent.rounds == 100
        assert agent._replica is not None
        assert agent._replica.counters.replayed == 201, "every event"


def test_what_is_small_takes_no_more_steps() -> None:
    assert run_through(save_in_chunks(dump(b"small"), 3)) == (b"small", {"rows/0"})
