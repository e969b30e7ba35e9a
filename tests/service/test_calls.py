"""How many Python calls a vote and an ask cost: the limits are those of the benchmark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_an_ask_and_a_vote_stay_within_their_calls() -> None:
    # In a process of its own: browser tests leave an event loop running in theirs.
    command = [sys.executable, str(ROOT / "benchmarks" / "service_calls.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
