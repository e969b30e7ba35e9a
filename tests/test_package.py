"""Importing the package is light, its names resolve, and a second process compiles nothing."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import duelist

HEAVY = ("numba", "llvmlite", "scipy", "matplotlib", "rich", "click", "pyarrow", "arviz_stats")
SOURCE = Path(duelist.__file__).parents[1]


def in_a_fresh_process(code: str) -> Any:
    """What the code prints as JSON, run by another interpreter against the same sources."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = in_a_fresh_process("import json, sys, duelist; print(json.dumps(sorted(sys.modules)))")
    assert "duelist" in loaded
    assert [name for name in HEAVY if name in loaded] == []
    # NumPy is not needed either until a name is used.
    assert "numpy" not in loaded


@pytest.mark.slow
def test_using_one_name_does_not_import_the_terminal_or_plots() -> None:
    code = "import json, sys, duelist; duelist.FGTS(); duelist.simulate; print(json.dumps(sorted(sys.modules)))"
    loaded = in_a_fresh_process(code)
    assert [name for name in ("matplotlib", "rich", "click", "pyarrow") if name in loaded] == []


def test_at_most_thirty_names_stand_at_the_root_and_every_one_resolves() -> None:
    assert len(duelist.__all__) <= 30
    assert len(set(duelist.__all__)) == len(duelist.__all__)
    assert sorted(duelist.__all__) == dir(duelist)
    for name in duelist.__all__:
        assert getattr(duelist, name) is not None


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(duelist, "Duelist")


# Plays every policy and both samplers, then counts how each compiled function came to be: read from disk, or compiled.
_PLAY_AND_COUNT = """
import gc, json, duelist
from numba.core.dispatcher import Dispatcher
from duelist.policies.registry import duel_policies
for policy in (duelist.FGTS(mu=0.0, sampler="paper"), *(make() for make in duel_policies(with_extras=False).values())):
    for env in (duelist.LinearDuels(dim=3, arms=4), duelist.LinearDuels(dim=1, arms=2, fresh_arms=True)):
        duelist.simulate(policy, env, rounds=30, trials=2, workers=1)
ours = [d for d in gc.get_objects() if isinstance(d, Dispatcher) and d.__module__.startswith("duelist.")]
used = [d for d in ours if d.signatures]
hits = sum(sum(d.stats.cache_hits.values()) for d in used)
misses = {f"{d.__module__}.{d.__name__}": sum(d.stats.cache_misses.values()) for d in used if d.stats.cache_misses}
layouts = {f"{d.__module__}.{d.__name__}": len(d.signatures) for d in used if len(d.signatures) > 1}
print(json.dumps([hits, misses, layouts]))
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing() -> None:
    in_a_fresh_process(_PLAY_AND_COUNT)
    hits, misses, layouts = in_a_fresh_process(_PLAY_AND_COUNT)
    assert hits > 10
    assert misses == {}
    # Arrays reach a kernel in one memory layout: another would be another compilation.
    assert layouts == {}


def rooms() -> list[str]:
    return sorted(path.parent.name for path in (SOURCE / "duelist").glob("*/__init__.pyi"))


@pytest.mark.parametrize("room", rooms())
def test_every_line_of_a_rooms_stub_is_an_export_that_resolves(room: str) -> None:
    package = importlib.import_module(f"duelist.{room}")
    lines = (SOURCE / "duelist" / room / "__init__.pyi").read_text(encoding="utf-8").splitlines()
    imports = [line for line in lines if line.strip() and not line.startswith(("#", "__all__"))]
    names = [line.partition("  #")[0].split()[-1] for line in imports if "import *" not in line]
    assert set(names) <= set(package.__all__)
    assert sorted(package.__all__) == dir(package)
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_every_room_has_a_stub() -> None:
    folders = [path.parent.name for path in (SOURCE / "duelist").glob("*/__init__.py")]
    assert sorted(folders) == rooms()
