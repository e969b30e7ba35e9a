"""`duelist serve`: one command, no configuration."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import sys
from pathlib import Path

from kill_harness import START, ServiceProcess, environment


def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], list[str], str, int]:
    process = subprocess.Popen(
        [sys.executable, "-c", START, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env=environment(),
    )
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.rstrip())
        found = re.search(r"Listening on http://([\d.]+):(\d+)", line)
        if found:
            return process, said, found[1], int(found[2])
    raise AssertionError("it did not start:\n" + "\n".join(said))


def stop(process: subprocess.Popen[str], sign: signal.Signals = signal.SIGTERM) -> str:
    process.send_signal(sign)
    assert process.stdout is not None
    rest = process.stdout.read()
    process.wait(timeout=60)
    process.stdout.close()
    return rest


def get(host: str, port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, str, dict[str, str]]:
    connection = http.client.HTTPConnection(host, port, timeout=30)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text, {name.lower(): value for name, value in answer.getheaders()}


def test_it_starts_with_nothing_and_its_link_opens_the_page(tmp_path: Path) -> None:
    process, said, host, port = start(tmp_path, "--demo")
    text = "\n".join(said)
    key = re.search(r"shown this once: (duel_\S+)", text)
    link = re.search(r"http://\S+(/open/\S+)", text)
    assert key is not None
    assert link is not None
    status, _, headers = get(host, port, link[1])
    assert status == 303
    cookie = headers["set-cookie"].split(";")[0]
    status, arenas, _ = get(host, port, "/api/v1/arenas", {"Cookie": cookie})
    assert status == 200
    assert '"id":"demo"' in arenas
    assert get(host, port, "/api/v1/keys", {"Authorization": f"Bearer {key[1]}"})[0] == 200
    stop(process)
    assert (tmp_path / "duelist.db").exists()
    assert key[1].encode() not in (tmp_path / "duelist.db").read_bytes()

    process, said, host, port = start(tmp_path, "--demo")
    assert not any("shown this once" in line for line in said), "the key is shown at the first start only"
    assert get(host, port, "/api/v1/keys", {"Authorization": f"Bearer {key[1]}"})[0] == 200
    stop(process)


def test_an_orderly_stop_leaves_a_closed_journal_and_a_snapshot(tmp_path: Path) -> None:
    for sign in (signal.SIGTERM, signal.SIGINT):
        process, _, _, _ = start(tmp_path)
        rest = stop(process, sign)
        assert not (tmp_path / "duelist.db-wal").exists()
        if sign == signal.SIGINT:
            assert (process.returncode, rest.strip()) == (0, "Stopped. Every vote that was acknowledged is in duelist.db.")
    process, said, _, _ = start(tmp_path)
    assert not any("not closed" in line for line in said)
    stop(process)


def test_mistakes_end_in_one_line(tmp_path: Path) -> None:
    for arguments in (["--data", str(tmp_path / "no" / "a.db")], ["--embedder", "x"], ["--host", "300.1.1.1"], ["--rate", "0"]):
        done = subprocess.run(
            [sys.executable, "-c", START, "serve", "--port", "0", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment(),
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr


def test_a_short_admin_key_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START, "serve", "--port", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**environment(), "DUELIST_ADMIN_KEY": "short"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: an admin key needs at least 24 characters; got 5.")
    assert list(tmp_path.iterdir()) == []


def test_requests_in_flight_are_finished_before_it_stops(tmp_path: Path) -> None:
    service = ServiceProcess(str(tmp_path / "a.db"))
    service.wait_until_listening()
    body = {"id": "arena", "name": "x", "items": [{"name": "a"}, {"name": "b"}]}
    assert service.call("POST", "/api/v1/arenas", body)[0] == 201
    asked = [service.call("POST", "/api/v1/arenas/arena/asks")[1]["id"] for _ in range(5)]
    service.stop()
    again = ServiceProcess(str(tmp_path / "a.db"))
    again.wait_until_listening()
    for ask in asked:
        assert again.call("GET", f"/api/v1/arenas/arena/asks/{ask}")[0] == 200
    again.stop()
