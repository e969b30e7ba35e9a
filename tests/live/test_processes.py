"""Agents and processes: forks in the middle of everything, agents sent elsewhere, and the workers of a web server."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from duelist.core.errors import InvalidInputError
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from tests.support.agents import ARMS

_FORKING = """
import os, signal, sys, threading
import numpy as np
import duelist

arms = np.random.default_rng(1).choice([-1.0, 1.0], (6, 4))
agent = duelist.Agent(duelist.FGTS(), dim=4, seed=0)
stop = threading.Event()

def play():
    while not stop.is_set():
        agent.learn(agent.choose(arms), "first")
        agent.predict(arms)

threads = [threading.Thread(target=play) for _ in range(2)]
for thread in threads:
    thread.start()
good = 0
for _ in range(30):
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # ends the child where it waits for a lock that nobody will open
        asked = agent.report()["asked"]
        whole = asked == agent.rounds + len(agent.pending) == agent._memory.lane.state.asked
        for _ in range(3):
            agent.learn(agent.choose(arms), "second")
        agent.predict(arms)
        os._exit(0 if whole and agent.report()["asked"] == asked + 3 else 1)
    good += os.waitpid(child, 0)[1] == 0
stop.set()
for thread in threads:
    thread.join()
print(good)
"""

_MULTIPROCESSING = """
import multiprocessing, sys
import numpy as np
import duelist

arms = np.random.default_rng(1).choice([-1.0, 1.0], (6, 4))

def go_on(path, out):
    agent = duelist.Agent.load(path)
    agent.learn(agent.choose(arms), "first")
    agent.save(out)

if __name__ == "__main__":
    path, out, method = sys.argv[1:]
    agent = duelist.Agent(duelist.FGTS(), dim=4, seed=0)
    for _ in range(5):
        agent.learn(agent.choose(arms), "first")
    agent.save(path)
    child = multiprocessing.get_context(method).Process(target=go_on, args=(path, out))
    child.start()
    child.join(60)
    assert child.exitcode == 0, child.exitcode
    agent.learn(agent.choose(arms), "first")
    agent.save(path)
    print(open(path, "rb").read() == open(out, "rb").read())
"""


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_in_the_middle_of_a_change_finds_an_agent_in_memory_whole_and_free() -> None:
    assert run(_FORKING) == "30"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_saved_agent_goes_on_bit_for_bit_in_another_process(method: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # spawning imports the program again, so it must be a file
    program.write_text(_MULTIPROCESSING, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), str(tmp_path / "a"), str(tmp_path / "b"), method],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_an_agent_cannot_be_pickled_and_says_what_to_do() -> None:
    with pytest.raises(InvalidInputError, match="save a file and load"):
        pickle.dumps(Agent(Uniform(), dim=2))


_APP = """
import asyncio, json, os
import numpy as np
import duelist
from duelist.journal import SQLiteJournal

arms = np.random.default_rng(1).choice([-1.0, 1.0], (6, 4))
agent = None

async def app(scope, receive, send):
    global agent
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                # In the worker, after it was started: a journal does not survive a fork.
                journal = SQLiteJournal(os.environ["VOTES"])
                agent = duelist.Agent(duelist.FGTS(), dim=4, seed=5, journal=journal)
                await send({"type": "lifespan.startup.complete"})
            else:
                journal.close()
                await send({"type": "lifespan.shutdown.complete"})
                return
    words = scope["path"].strip("/").split("/")
    if words[0] == "ask":
        duel = await agent.choose_async(arms)
        body = {"id": duel.id, "first": duel.first, "second": duel.second}
    else:
        await agent.learn_async(int(words[1]), "first")
        body = {}
    body["worker"] = os.getpid()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
"""


def get(port: int, path: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
        found: dict[str, Any] = json.loads(answer.read())
        return found


_SERVERS = {
    "uvicorn": ["uvicorn", "--workers", "2", "--log-level", "error", "--port", "{port}"],
    "gunicorn": ["gunicorn", "--workers", "2", "--log-level", "error", "--worker-class", "uvicorn.workers.UvicornWorker",
                 "--bind", "127.0.0.1:{port}"],
}  # fmt: skip


@pytest.mark.parametrize("program", list(_SERVERS))
def test_two_workers_of_a_web_server_share_an_agent_and_lose_and_double_nothing(program: str, tmp_path: Path) -> None:
    """Requests from eight clients at once, every answer sent twice, mostly to another worker."""
    pytest.importorskip("uvicorn")
    pytest.importorskip(program)
    (tmp_path / "votes_app.py").write_text(_APP, encoding="utf-8")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [word.format(port=port) for word in _SERVERS[program]]
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", *command, "votes_app:app"],
        cwd=tmp_path,
        env={**os.environ, "VOTES": str(tmp_path / "votes.db")},
        start_new_session=True,
    )
    try:
        for _ in range(600):
            try:
                first = get(port, "ask")
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.1)
        workers, lock = {first["worker"]: 1}, threading.Lock()
        wanted = 120

        def vote(_: int) -> int:
            duel = get(port, "ask")
            answers = [get(port, f"learn/{duel['id']}") for _ in range(2)]
            with lock:
                for one in (duel, *answers):
                    workers[one["worker"]] = workers.get(one["worker"], 0) + 1
            return int(duel["id"])

        with ThreadPoolExecutor(8) as clients:
            told = sorted(clients.map(vote, range(wanted)))
        # A worker that started late has had few requests, or none: go on until both took part.
        for _ in range(300):
            if len(workers) == 2:
                break
            told.append(vote(0))
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(30)
    assert len(workers) == 2, "both workers took part"
    assert told == list(range(1, len(told) + 1)), "every question has a number of its own"
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        learnt = Counter(record.body["id"] for record in journal.read() if record.kind == "told")
        assert learnt == Counter(told)
        agent = Agent(FGTS(), dim=4, seed=5, journal=journal)
        assert agent.rounds == len(told)
        assert [duel.id for duel in agent.pending] == [0]
        agent.learn(agent.choose(ARMS), "first")
