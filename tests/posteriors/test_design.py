"""A design of pairs: each is the best given the others, by a slow computation that shares no code."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.posteriors import design_pairs
from duelist.typing import FloatArray, IntArray

RNG = np.random.default_rng(4)
ITEMS = RNG.normal(size=(7, 3))
THETA = RNG.normal(size=3)


def information(pairs: IntArray, theta: FloatArray, ridge: float) -> FloatArray:
    matrix = ridge * np.eye(3)
    for first, second in pairs:
        z = ITEMS[first] - ITEMS[second]
        p = 1.0 / (1.0 + np.exp(-(theta @ z)))
        matrix += p * (1.0 - p) * np.outer(z, z)
    return matrix


def value(pairs: IntArray, criterion: str, theta: FloatArray, ridge: float) -> float:
    """Larger is better: log det H, or minus the mean variance of a difference of two utilities."""
    matrix = information(pairs, theta, ridge)
    if criterion == "D":
        return float(np.linalg.slogdet(matrix)[1])
    inverse = np.linalg.inv(matrix)
    contrasts = [ITEMS[i] - ITEMS[j] for i in range(7) for j in range(7) if i != j]
    return -float(np.mean([z @ inverse @ z for z in contrasts]))


@pytest.mark.parametrize("criterion", ["D", "A"])
@pytest.mark.parametrize(("theta", "ridge"), [(np.zeros(3), 1.0), (2.0 * THETA, 0.3)])
def test_no_exchange_of_the_last_pair_and_no_random_design_is_better(criterion: str, theta: FloatArray, ridge: float) -> None:
    found = design_pairs(ITEMS, 9, criterion=criterion, theta=theta, ridge=ridge)  # type: ignore[arg-type]
    best = value(found, criterion, theta, ridge)
    others = [np.vstack([found[:-1], [[i, j]]]) for i in range(7) for j in range(i + 1, 7)]
    assert max(value(other, criterion, theta, ridge) for other in others) <= best + 1e-9
    random = [np.array([RNG.choice(7, 2, replace=False) for _ in range(9)]) for _ in range(300)]
    assert max(value(other, criterion, theta, ridge) for other in random) < best


def test_the_first_pair_of_a_greedy_design_is_the_widest() -> None:
    found = design_pairs(ITEMS, 1)
    gaps = np.linalg.norm(ITEMS[:, None] - ITEMS[None, :], axis=2)
    assert gaps[tuple(found[0])] == gaps.max()


def test_a_guess_that_is_sure_of_a_winner_asks_about_something_else() -> None:
    items = [[1.0, 0.0], [-1.0, 0.0], [0.0, 0.9], [0.0, -0.9]]
    assert design_pairs(items, 1).tolist() == [[0, 1]]
    assert design_pairs(items, 1, theta=[3.0, 0.0]).tolist() == [[2, 3]]


def test_five_hundred_pairs_of_two_hundred_items_tell_more_than_random_ones() -> None:
    items = RNG.normal(size=(200, 10))
    found = design_pairs(items, 500)
    random = np.array([RNG.choice(200, 2, replace=False) for _ in range(500)])

    def log_det(pairs: IntArray) -> float:
        z = items[pairs[:, 0]] - items[pairs[:, 1]]
        return float(np.linalg.slogdet(np.eye(10) + 0.25 * z.T @ z)[1])

    assert log_det(found) > log_det(random) + 5.0
    assert (found[:, 0] != found[:, 1]).all()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"features": [[1.0]]}, "items"),
        ({"n": 0}, "n must"),
        ({"criterion": "E"}, "criterion"),
        ({"theta": [1.0]}, "theta"),
        ({"ridge": 0.0}, "ridge"),
    ],
)
def test_bad_requests_are_named(settings: dict[str, object], word: str) -> None:
    given = {"features": [[1.0, 0.0], [0.0, 1.0]], "n": 2, **settings}
    with pytest.raises(InvalidInputError, match=word):
        design_pairs(**given)  # type: ignore[arg-type]
