"""In a forked process a journal says at once that it stayed behind, in place of waiting for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_FORKING = """
import os, signal, sys
import numpy as np
import duelist
from duelist.journal import SQLiteJournal
from duelist.core import DuelistError

arms = np.eye(3)
journal = SQLiteJournal(sys.argv[1])
agent = duelist.Agent(duelist.Uniform(), dim=3, seed=0, journal=journal)
duel = agent.choose(arms)
child = os.fork()
if child == 0:
    signal.alarm(20)  # ends the child where it waits for a thread that is not there
    refused = 0
    for verb in (lambda: agent.choose(arms), lambda: agent.learn(duel, "left"), lambda: agent.pending, lambda: agent.refresh(),
                 lambda: list(journal.read()), lambda: journal.latest_snapshot()):
        try:
            verb()
        except DuelistError as error:
            refused += "post_fork" in str(error)
    journal.close()
    with SQLiteJournal(sys.argv[1]) as own:  # opened after the fork
        duelist.Agent(duelist.Uniform(), dim=3, seed=0, journal=own).learn(duel, "left")
    os._exit(refused)
_, status = os.waitpid(child, 0)
assert os.WIFEXITED(status), f"the child hung: {status}"
agent.refresh()
assert agent.rounds == 1, "what the child told through a journal of its own has arrived"
agent.learn(agent.choose(arms), "right")
journal.close()
print(os.WEXITSTATUS(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_agent_refuses_and_its_parent_goes_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FORKING, str(tmp_path / "votes.db")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "6", "every verb was refused"
