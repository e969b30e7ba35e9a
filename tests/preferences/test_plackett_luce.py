"""Rankings and ties as likelihoods: they are probabilities, their gradients are right, and bad answers have names."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from duelist.preferences.logistic import log_loss, log_loss_slope
from duelist.preferences.plackett_luce import (
    RankingError,
    answer_derivatives,
    checked_ranking,
    ranking_loss,
    ranking_slope,
    sample_ranking,
)
from duelist.preferences.ties import OUTCOMES, BothBad, Davidson, RaoKupper
from tests.support.oracles import Floats, finite_difference

UTILITIES = np.array([0.3, -1.2, 2.0, 0.7])
MODELS: list[Any] = [Davidson(0.7), RaoKupper(2.0), BothBad(-0.4)]


@pytest.mark.parametrize("placed", [1, 2, 3, 4])
def test_rankings_of_any_length_have_probabilities_that_sum_to_one(placed: int) -> None:
    total = sum(np.exp(-ranking_loss(UTILITIES, ranking)) for ranking in permutations(range(4), placed))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_a_partial_ranking_has_the_probability_of_all_full_ones_that_begin_with_it() -> None:
    begins = [r for r in permutations(range(4)) if r[:2] == (2, 0)]
    total = sum(np.exp(-ranking_loss(UTILITIES, ranking)) for ranking in begins)
    assert np.exp(-ranking_loss(UTILITIES, [2, 0])) == pytest.approx(total, rel=1e-12)


def test_with_two_choices_the_winner_is_the_winner_of_a_duel() -> None:
    for ranking, y in (([0], 1), ([0, 1], 1), ([1], -1), ([1, 0], -1)):
        assert ranking_loss(np.array([0.4, 1.1]), ranking) == pytest.approx(float(log_loss(y * -0.7)), abs=1e-15)


@pytest.mark.parametrize("ranking", [[2], [1, 3], [3, 0, 1], [0, 1, 2, 3]])
def test_the_slope_of_a_ranking_agrees_with_finite_differences(ranking: list[int]) -> None:
    expected = finite_difference(lambda u: ranking_loss(u, ranking), UTILITIES)
    np.testing.assert_allclose(ranking_slope(UTILITIES, ranking), expected, atol=1e-8)


def test_derivatives_of_all_lanes_agree_with_finite_differences_and_a_tie_is_a_part_of_a_win_of_each() -> None:
    utilities, placed = np.random.default_rng(3).normal(size=(5, 4)), np.array([0, 1, 2, 3, 4])

    def loss(u: Floats, places: int) -> float:
        if places == 0:
            return float(np.mean([ranking_loss(u, [place]) for place in range(4)]))
        return ranking_loss(u, list(range(places)))

    def slope(u: Floats, places: int, k: int) -> float:
        return float(answer_derivatives(u[None], np.array([places]))[0][0, k])

    slopes, curvatures = answer_derivatives(utilities, placed)
    for lane, places in enumerate(placed):
        along = finite_difference(partial(loss, places=int(places)), utilities[lane])
        np.testing.assert_allclose(slopes[lane], along, atol=1e-6)
        for k in range(4):
            along = finite_difference(partial(slope, places=int(places), k=k), utilities[lane])
            np.testing.assert_allclose(curvatures[lane, k], along, atol=1e-6)


def test_extreme_utilities_lose_nothing() -> None:
    assert ranking_loss(np.array([0.0, 2000.0, -2000.0]), [2, 1, 0]) == pytest.approx(4000.0)
    assert np.isfinite(ranking_slope(np.array([0.0, 2000.0, -2000.0]), [2, 1, 0])).all()


def test_sampled_rankings_occur_as_often_as_the_model_says() -> None:
    generator, counts, n = np.random.default_rng(0), dict.fromkeys(permutations(range(3)), 0), 20000
    for _ in range(n):
        counts[tuple(sample_ranking(UTILITIES[:3], generator).tolist())] += 1
    for ranking, count in counts.items():
        p = np.exp(-ranking_loss(UTILITIES[:3], ranking))
        # Five standard deviations: a false alarm once in 300,000 runs.
        assert abs(count - n * p) < 5 * np.sqrt(n * p * (1 - p))


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        ([], "at least the winner"),
        ([1, 1], "at most once"),
        ([4], "names places 0 to 3"),
        ([-1], "names places"),
        ([0.5], "whole"),
    ],
)
def test_a_ranking_that_cannot_be_is_refused_by_name(ranking: Any, message: str) -> None:
    with pytest.raises(RankingError, match=message):
        checked_ranking(ranking, 4)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("pair", [(0.0, 0.0), (1.5, -0.3), (-40.0, 35.0)])
def test_the_answers_of_a_model_of_ties_have_probabilities_that_sum_to_one(model: Any, pair: tuple[float, float]) -> None:
    probabilities = model.probabilities(*pair)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    for outcome, probability in zip(OUTCOMES, probabilities, strict=True):
        assert np.exp(-model.loss(outcome, *pair).loss) == pytest.approx(probability, rel=1e-9)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_slope_of_a_model_of_ties_agrees_with_finite_differences(model: Any, outcome: Any) -> None:
    at = np.array([0.8, -0.5])

    def loss(pair: Floats) -> float:
        return float(model.loss(outcome, *pair).loss)

    np.testing.assert_allclose(model.loss(outcome, *at).slope, finite_difference(loss, at), atol=1e-8)


def test_ties_say_that_candidates_are_close_and_both_bad_that_both_are_low() -> None:
    for model in (Davidson(1.0), RaoKupper(2.0)):
        assert model.probabilities(0.0, 0.0)[2] > model.probabilities(2.0, 0.0)[2]
        np.testing.assert_allclose(model.probabilities(1.0, 0.0), model.probabilities(-4.0, -5.0))
    assert BothBad().probabilities(-3.0, -3.0)[2] > BothBad().probabilities(0.0, 0.0)[2]


def test_without_ties_each_model_is_the_duel() -> None:
    duel = float(log_loss(0.9))
    assert Davidson(1e-14).loss("first", 0.9, 0.0).loss == pytest.approx(duel, abs=1e-12)
    assert RaoKupper(1.0 + 1e-14).loss("first", 0.9, 0.0).loss == pytest.approx(duel, abs=1e-12)
    assert BothBad(-700.0).loss("first", 0.9, 0.0).loss == pytest.approx(duel, abs=1e-12)


@pytest.mark.parametrize("u", [0.0, 0.7, -3.0])
def test_where_ties_are_rare_davidsons_tie_is_half_a_win_each_way(u: float) -> None:
    tie, half = Davidson(1e-12).loss("tie", u, 0.0), 0.5 * float(log_loss(u) + log_loss(-u))
    assert tie.loss + np.log(1e-12) == pytest.approx(half, abs=1e-9)
    slope = 0.5 * float(log_loss_slope(u) - log_loss_slope(-u))
    assert tie.slope.tolist() == pytest.approx([slope, -slope], abs=1e-9)
