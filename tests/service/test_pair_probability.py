"""What is written down with every ask: how probable the pair was, and how much of it was exploration."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.live import DuelLog
from tests.support.arenas import Stage
from tests.support.services import Running


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


def asked(stage: Stage) -> list[dict[str, Any]]:
    return [event.body for event in stage.events if event.kind == "asked"]


def test_exploration_leaves_the_choice_of_the_policy_alone_and_says_exactly_how_likely_a_pair_was() -> None:
    plain, mixed = Stage(items=4), Stage(items=4, exploration=0.3)
    for _ in range(200):
        plain.ask(), mixed.ask()
    drawn = 0
    for free, body in zip(asked(plain), asked(mixed), strict=True):
        own = body.get("proposed", [body["first"], body["second"]])
        assert own == [free["first"], free["second"]]
        by_policy = {*own} == {body["first"], body["second"]}
        assert body["probability"] == pytest.approx(0.7 * by_policy + 0.3 / 6, rel=1e-12)
        assert (body["exploration"], "exploration" in free) == (0.3, False)
        drawn += "proposed" in body
    assert 35 < drawn < 85  # 60 expected, give or take four standard errors
    assert mixed.replayed().to_bytes() == mixed.state.to_bytes()


@pytest.mark.parametrize("policy", [{"kind": "MaxInP"}, {"kind": "FGTS", "same_arm": "allow"}], ids=["MaxInP", "FGTS"])
def test_every_pair_is_shown_as_often_as_its_probability_says(policy: dict[str, Any]) -> None:
    # Horvitz and Thompson: the inverse probabilities of the times that a pair was shown add up to the number of asks.
    stage, n = Stage(items=3, policy=policy, exploration=0.5), 1500
    shown = [stage.ask() for _ in range(n)]
    for pair in ({0, 1}, {0, 2}, {1, 2}):
        inverse = np.array([1.0 / one.probability if {one.first, one.second} == pair else 0.0 for one in shown])
        assert inverse.mean() == pytest.approx(1.0, abs=4.5 * inverse.std() / math.sqrt(n))


def test_a_voter_who_must_not_see_a_pair_again_gets_no_probability() -> None:
    stage = Stage(items=3, exploration=1.0)
    first, second = stage.ask(voter="ann"), stage.ask(voter="ann")
    assert first.probability == pytest.approx(1 / 3)
    assert np.isnan(second.probability)
    assert {first.first, first.second} != {second.first, second.second}


def test_the_export_of_an_arena_that_explores_can_judge_other_routers(service: Running, tmp_path: Path) -> None:
    arena = service.create(policy={"name": "MaxInP"}, exploration=0.25, undo_seconds=0)
    service.vote(arena, "abg", 30)
    table = service.admin.get(f"/api/v1/arenas/{arena}/votes").text
    known = [float(row["probability"]) for row in csv.DictReader(io.StringIO(table))]
    assert len(known) == 30
    assert {round(value, 12) for value in known} == {round(0.75 + 0.25 / 3, 12), round(0.25 / 3, 12)}
    (tmp_path / "votes.csv").write_text(table, encoding="utf-8")
    assert DuelLog.from_file(tmp_path / "votes.csv").propensities == pytest.approx(known)


def test_slates_take_no_exploration(service: Running) -> None:
    body = {
        "name": "Slates",
        "items": [{"name": name} for name in "abcd"],
        "policy": {"name": "ListwiseFGTS"},
        "exploration": 0.1,
    }
    answer = service.admin.post("/api/v1/arenas", json=body)
    assert answer.status_code == 422
    assert "exploration is for pairs" in answer.text
