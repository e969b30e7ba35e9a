"""After `duelist warm-up` nothing is left to compile, and it leaves no kernel out.

The kernels go to the cache that the other tests use: compiling all of them apart would take two minutes. That the warm-up
reaches every kernel is seen from what it called, whether it was compiled now or before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import duelist
from duelist.kernels.cache import kept_in

# Counts what is compiled of duelist's own, then runs a program, then prints the count and the kernels that were not used.
_LISTEN = """
import gc, json, sys
from numba.core import event
from numba.core.dispatcher import Dispatcher
from duelist.cli.main import main
compiled = []
class Listener(event.Listener):
    def on_start(self, happened):
        function = happened.data["dispatcher"].py_func
        if function.__module__.startswith("duelist."):
            compiled.append(function.__qualname__)
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
def command(*arguments):
    try:
        main(list(arguments))
    except SystemExit as stopped:
        assert not stopped.code, stopped.code
"""
_REPORT = """
ours = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.__module__.startswith("duelist.")]
kernels = [d for d in ours if not d.targetoptions.get("no_cpython_wrapper")]
print(json.dumps([compiled, [d.__name__ for d in kernels if not d.signatures]]))
"""
_USE = """
import duelist
command("run", "--dim", "5", "--arms", "6", "--rounds", "10", "--trials", "2", "--out", sys.argv[1], "--quiet")
agent = duelist.Agent(duelist.FGTS(), dim=3)
for _ in range(10):
    agent.learn(agent.choose([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), winner="first")
"""


def in_a_fresh_process(program: str, *arguments: str) -> tuple[str, Any]:
    """What the program printed, and its report."""
    environment = {**os.environ, "PYTHONPATH": str(Path(duelist.__file__).parents[1])}
    command = [sys.executable, "-c", f"{_LISTEN}\n{program}\n{_REPORT}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *printed, report = done.stdout.splitlines()
    return "\n".join(printed), json.loads(report)


@pytest.mark.slow
def test_after_a_warm_up_nothing_is_compiled_any_more(tmp_path: Path) -> None:
    printed, (compiled, unused) = in_a_fresh_process("command('warm-up')")
    assert f"Compiled {len(compiled)} kernels" in printed
    assert f"They are kept in {kept_in()}" in printed
    assert unused == []

    _, (compiled, _) = in_a_fresh_process(_USE, str(tmp_path / "results"))
    assert compiled == []
