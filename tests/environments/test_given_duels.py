"""Given arms and truths, and contexts that see one catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.given import ContextDuels, GivenDuels

ARMS = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]


def test_arms_and_truth_are_those_given_from_memory_or_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "theta.npy", [2.0, 1.0])
    (tmp_path / "arms.csv").write_text("x,y\n1,0\n0,1\n0.5,0.5\n")
    for features, theta in ((ARMS, [2.0, 1.0]), (str(tmp_path / "arms.csv"), str(tmp_path / "theta.npy"))):
        env = GivenDuels(features=features, theta=theta)
        instance = env.instance(Streams(0, [0, 1]))
        assert env.dim == 2
        np.testing.assert_array_equal(instance.actions(9).features, [ARMS, ARMS])
        np.testing.assert_array_equal(instance.theta, [[2.0, 1.0]] * 2)


def test_of_several_truths_every_trial_draws_one() -> None:
    theta = GivenDuels(features=ARMS, theta=[[1.0, 0.0], [0.0, 3.0]]).instance(Streams(0, range(400))).theta
    share = (theta[:, 0] == 1.0).mean()
    assert abs(share - 0.5) < 5.0 * np.sqrt(0.25 / 400)
    assert {tuple(row) for row in theta.tolist()} == {(1.0, 0.0), (0.0, 3.0)}


@pytest.mark.parametrize("join", ["outer", "blocks", "product"])
def test_features_are_those_of_the_map_written_out(join: Any) -> None:
    catalogue = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    env = ContextDuels(contexts=[[1.0, -1.0], [2.0, 0.5]], catalogue=catalogue, join=join)
    instance = env.instance(Streams(0, range(6)))
    for t in range(3):
        for lane, context in enumerate(instance.contexts(t)):
            for arm, row in enumerate(instance.actions(t).features[lane]):
                expected = {
                    "outer": [c * a for c in context for a in catalogue[arm]],
                    "blocks": [c * (k == arm) for k in range(3) for c in context],
                    "product": [c * a for c, a in zip(context, catalogue[arm], strict=True)],
                }[join]
                np.testing.assert_allclose(row, expected)
    assert env.dim == len(expected)


def test_contexts_are_drawn_uniformly_from_a_table_or_normal() -> None:
    table = ContextDuels(contexts=np.arange(5.0)[:, None], catalogue=ARMS).instance(Streams(0, range(2000)))
    rows = table.contexts(3)[:, 0]
    counts = np.bincount(rows.astype(int), minlength=5)
    assert np.abs(counts - 400).max() < 5.0 * np.sqrt(2000 * 0.16)
    drawn = ContextDuels(context_dim=2).instance(Streams(0, range(2000))).contexts(3)
    assert kstest(drawn.ravel(), "norm").pvalue > 1e-4
    assert abs((drawn[:, 0] * drawn[:, 1]).mean()) < 5.0 / np.sqrt(2000)
    assert not np.array_equal(drawn, ContextDuels(context_dim=2).instance(Streams(0, range(2000))).contexts(4))


def test_a_map_of_yours_may_join_context_and_arms() -> None:
    rng = np.random.default_rng(0)
    contexts, arms = rng.normal(size=(30, 6)), rng.normal(size=(8, 5))
    join = duelist.features.BilinearMap.fit(contexts=contexts, arms=arms, n_components=(3, 2))
    env = ContextDuels(contexts=contexts, catalogue=arms, join=join)
    assert env.dim == 6
    run, uniform = (duelist.simulate(policy, env, rounds=300, trials=3) for policy in (duelist.FGTS(), duelist.Uniform()))
    assert run.final_regret.mean() < 0.7 * uniform.final_regret.mean()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GivenDuels(features=ARMS, theta=[1.0, 2.0, 3.0]), "one entry per feature, 2"),
        (lambda: GivenDuels(features=[[1.0, 2.0]], theta=[1.0, 2.0]), "two rows"),
        (lambda: GivenDuels(features="arms.npy", theta=[1.0]), "cannot be read"),
        (lambda: ContextDuels(theta=[1.0]), "one entry per feature"),
        (lambda: ContextDuels(context_dim=2, arm_dim=3, join="product").dim, "as long as"),
        (lambda: ContextDuels(join="plus"), "one of"),  # type: ignore[arg-type]
        (lambda: ContextDuels(join=lambda contexts, _arms: contexts).dim, "must return features"),
    ],
)
def test_tables_that_do_not_fit_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()
