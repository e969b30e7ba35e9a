"""Policies are written as JSON and read back as they were."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.policies.algorithms.nonlinear.nonlinear_fgts import NonlinearFGTS
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.policies.algorithms.uniform import Uniform
from duelist.policies.codec import can_be_written, policy_from_mapping, to_mapping
from duelist.policies.registry import POLICIES
from duelist.posteriors.priors import GaussianBall, UniformBall
from duelist.preferences.ties import RaoKupper
from duelist.rewards.base import CustomReward, Squashed
from duelist.rewards.models import RadialBasis, TwoLayerNetwork
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA


@pytest.mark.parametrize(
    "policy",
    [
        *(kind() for kind in POLICIES.values()),
        FGTS(eta="theory", mu="theory", prior=UniformBall(2.0), horizon=100),
        FGTS(sampler=MALA(steps=3, step_size=0.25), same_arm="redraw"),
        FGTS(sampler=Langevin(decay=1.0, warm_start=False), prior=GaussianBall(scale=0.1, radius=3.0)),
        FGTS(alpha=(0.0, 0.1, 1.0), eta=1 / 3),
        ListwiseFGTS(choices=2, ties=RaoKupper(kappa=2.0)),
        NonlinearFGTS(reward=Squashed(TwoLayerNetwork(hidden=3), bound=2.0)),
        NonlinearFGTS(reward=RadialBasis([[0.0, 1.0], [2.0, 3.0]], width=0.5)),
    ],
)
def test_a_policy_comes_back_equal(policy: Any) -> None:
    text = json.dumps(to_mapping(policy), allow_nan=False)
    assert policy_from_mapping(json.loads(text)) == policy


def test_numpy_numbers_become_plain_ones() -> None:
    given: dict[str, Any] = {"eta": np.float64(0.5), "alpha": np.array([0.1, 0.2]), "horizon": np.int64(9)}
    back = policy_from_mapping(json.loads(json.dumps(to_mapping(FGTS(**given)))))
    assert (back.eta, back.alpha, back.horizon) == (0.5, (0.1, 0.2), 9)


def test_a_policy_outside_the_registry_is_refused_by_name() -> None:
    @dataclass(frozen=True)
    class Mine:
        x: int = 1

    with pytest.raises(InvalidInputError, match="Mine"):
        to_mapping(Mine())
    with pytest.raises(InvalidInputError, match="prior"):
        to_mapping(FGTS(prior=Mine()))  # type: ignore[arg-type]


def test_descriptions_are_checked_as_if_typed_by_a_person() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'FGTS'"):
        policy_from_mapping({"kind": "FGTSS"})
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'"):
        policy_from_mapping({"kind": "FGTS", "alhpa": 1})
    with pytest.raises(InvalidInputError, match="at least 0"):
        policy_from_mapping({"kind": "FGTS", "alpha": -1.0})
    with pytest.raises(InvalidInputError, match="mapping"):
        policy_from_mapping({"alpha": 1.0})
    with pytest.raises(UnknownNameError, match="prior"):
        policy_from_mapping({"kind": "FGTS", "prior": {"kind": "Uniform"}})


def test_a_function_of_your_own_cannot_be_written_and_the_error_says_what_to_do() -> None:
    mine = NonlinearFGTS(reward=CustomReward(lambda theta, features: features @ theta, n_parameters=2))
    assert not can_be_written(mine)
    with pytest.raises(InvalidInputError, match="pass it when you load"):
        to_mapping(mine)


def test_a_sampler_of_another_posterior_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="RewardMALA"):
        policy_from_mapping({"kind": "NonlinearFGTS", "sampler": {"kind": "MALA"}})
    with pytest.raises(InvalidInputError, match="sampler must be a"):
        policy_from_mapping({"kind": "ListwiseFGTS", "sampler": {"kind": "MALA"}})


def test_uniform_needs_nothing_but_its_name() -> None:
    assert to_mapping(Uniform()) == {"kind": "Uniform"}
