"""Policies are written as JSON and read back as they were."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.policies.described import described, policy_from
from duelist.policies.fgts import FGTS
from duelist.policies.registry import POLICIES
from duelist.policies.uniform import Uniform
from duelist.posteriors.priors import GaussianBall, UniformBall
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
    ],
)
def test_a_policy_comes_back_equal(policy: Any) -> None:
    text = json.dumps(described(policy), allow_nan=False)
    assert policy_from(json.loads(text)) == policy


def test_numpy_numbers_become_plain_ones() -> None:
    given: dict[str, Any] = {"eta": np.float64(0.5), "alpha": np.array([0.1, 0.2]), "horizon": np.int64(9)}
    back = policy_from(json.loads(json.dumps(described(FGTS(**given)))))
    assert (back.eta, back.alpha, back.horizon) == (0.5, (0.1, 0.2), 9)


def test_a_policy_of_somebody_else_is_refused_by_name() -> None:
    @dataclass(frozen=True)
    class Mine:
        x: int = 1

    with pytest.raises(InvalidInputError, match="Mine"):
        described(Mine())
    with pytest.raises(InvalidInputError, match="prior"):
        described(FGTS(prior=Mine()))  # type: ignore[arg-type]


def test_descriptions_are_checked_as_if_typed_by_a_person() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'FGTS'"):
        policy_from({"kind": "FGTSS"})
    with pytest.raises(UnknownNameError, match="Did you mean 'alpha'"):
        policy_from({"kind": "FGTS", "alhpa": 1})
    with pytest.raises(InvalidInputError, match="at least 0"):
        policy_from({"kind": "FGTS", "alpha": -1.0})
    with pytest.raises(InvalidInputError, match="mapping"):
        policy_from({"alpha": 1.0})
    with pytest.raises(UnknownNameError, match="prior"):
        policy_from({"kind": "FGTS", "prior": {"kind": "Uniform"}})


def test_uniform_needs_nothing_but_its_name() -> None:
    assert described(Uniform()) == {"kind": "Uniform"}
