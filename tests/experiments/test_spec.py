"""A spec is data: it can be read, written, named and hashed, and a bad one says where and what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from duelist.core.errors import InvalidInputError
from duelist.experiments.sweep.spec import (
    EnvironmentSpec,
    PolicySpec,
    Spec,
    TuningSpec,
    load_spec,
    parse_spec,
    shipped_spec_names,
    spec_from_mapping,
)

SMALL = """
name = "small"
rounds = 100
trials = 4
seed = 3

[environment]
dim = [3, 4]
arms = 8

[tuning]
trials = 5
first_trial = 50

[[policies]]
policy = "fgts"
parameters = { sampler = "paper", prior = { kind = "UniformBall", radius = 2 } }
grid.alpha = [0, 1]

[[policies]]
policy = "Uniform"
"""


def test_a_toml_spec_says_the_same_as_the_python_one() -> None:
    in_python = Spec(
        name="small",
        rounds=100,
        trials=4,
        seed=3,
        environment=EnvironmentSpec(parameters={"dim": [3, 4], "arms": 8}),
        tuning=TuningSpec(trials=5, first_trial=50),
        policies=[
            PolicySpec(
                policy="FGTS",
                parameters={"sampler": "paper", "prior": {"kind": "UniformBall", "radius": 2.0}},
                grid={"alpha": [0.0, 1.0]},
            ),
            PolicySpec(policy="Uniform"),
        ],
    )
    assert parse_spec(SMALL) == in_python
    assert parse_spec(SMALL).hash == in_python.hash


def test_a_spec_survives_the_round_trip_through_plain_data() -> None:
    spec = parse_spec(SMALL)
    assert spec_from_mapping(spec.to_mapping()) == spec


def test_the_id_is_readable_and_the_hash_follows_the_content() -> None:
    spec = parse_spec(SMALL)
    assert spec.id == "small-T100-n4-s3"
    changed = [
        SMALL.replace("seed = 3", "seed = 4"),
        SMALL.replace("arms = 8", "arms = 7"),
        SMALL.replace("alpha = [0, 1]", "alpha = [0, 2]"),
        SMALL.replace("trials = 5", "trials = 6"),
    ]
    assert len({spec.hash, *(parse_spec(text).hash for text in changed)}) == 5


def test_the_hash_does_not_depend_on_how_the_file_is_laid_out() -> None:
    lines = "# a comment\n" + SMALL.replace('name = "small"', "").replace("rounds = 100", 'rounds = 100\nname = "small"')
    assert parse_spec(lines).hash == parse_spec(SMALL).hash


@pytest.mark.parametrize(
    ("before", "after", "field", "hint"),
    [
        ('policy = "fgts"', 'policy = "FGST"', "policies[0].policy", "Did you mean 'FGTS'?"),
        ('policy = "fgts"', 'polcy = "FGTS"', "policies[0]", "Did you mean 'policy'?"),
        ("rounds = 100", "rounds = -1", "rounds", "at least 1; got -1"),
        ("rounds = 100", 'rounds = "many"', "rounds", "whole number"),
        ("rounds = 100", "rounds = 2.5", "rounds", "whole number"),
        ("rounds = 100", "ruonds = 100", "the spec", "Did you mean 'rounds'?"),
        ("grid.alpha = [0, 1]", "grid.alhpa = [0, 1]", "policies[0].grid", "Did you mean 'alpha'?"),
        ("grid.alpha = [0, 1]", "grid.alpha = []", "policies[0].grid.alpha", "at least one value"),
        ("grid.alpha = [0, 1]", "grid.alpha = 1", "policies[0].grid.alpha", "must be a list"),
        ("grid.alpha = [0, 1]", 'grid.alpha = [0, "one"]', "policies[0].grid.alpha[1]", "must be a number"),
        ("grid.alpha = [0, 1]", "grid.alpha = [1, 1.0]", "policies[0].grid.alpha", "more than once"),
        ("grid.alpha = [0, 1]", "grid.alpha = [0, -1]", "policies[0].policy (FGTS)", "alpha must be"),
        ("grid.alpha = [0, 1]", 'grid.sampler = ["mala"]', "policies[0].grid.sampler", "Set it once"),
        ("grid.alpha = [0, 1]", "tune.horizon.a = [1, 2]", "policies[0].tune.horizon", "eta, alpha, mu"),
        ("grid.alpha = [0, 1]", "tune.alpha = [1, 2]", "policies[0].tune.alpha", "name its grids"),
        ('sampler = "paper"', 'sampler = "papper"', "policies[0].policy (FGTS)", "Did you mean 'paper'?"),
        ('sampler = "paper"', "sampler = 3", "policies[0].parameters.sampler", "a string or a table"),
        ('kind = "UniformBall"', 'kind = "UnifromBall"', "policies[0].parameters.prior.kind", "Did you mean 'UniformBall'?"),
        ("radius = 2", "raduis = 2", "policies[0].parameters.prior", "Did you mean 'radius'?"),
        ("radius = 2", "radius = -2", "policies[0].parameters.prior (UniformBall)", "above 0"),
        ("arms = 8", "arm = 8", "environment", "Did you mean 'arms'?"),
        ("arms = 8", "arms = 100", "environment (LinearDuels)", "at most 2^dim"),
        ("dim = [3, 4]\narms = 8", 'kind = "HardDuels"\ndim = 3', "environment (HardDuels)", "needs horizon"),
        ("arms = 8", 'kind = "LinearDuel"', "environment.kind", "Did you mean 'LinearDuels'?"),
        ("first_trial = 50", "frist_trial = 50", "tuning", "Did you mean 'first_trial'?"),
        ('policy = "Uniform"', 'policy = "Uniform"\ngrid.alpha = [1]', "policies[1].grid", "no parameters"),
        ('policy = "Uniform"', 'policy = "FGTS"', "policies", "its own label"),
        ('name = "small"', 'name = "a/b"', "name", "letters, digits"),
        ('name = "small"', "", "name", "missing"),
        ("rounds = 100", "rounds =", "the text", "not TOML"),
    ],
)
def test_a_bad_spec_names_the_field_and_what_is_right(before: str, after: str, field: str, hint: str) -> None:
    assert before in SMALL
    with pytest.raises(InvalidInputError) as caught:
        parse_spec(SMALL.replace(before, after, 1))
    assert field in str(caught.value)
    assert hint in str(caught.value)


def test_tuning_never_sees_a_test_instance() -> None:
    tuned = SMALL.replace("grid.alpha = [0, 1]", "tune.alpha.few = [0, 1]")
    assert parse_spec(tuned).policies[0].tuned_values() == (0.0, 1.0)
    with pytest.raises(InvalidInputError, match=r"tuning\.first_trial must be at least trials"):
        parse_spec(tuned.replace("first_trial = 50", "first_trial = 3"))


def test_python_specs_are_refused_with_the_same_care() -> None:
    with pytest.raises(InvalidInputError, match=r"grid: the name must be one of .* Did you mean 'alpha'\?"):
        PolicySpec(policy="FGTS", grid={"alpah": [1.0]})
    with pytest.raises(InvalidInputError, match="at least one policy"):
        Spec(name="empty", policies=[])


def test_a_missing_file_is_named(tmp_path: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere\.toml cannot be read"):
        load_spec(tmp_path / "nowhere.toml")


def test_the_figures_are_ready_made() -> None:
    assert shipped_spec_names() == ["appendix", "figure1", "figure2"]
