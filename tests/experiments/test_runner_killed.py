"""A run that is killed, again and again, ends with the same bytes as one that was not."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.spec import load_spec

SMALL = Path(__file__).with_name("small.toml")

# One process imports the package and forks one child per moment. A child kills itself with SIGKILL when it forces a file to
# disk for the n-th time: the moments at which a file is half there (written, not yet renamed) or just there (renamed, its
# directory not yet on disk). The parent prints how each child ended and whether the table was there.
PARENT = """
import os, signal, sys
from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.spec import load_spec

out, path, fsync = sys.argv[1], sys.argv[2], os.fsync
spec = load_spec(path)

def run_until_killed(left):
    def fsync_or_die(descriptor):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)

    os.fsync = fsync_or_die
    run_spec(spec, out, workers=2, progress=False)

for moment in map(int, sys.argv[3:]):
    child = os.fork()
    if child == 0:
        run_until_killed(moment)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), os.path.exists(f"{out}/{spec.id}.parquet"))
"""


@pytest.mark.slow
def test_kills_at_every_kind_of_moment_change_no_byte(tmp_path: Path) -> None:
    whole = run_spec(load_spec(SMALL), tmp_path / "whole", workers=1, progress=False)
    killed = tmp_path / "killed"
    python_path = ":".join(path for path in sys.path if path)
    command = [sys.executable, "-c", PARENT, str(killed), str(SMALL), "1", "2", "5", "8"]
    parent = subprocess.run(command, env={"PYTHONPATH": python_path, "PATH": ""}, check=False, capture_output=True, text=True)
    assert parent.stdout.splitlines() == [f"{-signal.SIGKILL:d} False"] * 4, parent.stderr
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


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    spec, out = tmp_path / "endless.toml", tmp_path / "out"
    spec.write_text(ENDLESS)
    python_path = ":".join(path for path in sys.path if path)
    # This many steps per round take minutes: the child is stopped long before, once the other block is finished.
    # Tests run in the background inherit a SIGINT that is ignored; the child must receive it.
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from duelist.cli.main import main; main()"
    )
    command = [sys.executable, "-c", program, "reproduce", str(spec), "--rounds", "2000", "--out", str(out)]
    with subprocess.Popen(
        [*command, "--workers", "2"],
        env={"PYTHONPATH": python_path, "PATH": ""},
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            while child.poll() is None and not list(out.glob("parts/*.parquet")):
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            _, printed = child.communicate(timeout=900)
        finally:
            child.kill()
    assert child.returncode == 130, printed
    assert "the same command goes on from there" in printed
    assert len(list(out.glob("parts/*.parquet"))) == 1
