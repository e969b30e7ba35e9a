"""A policy can be asked for as text, and a mistake in the text is explained."""

from __future__ import annotations

import pytest

import duelist
from duelist.cli.policy_text import default_specs, parse_policies, parse_policy
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.policies import NonlinearFGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.policies.registry import duel_policies
from duelist.preferences.ties import LearntDavidson
from duelist.rewards import TwoLayerNetwork


def test_a_bare_name_is_the_policy_at_its_defaults() -> None:
    assert parse_policy("FGTS") == ("FGTS", duelist.FGTS())


def test_names_may_be_in_any_case_and_come_back_tidy() -> None:
    assert parse_policy(" fgts : alpha = 0 ") == ("FGTS:alpha=0", duelist.FGTS(alpha=0))


def test_values_are_numbers_none_or_words() -> None:
    _, policy = parse_policy("FGTS:eta=theory,alpha=0.5,mu=None,horizon=100,same_arm=runner-up")
    assert policy == duelist.FGTS(eta="theory", alpha=0.5, mu=None, horizon=100, same_arm="runner-up")


def test_objects_take_their_own_parameters_in_brackets() -> None:
    _, policy = parse_policy("FGTS:prior=GaussianBall(2, radius=3),sampler=paper(steps=20,decay=1)")
    assert policy == duelist.FGTS(prior=duelist.GaussianBall(scale=2, radius=3), sampler=duelist.Langevin(steps=20, decay=1))


def test_an_object_without_brackets_has_its_defaults() -> None:
    assert parse_policy("FGTS:prior=UniformBall")[1] == duelist.FGTS(prior=duelist.UniformBall())


@pytest.mark.parametrize(
    ("spec", "suggestion"),
    [
        ("FGST", "'FGTS'"),
        ("FGTS:alhpa=0", "'alpha'"),
        ("FGTS:sampler=mall", "'mala'"),
        ("FGTS:prior=Gausian(2)", "'Gaussian'"),
        ("FGTS:same_arm=alow", "'allow'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_valid_one(spec: str, suggestion: str) -> None:
    with pytest.raises(UnknownNameError, match=f"Did you mean {suggestion}"):
        parse_policy(spec)


@pytest.mark.parametrize(
    "spec",
    [
        "FGTS:0.5",
        "FGTS:alpha",
        "FGTS:alpha=",
        "FGTS:alpha=1,alpha=2",
        "FGTS:alpha=much",
        "FGTS:alpha=-1",
        "FGTS:prior=UniformBall(2",
        "FGTS:prior=UniformBall(2))",
        "FGTS:prior=UniformBall(width=2)",
        "FGTS:sampler=paper(steps=0)",
        "FGTS:sampler=3",
        "Uniform:alpha=1",
        "",
    ],
)
def test_a_text_that_asks_for_nothing_possible_is_refused(spec: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_policy(spec)


def test_a_reward_is_asked_for_by_name_like_a_prior() -> None:
    _, policy = parse_policy("NonlinearFGTS:reward=TwoLayerNetwork(hidden=4),alpha=0")
    assert policy == NonlinearFGTS(reward=TwoLayerNetwork(hidden=4), alpha=0)


def test_a_policy_that_plays_slates_is_written_like_any_other() -> None:
    assert parse_policy("ListwiseFGTS:choices=3,ties=LearntDavidson(0.5)")[1] == ListwiseFGTS(
        choices=3, ties=LearntDavidson(0.5)
    )


def test_a_parameter_that_is_given_by_place_and_by_name_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="scale is given twice"):
        parse_policy("FGTS:prior=Gaussian(2, scale=3)")
    with pytest.raises(InvalidInputError, match="at most 1"):
        parse_policy("FGTS:prior=Gaussian(2, 3)")


def test_the_same_policy_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="twice"):
        parse_policies(["FGTS:alpha=0", "fgts: alpha=0"])


def test_the_default_comparison_has_every_policy_for_pairs_that_needs_no_extra_and_ends_with_the_floor() -> None:
    policies = parse_policies(default_specs())
    with_features = {name for name, kind in duel_policies(with_extras=False).items() if kind.linear_utilities}
    assert {type(policy).__name__ for policy in policies.values()} == with_features
    assert list(policies)[-1] == "Uniform"
    assert "FGTS:alpha=0" in policies
    assert "FGTS:sampler=paper" in policies
