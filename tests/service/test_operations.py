"""What those who run a service rely on: logs that programs read, numbers per arena, and a journal that may be late."""

from __future__ import annotations

import io
import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from duelist.journal.base import Turn
from duelist.journal.sqlite import SQLiteJournal
from duelist.service.logs import ACCESS, set_up_logs
from duelist.service.settings import ServiceSettings
from tests.support.services import GENEROUS, Running, running_service


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What goes to the log; the loggers are as before afterwards."""
    names = ("duelist", "uvicorn", ACCESS.name)
    before = [(logger.handlers, logger.propagate, logger.level) for logger in map(logging.getLogger, names)]
    stream = io.StringIO()
    set_up_logs("json", access=True, stream=stream)
    yield stream
    for name, (handlers, propagate, level) in zip(names, before, strict=True):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def lines_of(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_request_is_one_json_line_without_a_secret(written: io.StringIO) -> None:
    with running_service() as service:
        arena = service.create()
        service.ask(arena)
        service.anonymous.get("/api/v1/arenas", headers={"Authorization": "Bearer duel_guessed"})
        link = service.service.sessions.new_link()
        service.anonymous.get(f"/open/{link}")
    access = [line for line in lines_of(written) if line["logger"] == "duelist.access"]
    assert [(line["method"], line["path"], line["status"]) for line in access] == [
        ("POST", "/api/v1/arenas", 201),
        ("POST", f"/api/v1/arenas/{arena}/asks", 201),
        ("GET", "/api/v1/arenas", 401),
        ("GET", "/open/{link}", 303),
    ]
    assert access[1]["route"] == "/api/v1/arenas/{arena}/asks"
    assert access[1]["caller"] == access[0]["caller"] != ""
    assert isinstance(access[1]["milliseconds"], float)
    for secret in (link, "duel_guessed", service.secret):
        assert secret not in written.getvalue()


def test_without_an_access_log_requests_write_nothing(written: io.StringIO) -> None:
    set_up_logs("json", access=False, stream=written)
    with running_service() as service:
        service.create()
    assert [line for line in lines_of(written) if line["logger"] == "duelist.access"] == []


def test_an_error_is_a_json_line_with_its_traceback(written: io.StringIO) -> None:
    try:
        raise LookupError("nothing there")
    except LookupError:
        logging.getLogger("duelist.service").exception("it broke")
    (line,) = lines_of(written)
    assert (line["level"], line["message"]) == ("error", "it broke")
    assert "LookupError: nothing there" in str(line["exception"])


def numbers(service: Running) -> dict[str, float]:
    text = service.anonymous.get("/metrics").text
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")}


def test_metrics_follow_what_every_arena_learns() -> None:
    with running_service() as service:
        first, second = service.create(), service.create(name="Other")
        for _ in range(3):
            service.tell(first, service.ask(first)["id"], "left")
        service.tell(first, service.ask(first)["id"], "skip")
        service.ask(second)
        found = numbers(service)
        assert found[f'duelist_arena_asks{{arena="{first}"}}'] == 4
        assert found[f'duelist_arena_votes{{arena="{first}"}}'] == 3
        assert found[f'duelist_arena_votes{{arena="{second}"}}'] == 0
        assert found[f'duelist_arena_items{{arena="{second}"}}'] == 3
        leader = f'duelist_arena_leader_probability{{arena="{first}"}}'
        assert leader not in found  # nobody asked for a leaderboard, and metrics compute none
        board = service.admin.get(f"/api/v1/arenas/{first}/leaderboard").json()["rows"]
        assert numbers(service)[leader] == pytest.approx(max(row["probability_best"] for row in board), abs=1e-3)


def test_metrics_and_the_document_of_the_api_can_be_switched_off() -> None:
    with running_service(settings=ServiceSettings(metrics=False, openapi=False)) as service:
        assert service.anonymous.get("/metrics").status_code == 404
        assert service.admin.get("/api/v1/openapi.json").status_code == 404
    with running_service() as service:
        assert service.anonymous.get("/metrics").status_code == 200
        assert service.anonymous.get("/api/v1/openapi.json").status_code == 200


def test_a_journal_that_hangs_costs_a_request_its_time_and_no_vote() -> None:
    with running_service(settings=replace(GENEROUS, commit_seconds=0.2)) as service:
        arena = service.create()
        ask = service.ask(arena)["id"]
        hold = threading.Event()

        def hang(_turn: Turn) -> None:
            assert hold.wait(60)

        service.service.store._journal.submit(hang)
        late = service.tell(arena, ask, "left")
        assert late.status_code == 503
        assert "send it again" in late.json()["detail"]
        assert service.anonymous.get("/healthz").status_code == 200
        hold.set()
        while service.tell(arena, ask, "left").status_code == 503:
            pass
        assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 1


def test_two_services_on_one_file_know_each_others_arenas(tmp_path: Path) -> None:
    settings = replace(GENEROUS, refresh_seconds=0.02)
    path = tmp_path / "votes.db"
    with running_service(SQLiteJournal(path), settings) as one, running_service(SQLiteJournal(path), settings) as two:
        arena = one.create()
        deadline = time.monotonic() + 30.0
        while (answer := two.admin.get(f"/api/v1/arenas/{arena}")).status_code == 404 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert answer.json()["name"] == "Answers"
