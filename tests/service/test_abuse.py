"""What a stranger with a voting link, or without one, can do to others: not much. Each of these failed at 0.1.0."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn

from duelist.core.errors import DuelistError
from duelist.journal.base import JournalError
from duelist.journal.memory import MemoryJournal
from duelist.journal.replica import LateClock
from duelist.journal.sqlite import SQLiteJournal
from duelist.service import ServiceSettings, Store, create_app, first_key
from duelist.service.commands import CreateKey
from duelist.service.http import middleware, protocol
from duelist.service.http.middleware import RateLimit
from duelist.service.keys import digest_of
from duelist.service.sessions import _MOST_PER_KEY, Sessions
from tests.support.services import Running, running_service


@pytest.fixture
def service() -> Iterator[Running]:
    with running_service() as running:
        yield running


def test_a_voter_who_opens_sessions_without_end_signs_nobody_else_out() -> None:
    sessions = Sessions()
    admin = sessions.open("admin", "", "admin-key")
    opened = [sessions.open("vote", "a", "vote-key") for _ in range(3 * _MOST_PER_KEY)]
    assert sessions.caller(admin) is not None
    assert sessions.caller(opened[0]) is None
    assert sessions.caller(opened[-1]) is not None


def test_all_sessions_of_a_key_share_its_allowance() -> None:
    sessions = Sessions()
    names = {sessions.caller(sessions.open("vote", "a", "k")).name for _ in range(5)}  # type: ignore[union-attr]
    assert names == {"k"}


def test_guesses_at_keys_are_limited_where_sessions_are_opened() -> None:
    with running_service(settings=ServiceSettings(refused_rate=0.01)) as service:
        guesses = [{"key": f"duel_{n:030}"} for n in range(30)]
        answers = [service.anonymous.post("/api/v1/session", json=guess).status_code for guess in guesses]
        assert answers == [401] * 10 + [429] * 20
        assert service.admin.get("/api/v1/session").status_code == 200


def test_one_address_does_not_use_up_the_allowance_of_a_shared_link() -> None:
    now = 0.0
    one = RateLimit(10.0, 20, clock=lambda: now)
    spent = [one.take("key 1.2.3.4") for _ in range(30)]
    assert spent[:20] == [0.0] * 20
    assert spent[-1] > 0.0
    assert one.wait("key 1.2.3.4") > 0.0
    assert one.wait("key 5.6.7.8") == 0.0
    assert one.take("key 5.6.7.8") == 0.0


def test_a_new_given_key_revokes_the_one_before() -> None:
    store = Store(MemoryJournal())
    old, new = "an old admin key for tests only", "a new admin key for tests only"
    assert first_key(store, old) == old
    assert first_key(store, old) is None
    assert first_key(store, new) == new
    known = store.read(lambda state: set(state.by_digest))
    assert digest_of(new) in known
    assert digest_of(old) not in known


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_the_file_of_votes_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    before = os.umask(0)
    try:
        with SQLiteJournal(path) as journal:
            journal.transact(lambda turn: turn.append("told", {}))
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(modes, 0o600)
    assert "votes.db-wal" in modes


def test_a_snapshot_ahead_of_the_journal_is_no_state_of_it(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    store = Store(SQLiteJournal(path))
    first_key(store, "an old admin key for tests only")
    first_key(store, "a new admin key for tests only")
    store.close()
    import sqlite3

    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM events WHERE position > 1")
    connection.close()
    again = Store(SQLiteJournal(path))
    assert again.position == 1
    assert len(again.read(lambda state: state.keys)) == 1
    first_key(again, "a third admin key for tests only")
    again.close()
    assert Store(SQLiteJournal(path)).position == 3  # the third key, and the second's absence: the first is revoked


def test_a_clock_that_was_ahead_does_not_stop_time() -> None:
    ticks = 50.0
    late = LateClock(lambda: ticks)
    ahead = 10 * 365 * 24 * 3600 * 1000  # the time of one event, ten years ahead
    assert late.go_on_from(ahead) == ahead
    times, latest = [], ahead
    for _ in range(100):
        ticks += 1.0
        latest = late.go_on_from(latest)
        times.append(latest)
    assert times == sorted(times)
    assert times[-1] - ahead == 90_000
    assert late.go_on_from(latest + 5000) == latest + 5000, "somebody else's event"


def test_an_undo_runs_out_although_the_clock_was_ahead_for_one_event(monkeypatch: pytest.MonkeyPatch) -> None:
    now, ticks = 1_000_000, 0.0
    store = Store(MemoryJournal(), clock=lambda: now)
    monkeypatch.setattr(store._late, "_ticks", lambda: ticks)
    key = CreateKey("a secret for tests only, of some length", "vote", "v", "")
    now = 10**12
    assert store.commit(key).created_at == 10**12
    now, ticks = 1_000_000, 100.0
    store.commit(CreateKey("another secret for tests only", "vote", "v", ""))  # from here on time is counted
    ticks = 160.0
    assert store.commit(CreateKey("a third secret for tests only", "vote", "v", "")).created_at == 10**12 + 54_000


def test_ready_is_said_only_where_votes_can_be_saved(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.anonymous.get("/readyz").status_code == 200
    monkeypatch.setattr(type(service.service.store._journal), "room", lambda _: 1000)
    refused = service.anonymous.get("/readyz")
    assert refused.status_code == 503
    assert "0.0 MB left" in refused.json()["detail"]
    assert service.anonymous.get("/healthz").status_code == 200

    def fail() -> None:
        raise JournalError("the database is gone.")

    monkeypatch.setattr(service.service.store, "probe", fail)
    assert "database is gone" in service.anonymous.get("/readyz").json()["detail"]


def test_answers_forbid_what_the_page_never_uses_and_https_is_kept() -> None:
    with running_service() as running:
        headers = running.anonymous.get("/").headers
        assert "camera=()" in headers["permissions-policy"]
        assert "strict-transport-security" not in headers
    app = create_app(Store(MemoryJournal()), ServiceSettings(secure_cookie=True))

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get("/")

    assert asyncio.run(ask()).headers["strict-transport-security"] == "max-age=31536000"


@contextmanager
def impatient_server(monkeypatch: pytest.MonkeyPatch, *, head: float, body: float) -> Iterator[int]:
    """A server with short limits on a port of its own."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", head)
    monkeypatch.setattr(middleware, "_BODY_SECONDS", body)
    store = Store(MemoryJournal())
    first_key(store, "an admin key for tests only")
    config = uvicorn.Config(create_app(store, ServiceSettings()), http=protocol.ImpatientProtocol, log_level="error")
    server = uvicorn.Server(config)
    bound = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([bound],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)


def test_who_says_nothing_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    with impatient_server(monkeypatch, head=0.3, body=0.3) as port:
        silent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(40)]
        for connection in silent[:20]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")  # half a head
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        for connection in silent:
            assert connection.recv(100) == b"", "the server hung up"
            connection.close()


def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with impatient_server(monkeypatch, head=30.0, body=0.3) as port:
        slow = socket.create_connection(("127.0.0.1", port), timeout=60)
        slow.sendall(
            b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{"
        )
        assert b" 408 " in slow.recv(1000).split(b"\r\n")[0]
        slow.close()
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def test_a_journal_that_is_closed_is_not_ready() -> None:
    store = Store(MemoryJournal())
    store.close()
    with pytest.raises(DuelistError, match="closed"):
        store.probe()
