"""Kernels are compiled for what they are used for: a door from Python only where Python calls, and one signature each."""

from __future__ import annotations

import ast
import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core import runtime
from numba.core.dispatcher import Dispatcher

import duelist
from tests.conformance.rows import ROWS, Row

SOURCES = sorted(Path(duelist.__file__).parent.rglob("*.py"))
MARKS = {"entry", "inner", "maker", "inlined", "reduction"}

LISTEN = """
import json
from collections import Counter
from numba.core import event
seen = Counter()
class Listener(event.Listener):
    def on_start(self, happened):
        seen[happened.data["dispatcher"].py_func.__qualname__] += 1
    def on_end(self, happened):
        pass
event.register("numba:compile", Listener())
"""


def mark_of(function: ast.FunctionDef) -> str | None:
    """How a function is compiled, if it is."""
    names = [decorator.id for decorator in function.decorator_list if isinstance(decorator, ast.Name)]
    return next((name for name in names if name in MARKS), None)


def compiled_functions() -> Iterator[tuple[Path, str, str]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (mark := mark_of(node)):
                yield path, node.name, mark


def names_in_plain_python(node: ast.AST) -> Iterator[str]:
    """Names that code outside kernels uses."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and mark_of(child):
            continue
        if isinstance(child, ast.Name):
            yield child.id
        yield from names_in_plain_python(child)


def compilations(code: str, cache: Path) -> dict[str, int]:
    """How often each kernel is compiled while a new process with nothing compiled yet runs `code`.

    What is compiled, and for what types, does not depend on how well: without optimising it takes two thirds of the time.
    """
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "NUMBA_OPT": "0"}
    script = f"{LISTEN}\n{code}\nprint(json.dumps(seen))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, timeout=300
    )
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return {name: times for name, times in found.items() if "<locals>" not in name}


@pytest.mark.slow
def test_what_only_kernels_call_has_no_door_from_python() -> None:
    called = {path: set(names_in_plain_python(ast.parse(path.read_text()))) for path in SOURCES}
    # Two rooms may use one name for two functions; a name that Python uses anywhere is left alone.
    from_python = set().union(*called.values())
    doors = [(path.name, name) for path, name, mark in compiled_functions() if mark == "entry" and name not in from_python]
    assert doors == [], "mark these as parts: a door from Python takes longer to compile than the part itself"


numba_memory: Any = runtime


def returns_arrays(compiled: Any) -> bool:
    """Whether a compiled function returns arrays in any of the forms it was compiled for."""
    return any("Array" in repr(form.signature.return_type) for form in compiled.overloads.values())


def test_parts_that_borrow_arrays_call_no_part_that_makes_them() -> None:
    # What a maker returns is counted, and a part that counts nothing would never give it back.
    marks = {name: mark for _, name, mark in compiled_functions()}
    makers = {name for name, mark in marks.items() if mark in {"maker", "entry"}} - {"pull_into_ball"}
    wrong = [
        (path.name, node.name, child.func.id)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and mark_of(node) in {"inner", "reduction"}
        for child in ast.walk(node)
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in makers
    ]
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.learns and not row.compiled_by_jax], ids=lambda row: row.name)
def test_kernels_give_back_every_array_they_make_and_no_other(row: Row) -> None:
    environment = duelist.LinearDuels(dim=3, arms=4)

    def play() -> None:
        duelist.simulate(row.policy, environment, rounds=12, trials=2, seed=0, workers=1)

    play()
    numba_memory._nrt_python.memsys_enable_stats()
    gc.collect()
    before = numba_memory.rtsys.get_allocation_stats()
    play()
    gc.collect()
    after = numba_memory.rtsys.get_allocation_stats()
    made, given_back = after.mi_alloc - before.mi_alloc, after.mi_free - before.mi_free
    assert made == given_back > 0, "a part that is not marked as a maker makes or returns an array"
    borrowing = [
        name
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("duelist.kernels")
        for name, found in vars(module).items()
        if isinstance(found, Dispatcher) and found.targetoptions.get("_nrt") is False and returns_arrays(found)
    ]
    assert borrowing == []


@pytest.mark.slow
def test_sampling_a_posterior_compiles_no_kernel_twice_and_none_of_the_tilt(tmp_path: Path) -> None:
    table = "[[1.0, 0.0], [0.0, 1.0]], [[3, 1], [2, 2]]"
    code = f"import duelist, warnings; warnings.simplefilter('ignore')\nduelist.sample_posterior({table}, draws=8, warmup=1)"
    found = compilations(code, tmp_path)
    assert found.pop("mala_lanes") == 1
    assert {name for name, times in found.items() if times > 1} == set()
    assert not {"_add_ellipsoid", "first_maximum", "pull_into_ball"} & set(found)


@pytest.mark.slow
def test_a_short_run_on_a_long_table_compiles_nothing(tmp_path: Path) -> None:
    table = "np.random.default_rng(0).normal(size=(1200, 3)), np.resize([1, -1], 1200)"
    code = f"import duelist, numpy as np, warnings; warnings.simplefilter('ignore')\nduelist.sample_posterior({table}, draws=8)"
    assert compilations(code, tmp_path) == {}


@pytest.mark.slow
def test_playing_fgts_compiles_no_kernel_twice(tmp_path: Path) -> None:
    play = "duelist.simulate(duelist.FGTS(), duelist.LinearDuels(dim=3, arms=4), rounds=3, trials=1, seed=0)"
    code = f"import duelist\n{play}"
    found = compilations(code, tmp_path)
    assert found.pop("mala_lanes") == 1
    assert {name for name, times in found.items() if times > 1} == set()
