"""Features from a context and arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.serialize import from_bytes, to_bytes
from duelist.features import (
    BilinearMap,
    PrincipalComponents,
    ProductMap,
    RandomFourier,
    append_own,
    concatenate,
    from_function,
    one_block_per_arm,
    outer,
)

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


PROMPTS, MODELS = RNG.standard_normal((300, 20)) @ RNG.standard_normal((20, 20)), RNG.standard_normal((12, 9))
MAPS: dict[str, Any] = {
    "components": PrincipalComponents.fit(contexts=PROMPTS, n_components=5),
    "fourier": RandomFourier.fit(contexts=PROMPTS, n_features=7, seed=3),
    "bilinear": BilinearMap.fit(contexts=PROMPTS, arms=MODELS, n_components=(4, 3)),
    "product": ProductMap.random(context_dim=20, arm_dim=9, rank=6, seed=1),
}


def arguments(name: str) -> tuple[Any, ...]:
    return (PROMPTS[0],) if name in ("components", "fourier") else (PROMPTS[0], MODELS)


@pytest.mark.parametrize("name", MAPS)
def test_a_map_that_was_saved_gives_the_same_features_bit_for_bit(name: str) -> None:
    restored = from_bytes(to_bytes(MAPS[name]))
    assert type(restored) is type(MAPS[name])
    np.testing.assert_array_equal(restored(*arguments(name)), MAPS[name](*arguments(name)))
    assert to_bytes(restored) == to_bytes(MAPS[name])


@pytest.mark.parametrize("name", MAPS)
def test_a_map_of_several_contexts_is_that_of_each(name: str) -> None:
    first, *arms = arguments(name)
    both = MAPS[name](PROMPTS[:2], *arms)
    np.testing.assert_allclose(both[0], MAPS[name](first, *arms), rtol=1e-12, atol=1e-12)
    assert both.shape[0] == 2


@pytest.mark.parametrize("name", MAPS)
def test_a_map_refuses_embeddings_of_another_length_and_cannot_be_changed(name: str) -> None:
    _, *arms = arguments(name)
    with pytest.raises(InvalidInputError, match=r"20 entries per row.*fit the map again"):
        MAPS[name](np.ones(19), *arms)
    with pytest.raises(AttributeError):
        MAPS[name].anything = 1


def test_components_are_those_of_a_singular_value_decomposition() -> None:
    centred = PROMPTS - PROMPTS.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    deviations = lengths[:5] / np.sqrt(len(PROMPTS))
    expected = np.abs(centred @ axes[:5].T)
    for scaling, by in (
        ("none", 1.0),
        ("first", deviations[0]),
        ("each", deviations),
        ("together", np.linalg.norm(deviations)),
    ):
        found = PrincipalComponents.fit(contexts=PROMPTS, n_components=5, scaling=scaling)(PROMPTS)
        np.testing.assert_allclose(np.abs(found), expected / by, rtol=1e-6, atol=1e-8)


def test_fourier_features_approximate_the_kernel_of_the_median_distance() -> None:
    wave = RandomFourier.fit(contexts=PROMPTS, n_features=20_000, seed=0)
    apart = np.linalg.norm(PROMPTS[:, None] - PROMPTS[None], axis=2)
    median = np.median(apart[np.triu_indices(len(PROMPTS), 1)])
    features = wave(PROMPTS[:30])
    # The error of an entry has a standard deviation below 1/sqrt(20,000) = 0.007; five of them, for 900 entries.
    np.testing.assert_allclose(features @ features.T, np.exp(-((apart[:30, :30] / median) ** 2) / 2), atol=0.036)


def test_random_products_approximate_the_outer_product() -> None:
    rough = ProductMap.random(context_dim=3, arm_dim=4, rank=200_000, seed=0)
    exact, found = outer(USER, CATALOGUE), rough(USER, CATALOGUE)
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.05 * np.abs(exact @ exact.T).max())


def test_a_bilinear_map_is_outer_of_the_projections() -> None:
    join = MAPS["bilinear"]
    np.testing.assert_array_equal(
        join(PROMPTS[0], MODELS), outer(PROMPTS[0] @ join.context_projection, MODELS @ join.arm_projection)
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrincipalComponents.fit(contexts=PROMPTS, n_components=21), "at most 20"),
        (lambda: PrincipalComponents.fit(contexts=PROMPTS[:1], n_components=1), "at least 2 rows"),
        (lambda: PrincipalComponents.fit(contexts=np.outer(np.arange(9.0), np.ones(4)), n_components=2), "1 direction"),
        (lambda: PrincipalComponents.fit(contexts=np.ones((9, 4)), n_components=1), "0 direction"),
        (lambda: PrincipalComponents.fit(contexts=PROMPTS, n_components=2, scaling="frist"), "Did you mean 'first'"),
        (lambda: PrincipalComponents(mean=np.ones(3), directions=np.ones((2, 2))), "one entry per feature"),
        (lambda: RandomFourier.fit(contexts=np.ones((9, 4)), n_features=3, seed=0), "Give contexts that differ"),
        (lambda: RandomFourier.fit(contexts=PROMPTS, n_features=3, seed=0, bandwidth=0.0), "bandwidth must be"),
        (lambda: RandomFourier.fit(contexts=np.empty((0, 4)), n_features=3, seed=0), "must not be empty"),
        (lambda: RandomFourier(frequencies=np.ones((3, 2)), phases=np.ones(3)), "one entry per feature"),
        (lambda: ProductMap(context_projection=np.ones((3, 2)), arm_projection=np.ones((3, 3))), "use BilinearMap"),
        (lambda: ProductMap.random(context_dim=3, arm_dim=4, rank=0, seed=0), "rank must be"),
    ],
)
def test_maps_that_cannot_be_are_refused_with_what_to_do(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_an_own_part_lets_arms_of_equal_features_differ_and_varies_as_much_as_the_features_do() -> None:
    own = append_own(CATALOGUE)
    assert own.shape == (5, 9)
    np.testing.assert_array_equal(own[:, :4], CATALOGUE)
    theta = RNG.standard_normal((20_000, 9))
    by_features, by_arm = theta[:, :4] @ (CATALOGUE - CATALOGUE.mean(axis=0)).T, theta[:, 4:] @ own[:, 4:].T
    assert by_arm.var() / by_features.var() == pytest.approx(1.0, abs=0.05)
    utilities = own @ np.linalg.lstsq(own, [5.0, 1.0, 4.0, 2.0, 3.0], rcond=None)[0]
    np.testing.assert_allclose(utilities, [5.0, 1.0, 4.0, 2.0, 3.0])
    np.testing.assert_allclose(append_own(CATALOGUE, weight=0.5)[:, 4:], 0.5 * own[:, 4:])


def test_every_lane_has_own_parts_of_its_own_length() -> None:
    lanes = np.stack([CATALOGUE, 3.0 * CATALOGUE])
    np.testing.assert_allclose(append_own(lanes), np.stack([append_own(arms) for arms in lanes]))
    with pytest.raises(InvalidInputError, match="must differ in their features"):
        append_own(np.ones((3, 2)))
    with pytest.raises(InvalidInputError, match="two candidates"):
        append_own([[1.0, 2.0]])
