"""Finished blocks stay valid when another policy is edited, and only then."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import duelist
from duelist.experiments.sweep.code_digest import code_digest, policy_files, sampler_module, tree_digest
from duelist.policies.registry import POLICIES

PACKAGE = Path(duelist.__file__).parent
MODULES = {name: policy.__module__ for name, policy in POLICIES.items()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    copy = tmp_path / "duelist"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    return copy


def digests(tree: Path) -> dict[str, str]:
    return {name: tree_digest(tree, module, sampler_module(POLICIES[name])) for name, module in MODULES.items()}


def changed_by(tree: Path, edited: str, before: dict[str, str] | None = None) -> set[str]:
    """The policies whose digest an edit changes. Given the digests `before`, these are brought up to date."""
    before = digests(tree) if before is None else before
    with (tree / edited).open("a", encoding="utf-8") as file:
        file.write("\n# another last line\n")
    after = digests(tree)
    changed = {name for name in MODULES if after[name] != before[name]}
    before.update(after)
    return changed


@pytest.mark.slow
def test_an_edit_of_a_policy_is_an_edit_of_its_own_numbers_only(tree: Path) -> None:
    now = digests(tree)
    assert changed_by(tree, "policies/algorithms/sampling/foresight.py", now) == {"Foresight"}
    assert changed_by(tree, "kernels/rules/foresight.py", now) == {"Foresight"}
    assert changed_by(tree, "policies/algorithms/sampling/fgts.py", now) == {"FGTS"}
    assert changed_by(tree, "policies/algorithms/confidence/stad.py", now) == {"StaD"}


@pytest.mark.slow
def test_an_edit_of_what_policies_share_reaches_all_who_import_it(tree: Path) -> None:
    now = digests(tree)
    assert changed_by(tree, "policies/parts/confidence.py", now) >= {"MaxInP", "MaxPairUCB", "CoLSTIM", "Foresight"}
    assert changed_by(tree, "policies/parts/layers.py", now) >= {"VACDB", "StaD", "SupCoLSTIM"}


@pytest.mark.parametrize(
    "edited", ["history/history.py", "environments/linear.py", "kernels/philox.py", "experiments/sweep/blocks.py"]
)
def test_an_edit_below_the_policies_or_of_the_loop_reaches_every_policy(tree: Path, edited: str) -> None:
    assert changed_by(tree, edited) == set(MODULES)


@pytest.mark.slow
def test_an_edit_of_a_sampler_reaches_the_policies_that_draw_with_it(tree: Path) -> None:
    now = digests(tree)
    assert changed_by(tree, "samplers/mala.py", now) == {"FGTS"}
    assert changed_by(tree, "samplers/polya_gamma.py", now) == set()
    assert changed_by(tree, "kernels/polya_gamma.py", now) == set()
    assert changed_by(tree, "samplers/jax_mala.py", now) == {"NonlinearFGTS"}
    fgts = POLICIES["FGTS"]
    drawn = {name: tree_digest(tree, fgts.__module__, sampler_module(fgts, name)) for name in ("mala", "polya_gamma", "")}
    changed_by(tree, "kernels/polya_gamma.py", now)
    again = {name: tree_digest(tree, fgts.__module__, sampler_module(fgts, name)) for name in drawn}
    assert {name for name in drawn if drawn[name] != again[name]} == {"polya_gamma"}


@pytest.mark.slow
def test_a_sampler_with_settings_of_its_own_counts_every_sampler(tree: Path) -> None:
    fgts = POLICIES["FGTS"]
    assert sampler_module(fgts, "with settings") == ""
    before = tree_digest(tree, fgts.__module__)
    changed_by(tree, "samplers/gaussian.py")
    assert tree_digest(tree, fgts.__module__) != before


@pytest.mark.slow
def test_an_edit_of_a_command_or_a_figure_reaches_no_policy(tree: Path) -> None:
    now = digests(tree)
    assert changed_by(tree, "cli/reproduce.py", now) == set()
    assert changed_by(tree, "plotting/panels.py", now) == set()
    assert changed_by(tree, "policies/registry.py", now) == set()


def test_an_import_inside_a_function_counts(tree: Path) -> None:
    with (tree / "policies" / "algorithms" / "uniform.py").open("a", encoding="utf-8") as file:
        file.write("\ndef late() -> None:\n    from duelist.policies.algorithms.confidence import vacdb\n")
    assert "Uniform" in changed_by(tree, "policies/algorithms/confidence/vacdb.py")


# Imports the libraries once, and then each module in a process of its own that knows nothing of duelist yet.
IMPORTS = """
import json, os, sys
import numba, numpy, scipy.linalg, scipy.optimize, scipy.special, scipy.stats
assert not any(name.startswith("duelist") for name in sys.modules)
for module in sys.argv[1:]:
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        __import__(module)
        print(json.dumps([name for name in sys.modules if name.startswith("duelist.policies.")]), flush=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, module
"""


@pytest.mark.slow
def test_every_module_that_a_policy_loads_is_in_its_digest() -> None:
    command = [sys.executable, "-c", IMPORTS, *MODULES.values()]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    for module, line in zip(MODULES.values(), printed, strict=True):
        loaded = json.loads(line)
        assert module in loaded
        files = {path.stem for path in policy_files(PACKAGE, module)}
        packages = {path.parent.name for path in (PACKAGE / "policies").rglob("__init__.py")}  # they hold no code
        modules = {name.rpartition(".")[2] for name in loaded} - packages
        assert modules <= files, module
        assert module.rpartition(".")[2] in files


@pytest.mark.slow
def test_a_policy_from_elsewhere_counts_every_policy_s_code(tree: Path) -> None:
    assert code_digest("Unregistered") == code_digest()
    before = tree_digest(tree, "someone.elses")
    changed_by(tree, "policies/algorithms/confidence/vacdb.py")
    assert tree_digest(tree, "someone.elses") != before
