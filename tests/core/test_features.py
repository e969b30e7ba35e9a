"""Features from a context and arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.features import concatenate, from_function, one_block_per_arm, outer

RNG = np.random.default_rng(0)
USER, CATALOGUE = RNG.standard_normal(3), RNG.standard_normal((5, 4))


def test_outer_makes_the_utility_bilinear() -> None:
    theta = RNG.standard_normal((3, 4))
    np.testing.assert_allclose(outer(USER, CATALOGUE) @ theta.ravel(), CATALOGUE @ (USER @ theta), rtol=1e-12)


def test_one_block_per_arm_gives_every_arm_its_own_parameters() -> None:
    theta = RNG.standard_normal((5, 3))
    np.testing.assert_allclose(one_block_per_arm(USER, 5) @ theta.ravel(), theta @ USER, rtol=1e-12)


def test_concatenated_contexts_cancel_in_a_duel() -> None:
    features = concatenate(USER, CATALOGUE)
    assert features.shape == (5, 7)
    np.testing.assert_array_equal((features[0] - features[1])[:3], 0.0)


def _both(user: Any, arm: Any) -> Any:
    return [user @ user, arm[0]]


MAKERS: dict[str, Any] = {
    "concatenate": concatenate,
    "outer": outer,
    "one block": lambda user, arms: one_block_per_arm(user, np.shape(arms)[-2]),
    "function": lambda user, arms: from_function(_both, user, arms),
}


@pytest.mark.parametrize("name", MAKERS)
def test_lanes_are_the_features_of_every_context_alone(name: str) -> None:
    make = MAKERS[name]
    users, catalogues = RNG.standard_normal((2, 3)), RNG.standard_normal((2, 5, 4))
    shared, own = make(users, CATALOGUE), make(users, catalogues)
    for lane in range(2):
        np.testing.assert_array_equal(shared[lane], make(users[lane], CATALOGUE))
        np.testing.assert_array_equal(own[lane], make(users[lane], catalogues[lane]))
    if name != "one block":
        np.testing.assert_array_equal(make(USER, catalogues)[1], make(USER, catalogues[1]))
    assert FiniteActions(own).lanes == 2


def test_a_user_and_a_catalogue_are_one_line_for_an_agent() -> None:
    agent = duelist.Agent(duelist.FGTS(), dim=12, seed=0)
    duel = agent.choose(duelist.features.outer(USER, CATALOGUE))
    np.testing.assert_array_equal(duel.features[0], np.outer(USER, CATALOGUE[duel.first]).ravel())


@pytest.mark.parametrize(
    "make",
    [
        lambda: outer([[1.0], [2.0]], np.ones((3, 2, 2))),
        lambda: outer([np.nan], CATALOGUE),
        lambda: outer(USER, [1.0, 2.0]),
        lambda: outer([], CATALOGUE),
        lambda: one_block_per_arm(USER, 1),
        lambda: from_function(lambda _user, arm: arm[: int(arm[0] > 0)], USER, CATALOGUE),
        lambda: from_function(lambda _user, _arm: [np.inf], USER, CATALOGUE),
        lambda: from_function(lambda _user, _arm: [[1.0]], USER, CATALOGUE),
    ],
)
def test_contexts_that_do_not_fit_are_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()
