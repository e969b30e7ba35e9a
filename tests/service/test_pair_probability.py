"""What is written down with every ask: how probable the pair was, and how much of it was exploration."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.arenas import Stage


@pytest.mark.slow
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
    # Chains are correlated from ask to ask and the estimate is a normal approximation, hence the room.
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


def test_there_is_no_estimate_where_a_neighbour_is_shown_instead_of_the_same_item_twice() -> None:
    stage = Stage(items=3, policy={"kind": "FGTS", "same_arm": "allow"})
    assert np.isnan(stage.ask().probability)
    stage = Stage(items=3, policy={"kind": "MaxInP"})
    assert np.isnan(stage.ask().probability)
