from __future__ import annotations

import itertools

import numpy as np
import pytest

from arena_parts import Stage
from duelist.service.outlook import favourites, pair_probability


def test_pair_probabilities_of_all_pairs_add_up_to_one() -> None:
    utilities = np.random.default_rng(0).normal(size=(5, 400))
    best, behind = favourites(utilities)
    total = sum(pair_probability(best, behind, i, j) for i, j in itertools.combinations(range(5), 2))
    assert total == pytest.approx(1.0)


def test_pair_probability_agrees_with_playing_the_rule_itself() -> None:
    # The slow, obvious version: take two independent draws, play the best of each, the runner-up of the second on a repeat.
    rng = np.random.default_rng(1)
    utilities = rng.normal(size=(4, 3000)) + np.array([1.0, 0.5, 0.0, -1.0])[:, None]
    counts = np.zeros((4, 4))
    n = 40_000
    for _ in range(n):
        one, two = utilities[:, rng.integers(3000)], utilities[:, rng.integers(3000)]
        first = int(one.argmax())
        order = np.argsort(-two)
        second = int(order[0] if order[0] != first else order[1])
        counts[min(first, second), max(first, second)] += 1
    best, behind = favourites(utilities)
    for i, j in itertools.combinations(range(4), 2):
        share = counts[i, j] / n
        # Four standard errors of a share of 40,000 plays: below one false alarm in 2,000 for the six pairs together.
        assert pair_probability(best, behind, i, j) == pytest.approx(share, abs=4 * np.sqrt(0.25 / n))


def test_the_estimate_follows_what_the_policy_really_plays() -> None:
    # In a frozen arena the policy asks again and again from one posterior: the estimates must match the frequencies.
    stage = Stage(items=3)
    stage.crowd(60, spread=0.4)
    counts: dict[frozenset[int], int] = {}
    estimates: dict[frozenset[int], float] = {}
    asks = 3000
    for _ in range(asks):
        decision = stage.ask(at=10**9)
        pair = frozenset((decision.first, decision.second))
        counts[pair] = counts.get(pair, 0) + 1
        estimates[pair] = decision.probability
    # Chains are correlated from ask to ask and the estimate is a normal approximation of 256 draws, hence the room.
    for pair, count in counts.items():
        assert estimates[pair] == pytest.approx(count / asks, abs=0.12)


def test_exploration_is_the_share_outside_the_two_leading_items() -> None:
    stage = Stage(items=4)
    stage.crowd(400, spread=3.0)
    late = [stage.ask(at=10**9) for _ in range(50)]
    for decision in late:
        outside = sum(number not in (0, 1) for number in (decision.first, decision.second)) / 2
        assert decision.explored == outside
    assert np.mean([decision.explored for decision in late]) < 0.3
