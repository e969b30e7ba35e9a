"""The field: who plays where follows from what problems offer and rules need, and every registered rule plays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import duelist
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.core.streams import Streams
from duelist.environments import MatrixDuels
from duelist.experiments.field.problems import FieldProblem, field_problems, field_spec, problem_kinds
from duelist.experiments.field.rules import field_rules, read_rules, rules_from_mapping, rules_without_entry
from duelist.experiments.field.standings import compute_problem, cut_to_chosen, rank_kind
from duelist.experiments.sweep.parameters import build_object
from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.series import Series, extract_series
from duelist.experiments.sweep.spec import PolicySpec, Spec
from duelist.policies.registry import POLICIES, policies_by_shelf, policy_shelf, shelf_title

PROBLEM = FieldProblem(
    name="small",
    kind="matrix",
    title="a small one",
    environment={"kind": "MatrixDuels"},
    offers=frozenset({"pairs", "table", "winner"}),
    rounds=10,
)


def test_every_registered_policy_is_a_rule_and_plays_at_least_one_problem() -> None:
    rules = field_rules()
    assert {rule.policy for rule in rules} == set(POLICIES)
    for rule in rules:
        played = [one.name for one in field_problems().values() if rule.fits(one.kind, one.offers)]
        assert played, f"{rule.label} needs {sorted(rule.needs)}, which no problem offers"


def test_every_problem_is_a_spec_and_every_kind_has_a_problem_that_a_first_look_plays() -> None:
    problems = field_problems()
    assert {one.kind for one in problems.values() if one.quick} == set(problem_kinds())
    for name in problems:
        design, final = field_spec(name, "design"), field_spec(name, "final")
        assert design is not None
        assert final is not None
        assert design.environment == final.environment
        assert design.seed != final.seed
        assert "Uniform" in {policy.label for policy in design.policies}


def test_who_plays_follows_from_what_is_offered() -> None:
    def labels(name: str) -> set[str]:
        problem = field_problems()[name]
        return {rule.label for rule in problem.players() if not problem.is_beyond(rule)}

    assert {"RUCB", "DoubleTS"} <= labels("cycle")
    assert not {"BeatTheMean", "FGTS"} & labels("cycle"), "no total order, no utilities"
    assert "RUCB" not in labels("no-winner"), "no arm beats all others"
    assert "DoubleTS" not in labels("fresh"), "arms that do not stay"
    assert "FGTS" not in labels("slates")
    assert "CPPL" in labels("preselection") - labels("slates"), "it never shows an arm twice"
    assert "MAUPO" in labels("find-slates") - labels("preselection"), "what it shows costs nothing"
    assert "FGTS (forgetting)" in labels("switching") - labels("paper-10")
    problem = field_problems()["cycle"]
    assert {rule.label for rule in problem.players() if problem.is_beyond(rule)} == {"FGTS", "MaxPairUCB", "SelfSparring"}


def test_a_rule_without_an_entry_plays_by_its_shelf_with_a_grid_around_its_default() -> None:
    data = read_rules()
    data["rules"] = [entry for entry in data["rules"] if entry["policy"] not in ("MaxInP", "RUCB", "ListwiseFGTS")]
    shelves = {"confidence": ["MaxInP"], "matrix": ["RUCB"], "slates": ["ListwiseFGTS"]}
    derived = {rule.label: rule for rule in rules_from_mapping(data, shelves)}
    assert all(rule.derived for rule in derived.values())
    assert derived["MaxInP"].needs == {"pairs", "linear"}
    assert derived["MaxInP"].grid == {"radius": [1.5, 5.0, 15.0]}
    assert derived["RUCB"].grid == {}
    assert derived["ListwiseFGTS"].parameters == {"choices": 4}
    (unknown,) = rules_from_mapping(data, {"new": ["MaxInP"]})
    assert unknown.needs == {"pairs", "linear"}, "a shelf that the file does not know"
    for rule in derived.values():
        PolicySpec(**rule.to_mapping())
    assert set(rules_without_entry()) == {rule.policy for rule in field_rules() if rule.derived}


def test_entries_with_unknown_names_are_refused() -> None:
    data = read_rules()
    with pytest.raises(InvalidInputError, match="'RUCP', which is not registered"):
        rules_from_mapping({**data, "rules": [{"policy": "RUCP"}]}, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'needs'"):
        rules_from_mapping({**data, "rules": [{"policy": "RUCB", "need": []}]}, {})
    with pytest.raises(UnknownNameError, match="Did you mean 'cycle'"):
        field_spec("cycel", "design")
    assert field_spec("slates", "design", only=["RUCB"]) is None


def series(label: str, setting: dict[str, Any], means: float, **given: Any) -> Series:
    final = means + np.array([-1.0, 0.0, 1.0])
    return Series(
        label=label,
        policy=label,
        stage="test",
        grid="",
        setting=setting,
        environment={},
        trials=(0, 1, 2),
        rounds=np.array([10.0]),
        regret=final[:, None],
        final_regret=final,
        final_weak_regret=final,
        **given,
    )


def spec(*policies: PolicySpec, seed: int = 0) -> Spec:
    return Spec(name="small", policies=policies, rounds=10, trials=3, seed=seed)


def test_standings_choose_by_the_design_and_judge_by_the_final_instances() -> None:
    rucb, double, floor = PolicySpec(policy="RUCB", grid={"alpha": [0.1, 0.51]}), PolicySpec(policy="DoubleTS"), PolicySpec(
        policy="Uniform"
    )  # fmt: skip
    design = [
        series("RUCB", {"alpha": 0.1}, 10.0),
        series("RUCB", {"alpha": 0.51}, 20.0),
        series("DoubleTS", {}, 12.0),
        series("Uniform", {}, 50.0),
    ]
    played = spec(rucb, double, floor)
    designed = compute_problem(PROBLEM, (played, design), (played, design))
    judged = cut_to_chosen(spec(rucb, double, floor, seed=1), designed)
    assert judged is not None
    assert [list(policy.grid.get("alpha", ())) for policy in judged.policies] == [[0.1, 0.51], [], []]
    final = [
        series("RUCB", {"alpha": 0.1}, 30.0),
        series("RUCB", {"alpha": 0.51}, 5.0),
        series("DoubleTS", {}, 15.0),
        series("Uniform", {}, 32.0),
    ]
    one = compute_problem(PROBLEM, (played, design), (judged, final))
    assert [standing.label for standing in one.ranked] == ["DoubleTS", "RUCB", "Uniform"]
    assert one.standings.rival is not None
    assert one.standings.rival.label == "DoubleTS"
    assert [standing.label for standing in one.learnt_nothing()] == ["RUCB"], "30 of 32 is more than nine tenths"
    assert one.close_to_best() == []
    assert [(row.label, row.mean) for row in rank_kind([one])] == [("DoubleTS", 1.0), ("RUCB", pytest.approx(2.0))]


def test_a_rule_of_which_a_block_failed_is_named_and_the_others_are_judged() -> None:
    played = spec(PolicySpec(policy="RUCB", grid={"alpha": [0.1, 0.51]}), PolicySpec(policy="DoubleTS"))
    found = [series("RUCB", {"alpha": 0.1}, 10.0), series("DoubleTS", {}, 12.0)]
    one = compute_problem(PROBLEM, (played, found), (played, found))
    assert [(missing.label, missing.reason) for missing in one.missing] == [("RUCB", "a block failed")]
    assert [standing.label for standing in one.ranked] == ["DoubleTS"]
    cut = cut_to_chosen(played, one)
    assert cut is not None
    assert [policy.label for policy in cut.policies] == ["DoubleTS"]
    nobody = compute_problem(PROBLEM, (played, []), (played, []))
    assert nobody.ranked == []
    assert cut_to_chosen(played, nobody) is None


def test_recommendations_are_judged_by_their_mean_and_a_rule_that_makes_none_is_named() -> None:
    asked = FieldProblem(**{**vars(PROBLEM), "simple_every": 5})
    played = spec(PolicySpec(policy="RUCB"), PolicySpec(policy="DoubleTS"))
    costs = np.array([[4.0, 2.0], [2.0, 0.0], [0.0, 0.0]])
    found = [
        series("RUCB", {}, 1.0, simple_rounds=np.array([5.0, 10.0]), simple_regret=costs),
        series("DoubleTS", {}, 1.0, simple_rounds=np.array([5.0, 10.0]), simple_regret=np.full((3, 2), np.nan)),
    ]
    one = compute_problem(asked, (played, found), (played, found))
    assert [missing.reason for missing in one.missing] == ["recommends nothing"]
    np.testing.assert_array_equal(one.ranked[0].chosen.final_regret, [3.0, 1.0, 0.0])
    np.testing.assert_array_equal(one.ranked[0].chosen.regret, costs)


def test_where_only_the_best_of_what_is_shown_counts_weak_regret_is_judged() -> None:
    best_of = FieldProblem(**{**vars(PROBLEM), "regret": "weak"})
    played = spec(PolicySpec(policy="RUCB"), PolicySpec(policy="DoubleTS"))
    found = [series("RUCB", {}, 1.0), replace(series("DoubleTS", {}, 2.0), final_weak_regret=np.array([0.1, 0.2, 0.3]))]
    one = compute_problem(best_of, (played, found), (played, found))
    assert [(standing.label, standing.mean) for standing in one.ranked] == [("DoubleTS", pytest.approx(0.2)), ("RUCB", 1.0)]


def test_a_spec_keeps_the_simple_regret_that_simulate_gives(tmp_path: Path) -> None:
    asked = Spec(
        name="simple",
        policies=[PolicySpec(policy="MaxInP"), PolicySpec(policy="Uniform")],
        rounds=25,
        trials=3,
        simple_every=10,
    )
    results = run_spec(asked, tmp_path, workers=1, progress=False)
    assert pq.read_table(results.path).column("simple_round")[0].as_py() == [10, 20, 25]
    by_label = {one.label: one for one in extract_series(asked, results.table)}
    run = duelist.simulate(duelist.MaxInP(), duelist.LinearDuels(), rounds=25, trials=3, seed=0, simple_regret=10)
    assert run.simple_regret is not None
    kept, none = by_label["MaxInP"].simple_regret, by_label["Uniform"].simple_regret
    assert kept is not None
    assert none is not None
    np.testing.assert_allclose(kept, run.simple_regret)
    assert np.isnan(none).all()
    assert "simple_every" not in Spec(name="plain", policies=[PolicySpec(policy="Uniform")]).to_mapping()


def test_the_best_of_a_near_tie_is_a_little_better_than_the_second() -> None:
    instance = MatrixDuels(matrix="near-tie", arms=6).instance(Streams(0, range(5)))
    logits = np.log(instance.win / (1.0 - instance.win))
    for lane, winner in enumerate(instance.winner):
        assert np.sort(logits[lane, winner])[1] == pytest.approx(0.1)  # above itself, at 0


def test_wrapped_environments_of_the_file_can_be_made() -> None:
    for problem in field_problems().values():
        assert build_object("environment", dict(problem.environment)).dim >= 1


def test_policies_stand_on_shelves_with_titles_and_random_play_comes_last() -> None:
    shelves = policies_by_shelf()
    assert [name for kinds in shelves.values() for name in kinds][-1] == "Uniform"
    assert sorted(name for kinds in shelves.values() for name in kinds) == sorted(POLICIES)
    assert all(policy_shelf(kind) == shelf for shelf, kinds in shelves.items() for kind in kinds.values())
    assert len({shelf_title(shelf) for shelf in shelves}) == len(shelves)
