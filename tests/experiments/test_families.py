"""The problem families: data that loads, covers what it says it covers, and keeps design and judgement apart."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import UnknownNameError
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.experiments.families.problems import family_names, family_spec, family_title, line_ups
from duelist.experiments.sweep.parameters import ENVIRONMENTS, build
from duelist.policies.registry import duel_policies


def environment_of(name: str) -> LinearDuels:
    spec = family_spec(name, "final")
    (point,) = spec.environment.points()
    environment = build("environment", ENVIRONMENTS[spec.environment.kind], point)
    assert isinstance(environment, LinearDuels)
    return environment


@pytest.mark.parametrize("name", family_names())
def test_every_family_is_a_spec_with_instances_of_its_own_for_design_and_for_the_final_table(name: str) -> None:
    design, final = family_spec(name, "design"), family_spec(name, "final")
    assert design.environment == final.environment
    assert design.rounds == final.rounds
    assert design.policies == final.policies
    environment = environment_of(name)
    truths = [environment.instance(Streams(spec.seed, range(spec.trials))).theta for spec in (design, final)]
    together = np.concatenate(truths)
    assert len(np.unique(together.round(12), axis=0)) == design.trials + final.trials
    assert family_title(name)


def test_the_families_cover_shapes_strengths_lengths_and_wrong_models() -> None:
    environments = [environment_of(name) for name in family_names()]
    rounds = [family_spec(name, "final").rounds for name in family_names()]
    assert len(environments) >= 12
    assert {min(e.arms for e in environments), max(e.arms for e in environments)} == {4, 256}
    assert {min(e.dim for e in environments), max(e.dim for e in environments)} == {2, 50}
    assert {min(e.theta_norm for e in environments), max(e.theta_norm for e in environments)} == {0.5, 5.0}
    assert {min(rounds), max(rounds)} == {200, 20_000}
    assert {e.geometry for e in environments} >= {"cube", "sphere", "clusters"}
    assert {e.fresh_arms for e in environments} == {True, False}
    assert any(e.link != "logistic" for e in environments)
    assert any(e.flips == 0.1 for e in environments)
    # No two families are the same problem.
    assert len({(repr(e), r) for e, r in zip(environments, rounds, strict=True)}) == len(environments)


def test_policies_play_at_six_radii_or_at_their_own_settings() -> None:
    policies = family_spec("paper-10", "design").policies
    assert {policy.policy for policy in policies} <= set(duel_policies(with_extras=False))
    for policy in policies:
        if "radius" in policy.grid:
            assert len(policy.grid["radius"]) == 6
            assert {0.1, 1.0, 10.0} <= set(policy.grid["radius"])
    assert not next(policy for policy in policies if policy.policy == "Foresight").grid


def test_some_of_the_policies_can_be_asked_for_by_label() -> None:
    spec = family_spec("tiny", "design", only=["Foresight", "MaxPairUCB (local)"])
    assert [policy.label for policy in spec.policies] == ["Foresight", "MaxPairUCB (local)"]
    with pytest.raises(UnknownNameError, match="Did you mean 'Foresight'"):
        family_spec("tiny", "design", only=["foresigt"])


def test_names_that_do_not_exist_say_which_is_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'paper-5'"):
        family_spec("paper5", "design")
    with pytest.raises(UnknownNameError, match="stage must be one of 'design', 'final'"):
        family_spec("tiny", "test")
    assert "policies" in line_ups()
    assert "problems" not in line_ups()
