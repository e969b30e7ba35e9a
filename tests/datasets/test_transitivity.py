"""One ranking or none: cycles are found, rankings are left alone, and p-values are those of chance."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from duelist.datasets import Comparisons, check_transitivity
from duelist.datasets.transitivity import _least_contradicted


def make(**fields: Any) -> Comparisons:
    return Comparisons(**fields)


def votes_from(probability: Any, n: int, seed: int) -> Comparisons:
    rng = np.random.default_rng(seed)
    k = len(probability)
    first = rng.integers(k, size=n)
    second = (first + rng.integers(1, k, size=n)) % k
    chosen = np.where(rng.random(n) < np.asarray(probability)[first, second], 0, 1)
    return make(name="x", items=tuple("abcdef"[:k]), shown=np.stack([first, second], axis=1), chosen=chosen)


def test_a_cycle_has_no_ranking_and_borda_says_that_all_are_equal() -> None:
    cycle = [[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]]
    found = check_transitivity(votes_from(cycle, 600, 0), n_draws=200)
    assert found.p_value < 0.02
    assert len(found.against) == 1
    np.testing.assert_allclose(found.borda.mean, 0.5, atol=0.06)
    assert "no one ranking" in str(found)


def test_votes_with_one_ranking_are_rarely_refused_whatever_the_model() -> None:
    """At a rate of 5 %, more than 3 of 20 sets are below 0.05 in one run of 63."""
    utilities = np.array([1.0, 0.6, 0.5, 0.0, -0.8])
    gap = utilities[:, None] - utilities
    for law in (1.0 / (1.0 + np.exp(-gap)), 0.5 + 0.2 * np.sign(gap)):
        p_values = [check_transitivity(votes_from(law, 300, seed), n_draws=40).p_value for seed in range(20)]
        assert sum(p < 0.05 for p in p_values) <= 3


def test_no_move_of_one_item_makes_the_ranking_less_contradicted() -> None:
    """That is all that is promised: the best of all rankings can be two moves away."""
    for seed in range(20):
        upper = np.triu(np.random.default_rng(seed).normal(size=(5, 5)), 1)
        margins = upper - upper.T
        found, cost = _least_contradicted(margins, np.arange(5))

        def against(ranking: list[int], margins: Any = margins) -> float:
            return sum(max(float(margins[b, a]), 0.0) ** 2 for a, b in itertools.combinations(ranking, 2))

        ranking = found.tolist()
        assert abs(cost - against(ranking)) < 1e-9
        for item, place in itertools.product(range(5), range(5)):
            others = [other for other in ranking if other != item]
            assert against([*others[:place], item, *others[place:]]) >= cost - 1e-9


def test_ties_and_weights_count() -> None:
    votes = make(name="x", items=("a", "b"), shown=[[0, 1], [0, 1]], chosen=[0, -1], weights=[3.0, 1.0])
    assert check_transitivity(votes, n_draws=20).borda.mean.tolist() == [0.875, 0.125]
