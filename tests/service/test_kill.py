"""Nothing acknowledged is lost, whenever the process dies."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import NamedTuple

import pytest

from duelist.core.errors import DuelistError
from duelist.journal.sqlite import SQLiteJournal
from tests.support.kill_harness import (
    Memory,
    ServiceProcess,
    check_against_service,
    check_fold,
    create_arena,
    kill_once,
    last_check,
)


class Killed(NamedTuple):
    """A service that was killed and started again: its file, and what was seen."""

    data: Path
    memory: Memory
    listened: list[bool]
    events: int
    said: list[str]


# Killed under load at three moments, and once while it starts. benchmarks/service_kill.py does this 200 times.
SEEDS = (1, 2, 49, 3)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    data, memory = tmp_path_factory.mktemp("killed") / "votes.db", Memory()
    listened = [kill_once(data, memory, arena="arena", seed=seed) for seed in SEEDS]
    return Killed(data, memory, listened, *last_check(data, memory, arena="arena"))


@pytest.mark.slow
def test_killed_at_random_moments_the_service_loses_and_doubles_nothing(killed: Killed) -> None:
    assert killed.listened == [True, True, False, True]
    assert killed.events > len(killed.memory.asks) > 20
    assert len(killed.memory.answers) > 20
    assert any("was not closed" in line for line in killed.said)


@pytest.mark.slow
def test_a_torn_last_record_is_reported_and_survived(tmp_path: Path) -> None:
    data, memory = tmp_path / "votes.db", Memory()
    with ServiceProcess(str(data)) as service:
        service.wait_until_listening()
        create_arena(service, "arena")
        for _ in range(5):
            _, ask = service.call("POST", "/api/v1/arenas/arena/asks")
            memory.asks[ask["id"]] = (ask["left"]["item"], ask["right"]["item"])
        service.kill()
    log = data.with_name("votes.db-wal")
    frame = 24 + 4096
    whole = log.read_bytes()
    # The machine died while the next page was written: its header and a part of it reached the disk.
    log.write_bytes(whole + whole[-frame:][:1000])
    with ServiceProcess(str(data)) as again:
        again.wait_until_listening()
        assert any("torn last record" in line for line in again.said)
        assert "torn last record" in again.call("GET", "/healthz")[1]["notes"][0]
        check_against_service(again, "arena", memory)
        assert again.call("POST", "/api/v1/arenas/arena/asks")[0] == 201
        again.stop()


@pytest.mark.slow
def test_the_check_of_the_fold_notices_a_changed_event(killed: Killed, tmp_path: Path) -> None:
    # A check that cannot fail would prove nothing: alter one vote in the file and it must be seen.
    data = shutil.copy(killed.data, tmp_path / "votes.db")
    with sqlite3.connect(data) as database:
        database.execute("UPDATE events SET body = replace(body, '\"first\"', '\"second\"') WHERE kind = 'told'")
    database.close()
    with SQLiteJournal(data) as journal, pytest.raises((AssertionError, DuelistError)):
        check_fold(journal)
