"""A run that is killed, again and again, ends with the same bytes as one that was not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from duelist.experiments.runner import run_spec
from duelist.experiments.spec_files import load_spec

SMALL = Path(__file__).with_name("small.toml")

# The child kills itself with SIGKILL when it forces a file to disk for the n-th time: the moments at which a file is half
# there (written, not yet renamed) or just there (renamed, its directory not yet on disk).
CHILD = """
import os, signal, sys
from duelist.experiments.runner import run_spec
from duelist.experiments.spec_files import load_spec

left, fsync = int(sys.argv[2]), os.fsync

def fsync_or_die(descriptor):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(descriptor)

os.fsync = fsync_or_die
run_spec(load_spec(sys.argv[3]), sys.argv[1], workers=2, progress=False)
"""


def test_kills_at_every_kind_of_moment_change_no_byte(tmp_path: Path) -> None:
    whole = run_spec(load_spec(SMALL), tmp_path / "whole", workers=1, progress=False)
    killed = tmp_path / "killed"
    python_path = ":".join(path for path in sys.path if path)
    for moment in (1, 2, 5, 8):
        command = [sys.executable, "-c", CHILD, str(killed), str(moment), str(SMALL)]
        child = subprocess.run(command, env={"PYTHONPATH": python_path, "PATH": ""}, check=False, capture_output=True)
        assert child.returncode == -signal.SIGKILL, child.stderr.decode()
        assert not (killed / whole.path.name).exists()
    resumed = run_spec(load_spec(SMALL), killed, workers=2, progress=False)
    assert resumed.reused >= 4
    assert resumed.path.read_bytes() == whole.path.read_bytes()


ENDLESS = """
name = "endless"
trials = 2
environment = { dim = 3, arms = 6 }
[[policies]]
policy = "Uniform"
label = "a moment"
[[policies]]
policy = "FGTS"
parameters = { sampler = { kind = "MALA", steps = 100000 } }
"""


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    spec, out = tmp_path / "endless.toml", tmp_path / "out"
    spec.write_text(ENDLESS)
    python_path = ":".join(path for path in sys.path if path)
    # So many steps a round take many minutes: the child is stopped long before, once the other block is finished.
    command = [sys.executable, "-m", "duelist", "reproduce", str(spec), "--rounds", "2000", "--out", str(out)]
    # Tests run in the background inherit a SIGINT that is ignored; the child must hear it.
    with subprocess.Popen(
        [*command, "--workers", "2"],
        env={"PYTHONPATH": python_path, "PATH": ""},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as child:
        try:
            while child.poll() is None and not list(out.glob("parts/*.parquet")):
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            _, told = child.communicate(timeout=900)
        finally:
            child.kill()
    assert child.returncode == 130, told
    assert "the same command goes on from there" in told
    assert len(list(out.glob("parts/*.parquet"))) == 1
