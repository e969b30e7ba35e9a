"""Plans of a decision process: the best one is the best of all, and what a plan does has the features it promises."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from duelist.actions.plans import PlanActions
from duelist.core.errors import InvalidInputError
from duelist.environments.trajectories import ProcessFactory, river_swim, slippery_grid
from duelist.typing import FloatArray

STATES, ACTIONS, HORIZON, DIM = 3, 2, 2, 4


def _tiny(lanes: int = 1) -> PlanActions:
    rng = np.random.default_rng(0)
    return PlanActions(
        rng.dirichlet(np.ones(STATES), (STATES, ACTIONS)),
        HORIZON,
        rng.dirichlet(np.ones(STATES)),
        rng.standard_normal((STATES, ACTIONS, DIM)),
        lanes,
    )


def _every_plan(plans: PlanActions) -> dict[tuple[int, ...], FloatArray]:
    """Expected features of all plans, trajectory by trajectory."""
    listed = {}
    paths = list(itertools.product(range(STATES), repeat=HORIZON))
    for plan in itertools.product(range(ACTIONS), repeat=HORIZON * STATES):
        total = np.zeros(DIM)
        for path in paths:
            actions = [plan[step * STATES + state] for step, state in enumerate(path)]
            chance = plans.start[path[0]]
            for step in range(1, HORIZON):
                chance *= plans.transitions[path[step - 1], actions[step - 1], path[step]]
            total += chance * sum(plans.features[state, action] for state, action in zip(path, actions, strict=True))
        listed[plan] = total
    return listed


def test_the_best_plan_is_the_best_of_all_plans() -> None:
    plans = _tiny()
    listed = np.array(list(_every_plan(plans).values()))
    assert len(listed) == ACTIONS ** (STATES * HORIZON) == 64
    theta = np.random.default_rng(1).standard_normal((1, 200, DIM))
    best, values = plans.best(theta), theta[0] @ listed.T
    np.testing.assert_allclose(best.value[0], values.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(best.features[0], listed[values.argmax(axis=1)], rtol=1e-12, atol=1e-12)
    assert len(np.unique(values.argmax(axis=1))) > 10, "many plans are best under some theta"


def test_expected_features_are_those_of_enumerated_trajectories() -> None:
    plans = _tiny()
    listed = _every_plan(plans)
    actions = np.array(list(listed)).reshape(1, -1, HORIZON, STATES)
    np.testing.assert_allclose(plans.features_of(actions)[0], list(listed.values()), rtol=1e-12, atol=1e-12)


def test_a_plan_is_known_by_its_features_also_to_a_set_that_never_gave_it() -> None:
    plans, theta = _tiny(), np.random.default_rng(2).standard_normal((1, 20, DIM))
    features, actions = plans.best(theta).features, plans.plan(theta)
    expected = actions[..., None] == np.arange(ACTIONS)
    np.testing.assert_array_equal(plans.plans_of(features), expected)
    # Without a memory the linear programme answers: the same actions in the same states.
    np.testing.assert_allclose(_tiny().plans_of(features), expected, atol=1e-6)


def test_a_mixture_of_plans_is_played_at_random() -> None:
    theta = np.random.default_rng(2).standard_normal((1, 2, DIM))
    plans = _tiny()
    middle = plans.best(theta).features.mean(axis=1, keepdims=True)
    assert plans.contains(middle).all()
    mixed = plans.plans_of(middle)
    np.testing.assert_allclose(mixed.sum(axis=4), 1.0)
    assert ((mixed > 0.01) & (mixed < 0.99)).any()
    with pytest.raises(InvalidInputError, match="no plan has the expected features"):
        plans.plans_of(middle + 100.0)


@pytest.mark.parametrize("make", [river_swim, slippery_grid])
def test_trajectories_have_the_expected_features_on_average(make: ProcessFactory) -> None:
    plans = make(1)
    theta = np.random.default_rng(3).standard_normal((1, 2, plans.dim))
    features, n = plans.best(theta).features, 4000
    chosen = plans.plans_of(features)
    uniforms = np.random.default_rng(4).random((n, 2, plans.shape[0], 2))
    seen = plans.roll_out(np.broadcast_to(chosen, (n, *chosen.shape[1:])), uniforms)
    assert (seen.sum(axis=2) == plans.shape[0]).all(), "every step is one visit"
    error = seen.std(axis=0) / np.sqrt(n)
    # About 50 comparisons at five standard errors: one false alarm in 30,000 changes of the seed. What is seen hardly ever has
    # no error to speak of; a dozen times in all is allowed for.
    assert (np.abs(seen.mean(axis=0) - features[0]) <= 5.0 * error + 12.0 / n).all()
    assert (seen.std(axis=0) > 0.1).any(), "trajectories of one plan differ"


def test_a_trajectory_that_leaves_nothing_to_chance_can_be_followed_by_hand() -> None:
    stay_or_go = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
    plans = PlanActions(stay_or_go, horizon=3)
    actions = np.array([[[[1, 0], [0, 1], [1, 1]]]])  # go to state 1, go back, go again
    chosen = actions[..., None] == np.arange(2)
    found = plans.roll_out(chosen.astype(float), np.full((1, 1, 3, 2), 0.5))
    np.testing.assert_array_equal(found, [[[0.0, 2.0, 0.0, 1.0]]])
    np.testing.assert_array_equal(plans.features_of(actions), found)


def test_what_is_no_decision_process_is_refused() -> None:
    good = np.full((2, 3, 2), 0.5)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"transitions": np.full((2, 3, 4), 0.25)}, r"must be \(n_states, n_actions, n_states\)"),
        ({"transitions": good * 0.9}, "must be probabilities"),
        ({"start": [0.5, 0.2]}, "must be probabilities"),
        ({"start": [1.0]}, "start must fit 2 state"),
        ({"features": np.ones((3, 2, 1))}, "features must fit 2 state"),
        ({"horizon": 0}, "horizon"),
    ]
    for arguments, match in wrong:
        with pytest.raises(InvalidInputError, match=match):
            PlanActions(**{"transitions": good, "horizon": 2, **arguments})
