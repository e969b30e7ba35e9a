"""Two services on one PostgreSQL journal share an arena without a lost or doubled vote."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from duelist.journal.postgres import PostgresJournal
from tests.support.kill_harness import (
    Memory,
    ServiceProcess,
    check_against_service,
    check_fold,
    create_arena,
    join_all,
    load,
    settle_doubts,
    wait_for_answers,
)
from tests.support.postgres_server import private_server


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with private_server() as found:
        host = re.search(r"host=(\S+)", found)
        assert host is not None
        yield f"postgresql://duelist@/postgres?host={host[1]}"


@pytest.fixture(scope="module")
def two(address: str) -> Iterator[tuple[ServiceProcess, ServiceProcess]]:
    # Started together: they also make the tables and the first key together.
    with ServiceProcess(address) as one, ServiceProcess(address) as other:
        for service in (one, other):
            service.wait_until_listening()
        yield one, other
        for service in (one, other):
            service.stop()


@pytest.mark.slow
def test_votes_through_both_are_all_there_once(two: tuple[ServiceProcess, ServiceProcess], address: str) -> None:
    create_arena(two[0], "shared")
    memory, stop = Memory(), threading.Event()
    threads = [t for n, service in enumerate(two) for t in load(service, "shared", memory, clients=4, seed=n, stop=stop)]
    wait_for_answers(memory, 150)
    stop.set()
    join_all(threads)
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


@pytest.mark.slow
def test_when_one_is_killed_the_other_goes_on_and_nothing_is_lost(address: str) -> None:
    with ServiceProcess(address) as first, ServiceProcess(address) as second:
        for service in (first, second):
            service.wait_until_listening()
        create_arena(first, "survivor")
        memory, stop = Memory(), threading.Event()
        threads = load(first, "survivor", memory, clients=4, seed=7, stop=stop)
        threads += load(second, "survivor", memory, clients=4, seed=8, stop=stop)
        wait_for_answers(memory, 80)
        first.kill()
        wait_for_answers(memory, len(memory.answers) + 40)  # the other goes on
        stop.set()
        join_all(threads)
        settle_doubts(second, "survivor", memory)
        check_against_service(second, "survivor", memory)
        second.stop()
    with PostgresJournal(address) as journal:
        check_fold(journal)
