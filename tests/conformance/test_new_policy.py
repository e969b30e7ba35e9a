"""A new policy touches six files, and nothing else: tried on a copy of the tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COPIED = ("src", "tests", "docs", "examples", "pyproject.toml", "CHANGELOG.md", "README.md", "Makefile")
NAME = "EpsilonGreedy"
TEST = '''"""Epsilon-greedy plays two different arms."""

from duelist import LinearDuels, simulate
from duelist.policies import EpsilonGreedy


def test_it_plays_two_different_arms() -> None:
    run = simulate(EpsilonGreedy(), LinearDuels(dim=3, arms=4), rounds=20, trials=2, seed=0)
    assert (run.first != run.second).all()
'''


def files(tree: Path) -> dict[str, bytes]:
    """Every file that is not made by running Python."""
    found = (path for top in COPIED for path in ([tree / top] if (tree / top).is_file() else (tree / top).rglob("*")))
    kept = (path for path in found if path.is_file() and "__pycache__" not in path.parts and ".nb" not in path.suffix)
    return {path.relative_to(tree).as_posix(): path.read_bytes() for path in kept}


def add_policy(tree: Path) -> None:
    """What the guide says: a file, a line in the registry, a test, a row, a page, a line in the changelog."""

    def append(name: str, text: str) -> None:
        path = tree / name
        path.write_text((path.read_text(encoding="utf-8") if path.exists() else "") + text, encoding="utf-8")

    skeleton = (tree / "tests/support/skeleton_policy.py").read_text(encoding="utf-8")
    append("src/duelist/policies/algorithms/epsilon_greedy.py", skeleton)
    append(
        "src/duelist/policies/algorithms/__init__.pyi",
        f"from duelist.policies.algorithms.epsilon_greedy import {NAME} as {NAME}\n",
    )
    append("tests/policies/test_epsilon_greedy.py", TEST)
    append(
        "tests/conformance/rows.py",
        f'\nfrom duelist.policies import {NAME}\n\nROWS.append(Row("{NAME}", {NAME}(), margin=0.6))\n',
    )
    append(f"docs/policies/{NAME.lower()}.md", f"# {NAME}\n\nThe best arm against the second best.\n")
    append("CHANGELOG.md", f"\n* `{NAME}`.\n")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tree")
    for top in COPIED:
        if (ROOT / top).is_dir():
            # With its compiled kernels: they are older than no source here, so nothing is compiled again.
            ignored = shutil.ignore_patterns("data") if top == "tests" else None
            shutil.copytree(ROOT / top, made / top, ignore=ignored)
        else:
            shutil.copy2(ROOT / top, made / top)
    return made


@pytest.mark.slow
def test_a_new_policy_passes_the_table_after_touching_six_files(tree: Path) -> None:
    before = files(tree)
    add_policy(tree)
    after = files(tree)
    assert sorted(name for name in after if before.get(name) != after[name]) == [
        "CHANGELOG.md",
        "docs/policies/epsilongreedy.md",
        "src/duelist/policies/algorithms/__init__.pyi",
        "src/duelist/policies/algorithms/epsilon_greedy.py",
        "tests/conformance/rows.py",
        "tests/policies/test_epsilon_greedy.py",
    ]
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *("tests/policies/test_epsilon_greedy.py", "tests/conformance/test_policies.py", "tests/policies/test_codec.py"),
        *("tests/docs/test_documents.py", "tests/cli/test_main_command.py", "tests/cli/test_policy_specs.py"),
        *("tests/experiments/test_families.py", "-k"),
        f"{NAME} or every_registered or epsilon or comes_back or has_a_page or every_policy_has or default_comparison or radii",
    ]
    paths = os.pathsep.join([str(tree / "src"), str(tree)])
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1]
