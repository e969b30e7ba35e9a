"""Two processes on PostgreSQL share one agent's journal without a lost or doubled vote."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from tests.support.agents import bytes_of
from tests.support.postgres_server import private_server

_PLAYER = """
import sys
import numpy as np
import duelist
from duelist.journal.postgres import PostgresJournal
arms = np.random.default_rng(0).standard_normal((6, 4))
with PostgresJournal(sys.argv[1]) as journal:
    agent = duelist.Agent(duelist.FGTS(), dim=4, seed=5, journal=journal, snapshot_every=50)
    for _ in range(60):
        duel = agent.choose(arms)
        agent.learn(duel, min(duel.first, duel.second))
        print(duel.id, flush=True)
"""


@pytest.mark.slow
def test_two_processes_share_an_agent(tmp_path: Path) -> None:
    with private_server() as address:
        players = [
            subprocess.Popen([sys.executable, "-c", _PLAYER, address], stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        printed = [player.communicate(timeout=180)[0].split() for player in players]
        assert [player.returncode for player in players] == [0, 0]
        acknowledged = sorted(int(number) for output in printed for number in output)
        assert acknowledged == list(range(120))

        from duelist.journal.postgres import PostgresJournal

        with PostgresJournal(address) as journal:
            told = Counter(record.body["id"] for record in journal.read() if record.kind == "told")
            assert told == Counter(range(120))
            one = Agent(FGTS(), dim=4, seed=5, journal=journal)
            other = Agent(FGTS(), dim=4, seed=5, journal=journal)
            assert one.rounds == 120
            assert bytes_of(one, tmp_path) == bytes_of(other, tmp_path)
