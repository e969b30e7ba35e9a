"""Finished blocks stay valid when another policy is edited, and only then."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import duelist
from duelist.experiments.fingerprint import code_digest, policy_files, tree_digest
from duelist.policies.registry import POLICIES

PACKAGE = Path(duelist.__file__).parent
MODULES = {name: policy.__module__ for name, policy in POLICIES.items()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    copy = tmp_path / "duelist"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "static"))
    return copy


def digests(tree: Path) -> dict[str, str]:
    return {name: tree_digest(tree, module) for name, module in MODULES.items()}


def changed_by(tree: Path, edited: str) -> set[str]:
    before = digests(tree)
    with (tree / edited).open("a", encoding="utf-8") as file:
        file.write("\n# another last line\n")
    after = digests(tree)
    return {name for name in MODULES if after[name] != before[name]}


def test_an_edit_of_a_policy_is_an_edit_of_its_own_numbers_only(tree: Path) -> None:
    assert changed_by(tree, "policies/foresight.py") == {"Foresight"}
    assert changed_by(tree, "policies/foresight_kernels.py") == {"Foresight"}
    assert changed_by(tree, "policies/fgts.py") == {"FGTS"}
    assert changed_by(tree, "policies/stad.py") == {"StaD"}


def test_an_edit_of_what_policies_share_reaches_all_who_import_it(tree: Path) -> None:
    assert changed_by(tree, "policies/ucb.py") >= {"MaxInP", "MaxPairUCB", "CoLSTIM", "Foresight"}
    assert changed_by(tree, "policies/layers.py") >= {"VACDB", "StaD", "SupCoLSTIM"}


@pytest.mark.parametrize(
    "edited", ["core/history.py", "environments/linear_duels.py", "samplers/mala.py", "experiments/blocks.py"]
)
def test_an_edit_below_the_policies_or_of_the_loop_reaches_everybody(tree: Path, edited: str) -> None:
    assert changed_by(tree, edited) == set(MODULES)


def test_an_edit_of_a_command_or_a_figure_reaches_nobody(tree: Path) -> None:
    assert changed_by(tree, "cli/reproduce.py") == set()
    assert changed_by(tree, "plotting/panels.py") == set()
    assert changed_by(tree, "policies/registry.py") == set()


def test_an_import_inside_a_function_counts(tree: Path) -> None:
    with (tree / "policies" / "uniform.py").open("a", encoding="utf-8") as file:
        file.write("\ndef late() -> None:\n    from duelist.policies import vacdb\n")
    assert "Uniform" in changed_by(tree, "policies/vacdb.py")


@pytest.mark.parametrize("name", POLICIES)
def test_every_module_that_a_policy_loads_is_in_its_digest(name: str) -> None:
    program = f"import sys, {MODULES[name]}; print(*(m for m in sys.modules if m.startswith('duelist.policies.')), sep='\\n')"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    files = {path.stem for path in policy_files(PACKAGE, MODULES[name])}
    assert {module.rpartition(".")[2] for module in loaded} <= files
    assert MODULES[name].rpartition(".")[2] in files


def test_a_policy_from_elsewhere_counts_every_policy_s_code(tree: Path) -> None:
    assert code_digest("NobodyKnows") == code_digest()
    before = tree_digest(tree, "someone.elses")
    changed_by(tree, "policies/vacdb.py")
    assert tree_digest(tree, "someone.elses") != before
