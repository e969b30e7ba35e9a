"""A stranger's file is played wherever a name is asked for, and an edited file is computed again."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.cli.main import main
from duelist.cli.policy_text import parse_environment, parse_policies, parse_policy
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.core.references import load_class, parse_reference, reference_to, source_of
from duelist.core.streams import Streams
from duelist.environments.registry import ENVIRONMENTS, environment_class
from duelist.experiments.sweep.runner import Results, run_spec
from duelist.experiments.sweep.spec import EnvironmentSpec, PolicySpec, Spec, parse_spec, spec_from_mapping
from duelist.policies.registry import policy_class
from tests.support.strangers import bring

TOML = """
name = "brought"
rounds = 40
trials = 3

[environment]
kind = "{path}:Circle"
arms = [5, 6]

[[policies]]
policy = "{path}:Greedy"
grid.rate = [0.2, 1.0]

[[policies]]
policy = "FGTS"
"""


def final(results: Results, label: str = "Greedy") -> list[float]:
    assert not results.failures, results.failures
    rows = results.table.to_pylist()
    return [row["final_regret"] for row in rows if row["label"] == label]


def small(path: Path, *, policy: Any = None, **parameters: Any) -> Spec:
    return Spec(
        name="small",
        rounds=30,
        trials=3,
        environment=EnvironmentSpec(kind=f"{path}:Circle", parameters=parameters),
        policies=[PolicySpec(policy=policy or f"{path}:Greedy")],
    )


def expected(path: Path, rate: float, arms: int, rounds: int = 40) -> list[float]:
    """The final regrets, by the classes that Python itself loads from the file."""
    policy, circle = load_class(f"{path}:Greedy"), load_class(f"{path}:Circle")
    run = duelist.simulate(policy(rate=rate), circle(arms=arms), rounds=rounds, trials=3, seed=0, workers=1)
    numbers: list[float] = run.final_regret.tolist()
    return numbers


def test_a_spec_plays_it_beside_fgts_on_two_workers_with_the_numbers_of_simulate(tmp_path: Path) -> None:
    path = bring(tmp_path / "stranger")
    results = run_spec(parse_spec(TOML.format(path=path)), tmp_path / "out", workers=2, progress=False)
    numbers = [expected(path, rate, arms) for arms in (5, 6) for rate in (0.2, 1.0)]
    np.testing.assert_allclose(final(results), np.ravel(numbers), rtol=1e-12)
    assert len(final(results, "FGTS")) == 6
    again = run_spec(parse_spec(TOML.format(path=path)), tmp_path / "out", workers=1, progress=False)
    assert again.computed == 0
    assert again.path.read_bytes() == results.path.read_bytes()


def test_a_path_may_be_relative_and_a_module_may_lie_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bring(tmp_path / "stranger")
    whole = final(run_spec(small(path), tmp_path / "a", progress=False))
    monkeypatch.chdir(path.parent)
    near = Spec(
        name="near",
        rounds=30,
        trials=3,
        environment=EnvironmentSpec(kind=f"{path.name}:Circle"),
        policies=[PolicySpec(policy=f"{path.stem}:Greedy")],
    )
    assert final(run_spec(near, tmp_path / "b", progress=False)) == whole
    assert spec_from_mapping(near.to_mapping()) == near


def test_a_class_itself_will_do_in_python(tmp_path: Path) -> None:
    path = bring(tmp_path / "stranger")
    by_name = final(run_spec(small(path), tmp_path / "a", progress=False))
    spec = small(path, policy=load_class(f"{path}:Greedy"))
    assert spec.policies[0].policy == f"{path}:Greedy"
    assert final(run_spec(spec, tmp_path / "b", progress=False)) == by_name
    assert PolicySpec(policy=duelist.FGTS) == PolicySpec(policy="FGTS")


@pytest.mark.parametrize("edit", ["policy", "helper"])
def test_an_edited_file_is_computed_again_and_an_edit_undone_is_not(tmp_path: Path, edit: str) -> None:
    path = bring(tmp_path / "stranger")
    before = run_spec(small(path), tmp_path / "out", progress=False)
    bring(tmp_path / "stranger", **({"sign": -1.0} if edit == "policy" else {"scale": 0.5}))
    after = run_spec(small(path), tmp_path / "out", progress=False)
    assert (after.computed, after.reused) == (1, 0)
    assert final(after) != final(before)
    assert final(after) == pytest.approx(expected(path, 0.5, 6, rounds=30), rel=1e-12)
    bring(tmp_path / "stranger")
    assert final(run_spec(small(path), tmp_path / "out", progress=False)) == final(before)


def test_a_class_that_was_put_into_the_registry_is_computed_again_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from duelist.policies.registry import POLICIES

    for sign, computed in ((1.0, 1), (1.0, 0), (-1.0, 1)):
        path = bring(tmp_path / "stranger", sign=sign)
        monkeypatch.setitem(POLICIES, "Greedy", load_class(f"{path}:Greedy"))
        assert run_spec(small(path, policy="Greedy"), tmp_path / "out", progress=False).computed == computed


def test_edited_data_are_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bring(tmp_path / "stranger")
    monkeypatch.chdir(tmp_path)
    results = []
    for content in ("3.0,1", "0.5,1", "3.0,1"):
        (tmp_path / "table.csv").write_text(content, encoding="utf-8")
        results.append(run_spec(small(path, table="table.csv"), tmp_path / "out", progress=False))
    assert [each.computed for each in results] == [1, 1, 0]
    assert final(results[0]) == final(results[2]) != final(results[1])


@pytest.mark.slow
def test_workers_of_a_cluster_in_another_folder_have_the_source_of_the_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed")
    path = bring(tmp_path / "stranger")
    monkeypatch.chdir(tmp_path / "stranger")
    (tmp_path / "stranger" / "table.csv").write_text("2.0", encoding="utf-8")
    spec = Spec(
        name="far",
        rounds=30,
        trials=3,
        environment=EnvironmentSpec(kind=f"{path.name}:Circle", parameters={"table": "table.csv"}),
        policies=[PolicySpec(policy=f"{path.name}:Greedy"), PolicySpec(policy="Uniform")],
    )
    here = run_spec(spec, tmp_path / "here", workers=1, progress=False)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("PYTHONPATH", str(Path(duelist.__file__).parents[1]))
    monkeypatch.chdir(tmp_path / "elsewhere")  # workers start here, and know nothing of the other folder
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as cluster:
        monkeypatch.chdir(tmp_path / "stranger")
        there = run_spec(spec, tmp_path / "there", cluster=cluster.scheduler_address, progress=False)
        assert not there.failures, there.failures
        assert there.path.read_bytes() == here.path.read_bytes()
        bring(tmp_path / "stranger", sign=-1.0)
        edited = run_spec(spec, tmp_path / "there", cluster=cluster.scheduler_address, progress=False)
    assert edited.computed == 2  # the environment is in the same file
    assert final(edited) != final(there)


def test_a_source_that_is_not_here_is_loaded_from_what_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bring(tmp_path / "stranger", scale=1.25)
    kind = load_class(f"{path}:Circle")
    files = source_of(kind)
    assert set(files) == {"brought_by_a_stranger.py", "helper_of_a_stranger.py"}
    for name in files:
        (path.parent / name).unlink()
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if "stranger" not in entry])
    sent = load_class(f"{path}:Circle", files)
    assert sent is not kind
    arms = sent(arms=4).instance(Streams(0, [0])).actions(0).features[0]
    assert np.linalg.norm(arms, axis=1) == pytest.approx(1.25 / 2**0.5)
    with pytest.raises(InvalidInputError, match="there is no file"):
        load_class(f"{path}:Circle")


@pytest.mark.slow
def test_the_command_line_plays_both_beside_fgts(tmp_path: Path) -> None:
    path = bring(tmp_path / "stranger")
    command = ["run", "--rounds", "40", "--trials", "3", "--out", str(tmp_path / "out"), "--quiet"]
    brought = ["--policy", f"{path}:Greedy(rate=1.0)", "--policy", "FGTS", "--environment", f"{path}:Circle(arms=5)"]
    with pytest.raises(SystemExit) as stopped:
        main([*command, *brought])
    assert stopped.value.code == 0
    with (tmp_path / "out" / "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {"Greedy:rate=1.0", "FGTS"}
    mine = [float(row["final_regret"]) for row in rows if row["policy"] == "Greedy"]
    assert mine == pytest.approx(expected(path, 1.0, 5), rel=1e-12)


def test_the_list_of_policies_explains_one_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = bring(tmp_path / "stranger")
    with pytest.raises(SystemExit):
        main(["policies", f"{path}:Greedy"])
    printed = capsys.readouterr().out
    assert "The best arm against the second best." in printed
    assert "size of a gradient step" in printed


def test_it_plays_live_and_is_saved_and_loaded(tmp_path: Path) -> None:
    kind = load_class(f"{bring(tmp_path / 'stranger')}:Greedy")
    agent = duelist.Agent(kind(), dim=2, seed=0)
    features = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    for _ in range(12):
        duel = agent.choose(features)
        agent.learn(duel, winner=min(duel.first, duel.second))
    agent.save(tmp_path / "agent.npz")
    again = duelist.Agent.load(tmp_path / "agent.npz", policy=kind())
    assert (again.choose(features).first, again.rounds) == (0, 12)


def test_installed_packages_offer_theirs_under_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A distribution is a folder of metadata beside the package, on the path of Python."""
    site = tmp_path / "site-packages"
    path = bring(site)
    info = site / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n", encoding="utf-8")
    points = f"[duelist.policies]\nbold = {path.stem}:Greedy\n[duelist.environments]\nring = {path.stem}:Circle\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    for module in ("brought_by_a_stranger", "helper_of_a_stranger"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert policy_class("bold").__name__ == "Greedy"
    assert environment_class("ring").__name__ == "Circle"
    spec = Spec(
        name="offered",
        rounds=10,
        trials=2,
        environment=EnvironmentSpec(kind="ring", parameters={"arms": 4}),
        policies=[PolicySpec(policy="bold")],
    )
    assert len(final(run_spec(spec, tmp_path / "out", progress=False), "bold")) == 2
    with pytest.raises(SystemExit):
        main(["policies"])
    assert "bold" in capsys.readouterr().out
    with pytest.raises(UnknownNameError, match="Did you mean 'bold'"):
        policy_class("blod")
    for module in ("brought_by_a_stranger", "helper_of_a_stranger"):
        sys.modules.pop(module, None)


def test_texts_for_environments_have_the_grammar_of_policies(tmp_path: Path) -> None:
    path = bring(tmp_path / "stranger")
    assert parse_environment("LinearDuels") == duelist.LinearDuels()
    assert parse_environment("linearduels(dim=3, arms=4, geometry=sphere)") == duelist.LinearDuels(
        dim=3, arms=4, geometry="sphere"
    )
    assert parse_environment("LinearDuels:dim=3,arms=4") == duelist.LinearDuels(dim=3, arms=4)
    listed = EnvironmentSpec(kind="ListedDuels", parameters={"models": np.array([[3.0, 4.0], [0.0, 1.0]]), "arms": [3, 4]})
    assert [point["arms"] for point in listed.points()] == [3, 4]
    assert {point["models"] for point in listed.points()} == {((3.0, 4.0), (0.0, 1.0))}
    assert parse_environment("ListedDuels(models=[[3, 4], [0, 1]], arms=4)").dim == 2
    assert type(parse_environment(f"{path}:Circle(arms=9)")).__name__ == "Circle"
    assert parse_policy("FGTS(alpha=0)") == parse_policy("FGTS:alpha=0")


WRAPPED = '''from dataclasses import dataclass
from duelist.environments import Environment, LinearDuels


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """Another environment, as it is."""

    base: Environment
    delay: int = 0

    @property
    def dim(self):
        return self.base.dim

    def instance(self, streams):
        return self.base.instance(streams)
'''


def test_an_environment_inside_another_is_a_table_in_a_spec_and_brackets_in_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wrapped_by_a_stranger.py"
    path.write_text(WRAPPED, encoding="utf-8")
    made: Any = parse_environment(f"{path}:Wrapped(base={path}:Wrapped(base=LinearDuels(dim=3, arms=4)), delay=2)")
    assert made.delay == 2
    assert made.base.base == duelist.LinearDuels(dim=3, arms=4)
    spec = parse_spec(
        f"""
        name = "nested"
        rounds = 20
        trials = 2
        environment = {{ kind = "{path}:Wrapped", delay = [0, 2], base = {{ kind = "LinearDuels", dim = 3, arms = 4 }} }}
        policies = [{{ policy = "Uniform" }}]
        """
    )
    direct = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=3, arms=4), rounds=20, trials=2).final_regret
    assert final(run_spec(spec, tmp_path / "out", progress=False), "Uniform") == pytest.approx([*direct, *direct])
    monkeypatch.setitem(ENVIRONMENTS, "Wrapped", type(made))
    again: Any = parse_environment(f"Wrapped(base={path}:Wrapped(base=LinearDuels(dim=3, arms=4)), delay=2)")
    assert again.base.base == made.base.base
    with pytest.raises(InvalidInputError, match=r"environment\.base.*Did you mean 'arms'"):
        EnvironmentSpec(kind=f"{path}:Wrapped", parameters={"base": {"kind": "LinearDuels", "amrs": 3}})
    with pytest.raises(InvalidInputError, match="Did you mean 'LinearDuels'"):
        EnvironmentSpec(kind=f"{path}:Wrapped", parameters={"base": {"kind": "LinearDuel"}})


def test_classes_of_one_name_from_two_files_are_told_apart(tmp_path: Path) -> None:
    one, other = bring(tmp_path / "one"), bring(tmp_path / "other", sign=-1.0)
    texts = [f"{one}:Greedy", f"{other}:Greedy"]
    policies = parse_policies(texts)
    assert list(policies) == ["Greedy", texts[1]]
    env = duelist.LinearDuels(dim=3, arms=5)
    runs = [duelist.simulate(policy, env, rounds=40, trials=2, seed=0).final_regret.mean() for policy in policies.values()]
    assert runs[0] < runs[1]


@pytest.mark.parametrize(
    ("content", "reference", "says"),
    [
        ("x = 1", "file.py:Missing", "must define the class Missing; it has no class"),
        ("class Other: ...", "file.py:Missing", "it has Other"),
        ("import nowhere_to_be_found", "file.py:Missing", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("class Broken(:", "file.py:Broken", "must be Python in UTF-8"),
        ("class NoPolicy: ...", "file.py:NoPolicy", "has no start and no choose and no learn"),
        ("", "nowhere.py:Any", "there is no file"),
        ("", "nowhere_at_all:Any", "there is no module 'nowhere_at_all'"),
    ],
)
def test_a_reference_that_leads_nowhere_says_where_it_ended(tmp_path: Path, content: str, reference: str, says: str) -> None:
    (tmp_path / "file.py").write_text(content, encoding="utf-8")
    where = f"{tmp_path}/{reference}" if ".py" in reference else reference
    with pytest.raises(InvalidInputError, match=says):
        policy_class(where)


def test_a_file_named_like_a_module_of_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("class A: ...", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="Give the file another name"):
        policy_class(f"{tmp_path}/random.py:A")


def test_a_class_inside_a_function_cannot_be_named() -> None:
    class Local(duelist.Uniform):
        pass

    with pytest.raises(InvalidInputError, match="Save it at the top of a file"):
        PolicySpec(policy=Local)


def test_a_reference_and_what_follows_it_are_told_apart() -> None:
    assert parse_reference("a/b.py:C:x=1") == (("a/b.py", "C"), ":x=1")
    assert parse_reference("m.n:C(x=1)") == (("m.n", "C"), "(x=1)")
    assert parse_reference("FGTS:alpha=0") is None
    assert parse_reference("FGTS") is None
    assert reference_to(policy_class("FGTS")) == "duelist.policies.algorithms.sampling.fgts:FGTS"


def test_a_package_of_ones_own_is_followed_through_its_relative_imports(tmp_path: Path) -> None:
    package = tmp_path / "kit_of_a_stranger"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "deep" / "__init__.py").write_text("from .rules import Rule\n", encoding="utf-8")
    (package / "sizes.py").write_text("EPSILON = 0.25\n", encoding="utf-8")
    (package / "unused.py").write_text("raise RuntimeError\n", encoding="utf-8")
    rule = """from dataclasses import dataclass
from duelist import Uniform


@dataclass(frozen=True, kw_only=True)
class Rule(Uniform):
    sizes: tuple[int, ...] = ()

    def report(self, state):
        import numpy as np
        from ..sizes import EPSILON

        return {"epsilon": np.full(2, EPSILON), "sum": np.full(2, float(sum(self.sizes)))}
"""
    (package / "deep" / "rules.py").write_text(rule, encoding="utf-8")
    reference = f"{package}/deep/rules.py:Rule"
    inside = {"kit_of_a_stranger/" + name for name in ("__init__.py", "deep/__init__.py", "deep/rules.py", "sizes.py")}
    assert set(source_of(load_class(reference))) == inside
    spec = Spec(
        name="kit",
        rounds=3,
        trials=2,
        policies=[PolicySpec(policy=reference, label="Rule", parameters={"sizes": [3, 4]})],
    )
    for content, epsilon in (("EPSILON = 0.25\n", 0.25), ("EPSILON = 0.5\n", 0.5)):
        (package / "sizes.py").write_text(content, encoding="utf-8")
        results = run_spec(spec, tmp_path / "out", progress=False)
        assert results.computed == 1
        assert results.table.column("info_epsilon").to_pylist() == [epsilon] * 2
        assert results.table.column("info_sum").to_pylist() == [7.0] * 2
        assert results.table.column("policy_sizes").to_pylist() == ["(3, 4)"] * 2


SCRIPT = """
from dataclasses import dataclass
from duelist import Uniform
from duelist.experiments import PolicySpec, Spec, run_spec

print("ran")


@dataclass(frozen=True, kw_only=True)
class Mine(Uniform):
    pass


spec = Spec(name="script", rounds=5, trials=2, policies=[PolicySpec(policy=Mine)])
print(run_spec(spec, "out", workers=2, progress=False).computed)
"""


@pytest.mark.slow
def test_a_program_may_play_its_own_class_and_is_not_run_twice(tmp_path: Path) -> None:
    (tmp_path / "study.py").write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(duelist.__file__).parents[1])}
    printed = []
    for edit in ("", "", "# edited\n"):
        with (tmp_path / "study.py").open("a", encoding="utf-8") as file:
            file.write(edit)
        command = [sys.executable, "study.py"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    assert printed == [["ran", "1"], ["ran", "0"], ["ran", "1"]]
