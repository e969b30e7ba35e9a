"""An arena that shows three items at once: asked, answered with the best, a ranking or a tie, undone, restarted, exported."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.slates import slates_of
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.duel_log import DuelLog
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.preferences.ties import LearntDavidson
from duelist.service.arena.item_commands import AddItems
from duelist.service.arena.items import Item
from duelist.service.client import Client
from duelist.service.state import ServiceState
from tests.support.arenas import Stage
from tests.support.services import Running, running_service

FRUIT = ("apple", "banana", "cherry", "damson", "elderberry")
POLICY: dict[str, Any] = {"name": "ListwiseFGTS", "settings": {"choices": 3, "feedback": "ranking"}}


def create(service: Running, **changes: Any) -> str:
    items = [{"name": name, "id": name} for name in FRUIT]
    return service.create(**{"items": items, "policy": POLICY, "undo_seconds": 0, **changes})


def answer(service: Running, arena: str, ask: str, **body: Any) -> Any:
    return service.admin.put(f"/api/v1/arenas/{arena}/asks/{ask}/answer", json=body)


def shown(ask: dict[str, Any]) -> list[str]:
    return [one["item"] for one in ask["candidates"]]


def test_an_ask_shows_three_different_items_in_an_order_that_is_drawn(service: Running) -> None:
    arena = create(service)
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["choices"] == 3
    firsts = set()
    for _ in range(12):
        ask = service.ask(arena)
        assert (ask["left"], ask["right"], ask["outcome"]) == (None, None, None)
        assert len(set(shown(ask))) == 3 <= len(set(FRUIT) & set(shown(ask)))
        again = service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}").json()
        assert again == ask, "whoever looks again sees the same order"
        firsts.add(shown(ask)[0])
    assert len(firsts) > 1
    stage = slate_stage()
    orders = {tuple(stage.arena.learner.slates[stage.ask().number].order) for _ in range(40)}
    assert len(orders) == 6, "every order comes up"


def slate_stage(**changes: Any) -> Stage:
    policy = {"kind": "ListwiseFGTS", "choices": 3, "feedback": "ranking"}
    return Stage(items=5, policy=policy, **changes)


def test_the_best_a_ranking_and_a_tie_are_learnt_as_the_policy_would_learn_them(service: Running) -> None:
    """The oracle is the policy itself, told the same by places."""
    arena = create(service, seed=3)
    policy, streams = ListwiseFGTS(choices=3, feedback="ranking"), Streams(3, [0])
    arms = FiniteActions(np.eye(5, 8))
    state = policy.start(Problem(dim=8, live=True), streams)
    for t in range(12):
        ask = service.ask(arena)
        slates, state = policy.choose(state, arms, streams)
        rows = slates.rows[0].tolist()
        assert sorted(shown(ask)) == sorted(FRUIT[row] for row in rows)
        ranked = sorted(rows, reverse=t % 2 == 0)[: (1, 3, 2)[t % 3]]
        names = [FRUIT[row] for row in ranked]
        body: dict[str, Any] = {"best": names[0]} if len(names) == 1 else {"ranking": names}
        if t == 7:
            body, ranked = {"outcome": "tie"}, []
        said = answer(service, arena, ask["id"], **body)
        assert said.status_code == 200, said.text
        assert answer(service, arena, ask["id"], **body).json()["repeated"]
        places: Any = [rows.index(row) for row in ranked] or "tie"
        state = policy.learn(state, arms, slates_of(arms, slates.rows), [places])
        found = service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}").json()
        assert found["ranking"] == (names if t != 7 else None)
    mine = service.service.arena(arena).learner.lane.state
    np.testing.assert_array_equal(mine.table.features, state.table.features)
    np.testing.assert_array_equal(mine.table.placed, state.table.placed)
    np.testing.assert_array_equal(mine.chains.position, state.chains.position)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"best": "fig"}, 404, "no item"),
        ({"ranking": ["SHOWN0", "SHOWN0"]}, 422, "each once"),
        ({"best": "OTHER"}, 422, "names items that it shows"),
        ({"outcome": "left"}, 422, "without sides"),
        ({"best": "SHOWN0", "outcome": "tie"}, 422, "one of outcome, best and ranking"),
        ({}, 422, "one of outcome, best and ranking"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_changes_nothing(
    service: Running, body: dict[str, Any], status: int, says: str
) -> None:
    arena = create(service)
    ask = service.ask(arena)
    other = next(name for name in FRUIT if name not in shown(ask))
    text = json.dumps(body).replace("SHOWN0", shown(ask)[0]).replace("OTHER", other)
    said = answer(service, arena, ask["id"], **json.loads(text))
    assert (said.status_code, says in said.text) == (status, True), said.text
    assert service.service.arena(arena).n_votes == 0


def test_another_answer_to_an_answered_slate_is_refused(service: Running) -> None:
    arena = create(service)
    ask = service.ask(arena)
    assert answer(service, arena, ask["id"], ranking=shown(ask)).status_code == 200
    for other in ({"ranking": shown(ask)[::-1]}, {"best": shown(ask)[0]}, {"outcome": "tie"}):
        assert answer(service, arena, ask["id"], **other).status_code == 409


def test_an_undone_answer_is_forgotten_and_can_be_given_again(service: Running) -> None:
    arena = create(service, undo_seconds=600)
    ask = service.ask(arena)
    ranking = shown(ask)
    assert answer(service, arena, ask["id"], ranking=ranking, voter="ann").json()["undo_until"]
    before = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (before["votes"], before["rows"][0]["item"]) == (1, ranking[0]), "what can be undone counts on the leaderboard"
    undone = service.admin.post(f"/api/v1/arenas/{arena}/asks/{ask['id']}/undo", json={"voter": "ann"})
    assert (undone.status_code, undone.json()["ranking"], shown(undone.json())) == (200, None, ranking)
    assert answer(service, arena, ask["id"], ranking=ranking[::-1], voter="ann").status_code == 200
    after = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (after["votes"], after["rows"][0]["item"]) == (1, ranking[-1])


def test_the_leaderboard_finds_the_order_and_counts_what_was_shown(service: Running) -> None:
    arena = create(service)
    client = Client(service.url, service.secret)
    wins = dict.fromkeys(FRUIT, 0)
    seen = dict.fromkeys(FRUIT, 0)
    for _ in range(60):
        ask = client.ask(arena)
        assert (len(ask.items), len(ask.contents), ask.left) == (3, 3, "")
        ranking = sorted(ask.items)
        client.tell_ranking(ask, ranking)
        wins[ranking[0]] += 1
        for item in ask.items:
            seen[item] += 1
    rows = {row["item"]: row for row in client.leaderboard(arena)}
    assert next(iter(rows)) == "apple"
    assert all(rows[one]["utility"] > rows[other]["utility"] for one, other in pairwise(list(rows)))
    assert {item: row["wins"] for item, row in rows.items()} == wins
    assert {item: row["shown"] for item, row in rows.items()} == seen
    assert all(row["losses"] == row["shown"] - row["wins"] for row in rows.values())
    client.close()


def test_the_export_has_what_was_shown_and_how_it_was_ranked(service: Running, tmp_path: Path) -> None:
    arena = create(service)
    ask, other = service.ask(arena), service.ask(arena)
    answer(service, arena, ask["id"], ranking=shown(ask)[1:])
    text = service.admin.get(f"/api/v1/arenas/{arena}/votes").text
    first, second = csv.DictReader(io.StringIO(text))
    assert json.loads(first["shown"]) == shown(ask)
    assert (json.loads(first["ranking"]), first["winner"]) == (shown(ask)[1:], shown(ask)[1])
    assert (first["outcome"], first["left"], first["loser"]) == ("ranked", "", "")
    assert (json.loads(second["shown"]), second["ranking"], second["outcome"]) == (shown(other), "", "")
    answer(service, arena, other["id"], outcome="tie")
    (tmp_path / "votes.csv").write_text(service.admin.get(f"/api/v1/arenas/{arena}/votes").text)
    with pytest.raises(InvalidInputError, match="no answered duel"):
        DuelLog.from_file(tmp_path / "votes.csv")
    parquet = service.admin.get(f"/api/v1/arenas/{arena}/votes", params={"format": "parquet"})
    assert parquet.status_code == 200
    explained = service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}/explanation")
    assert (explained.status_code, "a pair" in explained.text) == (409, True)
    assert service.admin.get(f"/api/v1/arenas/{arena}/timeline").status_code == 200


def test_past_votes_on_pairs_warm_an_arena_of_slates(service: Running) -> None:
    arena = create(service)
    with Client(service.url, service.secret) as client:
        client.import_votes(arena, [("elderberry", name, "first") for name in FRUIT[:4]] * 5, batch="past")
        rows = client.leaderboard(arena)
    assert (rows[0]["item"], rows[0]["wins"]) == ("elderberry", 20)


def test_as_many_items_as_are_shown_must_stay(service: Running) -> None:
    refused = service.admin.post(
        "/api/v1/arenas", json={"name": "Few", "items": [{"name": "a"}, {"name": "b"}], "policy": POLICY}
    )
    assert (refused.status_code, "shows 3 items at once" in refused.text) == (409, True)
    arena = create(service)
    for name in FRUIT[:2]:
        assert service.admin.patch(f"/api/v1/arenas/{arena}/items/{name}", json={"active": False}).status_code == 200
    left = service.admin.patch(f"/api/v1/arenas/{arena}/items/cherry", json={"active": False})
    assert (left.status_code, "3 active items" in left.text) == (409, True)
    too_many = service.admin.post(
        "/api/v1/arenas",
        json={"name": "Many", "items": [{"name": name} for name in FRUIT], "policy": {**POLICY, "settings": {"choices": 12}}},
    )
    assert (too_many.status_code, "at most 9" in too_many.text) == (422, True)


def test_a_restart_goes_on_bit_for_bit(tmp_path: Path) -> None:
    asked: list[list[list[str]]] = []
    for name, stops in (("straight", ()), ("broken", (4, 9))):
        path = tmp_path / f"{name}.db"
        arena, shows, t = "", [], 0
        while t < 14:
            with running_service(SQLiteJournal(path)) as service:
                arena = arena or create(service, id="fruit", undo_seconds=600)
                while t < 14:
                    ask = service.ask(arena, voter="ann")
                    shows.append(sorted(shown(ask)))
                    answer(service, arena, ask["id"], ranking=sorted(shown(ask))[: 1 + t % 3], voter="ann")
                    t += 1
                    if t in stops:
                        break
        asked.append(shows)
    assert asked[0] == asked[1]


def test_a_snapshot_holds_slates_and_rankings() -> None:
    stage = slate_stage(undo_ms=0)
    for n in range(6):
        decision = stage.ask()
        items = stage.arena.learner.slates[decision.number].items
        stage.tell_ranking(decision, [f"i{item}" for item in items[: 1 + n % 3]])
    stage.ask()
    again = ServiceState.from_bytes(stage.state.to_bytes())
    assert again.to_bytes() == stage.state.to_bytes()
    learner = again.arena("arena").learner
    assert (learner.slates, learner.rankings) == (stage.arena.learner.slates, stage.arena.learner.rankings)
    folded = ServiceState()
    for event in stage.events:
        folded.apply(event)
    assert folded.to_bytes() == stage.state.to_bytes()


def test_more_items_make_the_dimension_grow_and_slates_are_learnt_again() -> None:
    stage = slate_stage(undo_ms=0)
    for _ in range(5):
        decision = stage.ask()
        best = stage.arena.learner.slates[decision.number].items[0]
        stage.tell_ranking(decision, [f"i{best}"])
    stage.commit(AddItems("arena", [Item(f"n{n}", f"New {n}", "x") for n in range(6)]))
    lane = stage.arena.learner.lane
    assert (lane.dim, lane.generation, lane.state.table.rounds) == (16, 1, 5)
    assert stage.ask().number == 5


def test_pairs_with_a_learnt_model_of_ties_are_an_arena_like_any_other(service: Running) -> None:
    settings = {"choices": 2, "ties": "LearntDavidson"}
    arena = service.create(policy={"name": "ListwiseFGTS", "settings": settings}, undo_seconds=0)
    for t in range(20):
        ask = service.ask(arena, voter="ann")
        body: dict[str, Any] = {"outcome": "tie"} if t % 2 else {"best": min(ask["left"]["item"], ask["right"]["item"])}
        assert answer(service, arena, ask["id"], **body).status_code == 200
    lane = service.service.arena(arena).learner.lane
    assert lane.policy == ListwiseFGTS(choices=2, ties=LearntDavidson())
    assert (lane.state.table.placed[0, :20] == 0).sum() == 10
    assert service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["rows"][0]["item"] == "alpha"
