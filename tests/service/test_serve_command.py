"""`duelist serve`: one command, no configuration."""

from __future__ import annotations

import contextlib
import http.client
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from duelist.cli.main import main
from duelist.journal.sqlite import SQLiteJournal
from tests.support.kill_harness import START, ServiceProcess, environment, in_time, listening, stop_process


class Served(NamedTuple):
    """A service that was started by the command."""

    process: subprocess.Popen[str]
    said: list[str]
    host: str
    port: int


@contextlib.contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[Served]:
    """`duelist serve` in a folder. Stop it inside of this: one that still runs at the end is killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", START, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment(),
    )
    said: list[str] = []
    try:
        with in_time(process, "the command to listen"):
            host, port = listening(process, said)
        yield Served(process, said, host, port)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=60)


def get(host: str, port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


@pytest.mark.slow
def test_it_starts_with_nothing_its_link_opens_the_page_and_it_stops_in_order(tmp_path: Path) -> None:
    with serving(tmp_path, "--demo") as first:
        text = "\n".join(first.said)
        key = re.search(r"shown this once: (duel_\S+)", text)
        link = re.search(r"http://\S+(/open/\S+)", text)
        assert key is not None
        assert link is not None
        status, _, headers = get(first.host, first.port, link[1])
        assert status == 303
        cookie = headers["set-cookie"].split(";")[0]
        status, arenas, _ = get(first.host, first.port, "/api/v1/arenas", {"Cookie": cookie})
        assert status == 200
        assert '"id":"demo"' in arenas
        assert get(first.host, first.port, "/api/v1/keys", {"Authorization": f"Bearer {key[1]}"})[0] == 200
        stop_process(first.process, signal.SIGTERM)
    assert (tmp_path / "duelist.db").exists()
    assert not (tmp_path / "duelist.db-wal").exists()
    assert key[1].encode() not in (tmp_path / "duelist.db").read_bytes()

    with serving(tmp_path, "--demo") as second:
        assert not any("not closed" in line for line in second.said)
        assert not any("shown this once" in line for line in second.said), "the key is shown at the first start only"
        assert get(second.host, second.port, "/api/v1/keys", {"Authorization": f"Bearer {key[1]}"})[0] == 200
        rest = stop_process(second.process, signal.SIGINT)
    assert (second.process.returncode, rest.strip()) == (0, "Stopped. Every vote that was acknowledged is in duelist.db.")
    assert not (tmp_path / "duelist.db-wal").exists()
    with SQLiteJournal(tmp_path / "duelist.db") as journal:
        assert not [note for note in journal.notes if "not closed" in note]
        assert journal.latest_snapshot() is not None


def refused(folder: Path, *arguments: str, **variables: str) -> str:
    """What the command says on standard error when it ends with a mistake of the caller."""
    done = subprocess.run(
        [sys.executable, "-c", START, "serve", "--port", "0", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**environment(), **variables},
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_file_that_cannot_be_made_ends_in_one_line(tmp_path: Path) -> None:
    said = refused(tmp_path, "--data", str(tmp_path / "no" / "a.db"))
    assert said.startswith("Error: ")
    assert "Traceback" not in said


@pytest.mark.parametrize("arguments", [("--embedder", "x"), ("--host", "300.1.1.1"), ("--rate", "0")], ids=lambda a: a[0])
def test_mistakes_end_in_one_line(
    arguments: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DUELIST_ADMIN_KEY", raising=False)
    with pytest.raises(SystemExit) as stopped:
        main(["serve", "--port", "0", *arguments])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("Error: ")
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_short_admin_key_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    said = refused(tmp_path, DUELIST_ADMIN_KEY="short")
    assert said.startswith("Error: an admin key needs at least 24 characters; got 5.")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_requests_in_flight_are_finished_before_it_stops(tmp_path: Path) -> None:
    with ServiceProcess(str(tmp_path / "a.db")) as service:
        service.wait_until_listening()
        body = {"id": "arena", "name": "x", "items": [{"name": "a"}, {"name": "b"}]}
        assert service.call("POST", "/api/v1/arenas", body)[0] == 201
        asked = [service.call("POST", "/api/v1/arenas/arena/asks")[1]["id"] for _ in range(5)]
        service.stop()
    with ServiceProcess(str(tmp_path / "a.db")) as again:
        again.wait_until_listening()
        for ask in asked:
            assert again.call("GET", f"/api/v1/arenas/arena/asks/{ask}")[0] == 200
        again.stop()
