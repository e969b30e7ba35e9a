"""Two services on one PostgreSQL journal share an arena without a lost or doubled vote."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from duelist.journal.postgres import PostgresJournal
from kill_harness import Memory, ServiceProcess, check_against_service, check_fold, create_arena, load, settle_doubts
from postgres_server import private_server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with private_server() as found:
        host = re.search(r"host=(\S+)", found)
        assert host is not None
        yield f"postgresql://duelist@/postgres?host={host[1]}"


@pytest.fixture(scope="module")
def two(address: str) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    # Started together: they also make the tables and the first key together.
    both = ServiceProcess(address), ServiceProcess(address)
    for service in both:
        service.wait_until_listening()
    yield both
    for service in both:
        service.stop()


def test_votes_through_both_are_all_there_once(two: tuple[ServiceProcess, ServiceProcess], address: str) -> None:
    create_arena(two[0], "shared")
    memory, stop = Memory(), threading.Event()
    threads = [t for n, service in enumerate(two) for t in load(service, "shared", memory, clients=4, seed=n, stop=stop)]
    time.sleep(2.0)
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    assert len(memory.answers) > 20
    for service in two:
        # An ask that changes nothing but brings the process up to date with the other.
        service.call("POST", "/api/v1/arenas/shared/asks", {"request_id": "0.0.1"})
        check_against_service(service, "shared", memory)
    with PostgresJournal(address) as journal:
        assert check_fold(journal) > len(memory.asks)


def test_one_ask_answered_through_both_at_once_counts_once(two: tuple[ServiceProcess, ServiceProcess]) -> None:
    create_arena(two[0], "race")
    for number in range(10):
        _, ask = two[number % 2].call("POST", "/api/v1/arenas/race/asks")
        path = f"/api/v1/arenas/race/asks/{ask['id']}/answer"
        with ThreadPoolExecutor(2) as pool:
            sent = [pool.submit(two[n].call, "PUT", path, {"outcome": outcome}) for n, outcome in enumerate(("left", "right"))]
        answers = [future.result() for future in sent]
        assert sorted(status for status, _ in answers) == [200, 409]
        won = next(answer["outcome"] for status, answer in answers if status == 200)
        for service in two:
            assert service.call("PUT", path, {"outcome": won})[1]["repeated"] is True


def test_when_one_is_killed_the_other_goes_on_and_nothing_is_lost(address: str) -> None:
    first, second = ServiceProcess(address), ServiceProcess(address)
    for service in (first, second):
        service.wait_until_listening()
    create_arena(first, "survivor")
    memory, stop = Memory(), threading.Event()
    threads = load(first, "survivor", memory, clients=4, seed=7, stop=stop)
    threads += load(second, "survivor", memory, clients=4, seed=8, stop=stop)
    time.sleep(1.0)
    first.kill()
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join(timeout=60)
    settle_doubts(second, "survivor", memory)
    check_against_service(second, "survivor", memory)
    second.stop()
    with PostgresJournal(address) as journal:
        check_fold(journal)
