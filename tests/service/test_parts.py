"""The small parts: rate limits, sessions, starting."""

from __future__ import annotations

import gc
import socket
from pathlib import Path

import pytest

from duelist.core.errors import InvalidInputError
from duelist.journal.address import open_journal
from duelist.journal.memory import MemoryJournal
from duelist.service.arena.outcomes import Outcome, from_sides, to_sides
from duelist.service.bootstrap import bound_socket, embedder_from, first_key, freeze_gc
from duelist.service.http.middleware import RateLimit
from duelist.service.sessions import Sessions
from duelist.service.settings import ServiceSettings
from duelist.service.store import Store


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_gives_a_burst_and_then_a_steady_rate() -> None:
    clock = Clock()
    limit = RateLimit(rate=2.0, burst=3, clock=clock)
    assert [limit.take("k") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert limit.take("k") == pytest.approx(0.5)
    assert limit.take("other") == 0.0, "each name has its own"
    clock.now = 0.5
    assert limit.take("k") == 0.0
    assert limit.take("k") == pytest.approx(0.5)
    clock.now = 1000.0
    assert [limit.take("k") == 0.0 for _ in range(4)] == [True, True, True, False], "no more than a burst is saved up"


def test_waiting_is_not_punished() -> None:
    clock = Clock()
    limit = RateLimit(rate=1.0, burst=1, clock=clock)
    assert limit.take("k") == 0.0
    for tenth in range(1, 10):
        clock.now = tenth / 10
        assert limit.take("k") > 0
    clock.now = 1.0
    assert limit.take("k") == 0.0


def test_a_session_ends_when_its_time_is_over() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    cookie = sessions.open("vote", "arena", "key")
    caller = sessions.caller(cookie)
    assert caller is not None
    assert (caller.role, caller.scope, caller.by_cookie) == ("vote", "arena", True)
    clock.now = 12 * 3600 + 1.0
    assert sessions.caller(cookie) is None
    assert sessions.caller("unknown") is None


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("verdict", ["left", "right", "tie", "both_bad", "skip"])
def test_sides_and_standings_translate_back(verdict: str, flipped: bool) -> None:
    assert to_sides(from_sides(verdict, flipped=flipped), flipped=flipped) == verdict


def test_the_numbers_of_outcomes_never_change() -> None:
    # They are stored in snapshots and columns.
    assert [outcome.value for outcome in Outcome] == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_first_key_is_made_once() -> None:
    journal = MemoryJournal()
    store = Store(journal)
    secret = first_key(store)
    assert secret is not None
    assert secret.startswith("duel_")
    assert first_key(store) is None
    assert first_key(store, "x" * 24) == "x" * 24
    assert first_key(store, "x" * 24) is None
    with pytest.raises(InvalidInputError, match="at least 24"):
        first_key(store, "short")
    journal.close()


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="folder that exists"):
        open_journal(str(tmp_path / "nowhere" / "a.db"))
    with pytest.raises(InvalidInputError, match="must be a file"):
        open_journal(str(tmp_path))


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InvalidInputError, match="cannot listen"):
            bound_socket("127.0.0.1", taken.getsockname()[1])


def test_embedders_are_loaded_by_name() -> None:
    name, embedder = embedder_from("mine=duelist.service.embedding:HashingEmbedder")
    assert name == "mine"
    assert embedder.dim == 64
    for wrong in (
        "mine",
        "mine=module",
        "mine=no.such.module:x",
        "mine=duelist.service.embedding:Nothing",
        "mine=json:dumps",
        "a=builtins:dict",
    ):
        with pytest.raises((InvalidInputError, TypeError)):
            embedder_from(wrong)


def test_settings_are_checked() -> None:
    with pytest.raises(InvalidInputError):
        ServiceSettings(rate=0.0)
    with pytest.raises(InvalidInputError):
        ServiceSettings(max_body=10)


@pytest.mark.slow
def test_what_exists_when_the_service_starts_is_not_looked_at_by_the_garbage_collector_again() -> None:
    objects = len(gc.get_objects())
    try:
        freeze_gc()
        assert gc.get_freeze_count() > objects / 2
        assert len(gc.get_objects()) < objects / 10
    finally:
        gc.unfreeze()
