"""Asking, telling and undoing over HTTP."""

from __future__ import annotations

import csv
import io
from concurrent.futures import ThreadPoolExecutor

import pytest

from duelist.service.settings import ServiceSettings
from tests.support.services import Running, running_service


def test_an_ask_shows_contents_and_not_names(service: Running) -> None:
    arena = service.create(
        items=[{"name": "secret model 1", "id": "a", "content": "first text"}, {"name": "secret model 2", "id": "b"}]
    )
    answer = service.admin.post(f"/api/v1/arenas/{arena}/asks")
    assert answer.status_code == 201
    ask = answer.json()
    assert {ask["left"]["item"], ask["right"]["item"]} == {"a", "b"}
    assert "first text" in (ask["left"]["content"], ask["right"]["content"])
    assert "secret model 1" not in answer.text
    assert ask["outcome"] is None
    assert service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}").json() == ask


def test_left_and_right_are_drawn_at_random_and_written_down(service: Running) -> None:
    arena = service.create(items=[{"name": "a"}, {"name": "b"}])
    asks = [service.ask(arena) for _ in range(60)]
    lefts = sum(ask["left"]["item"] == "a" for ask in asks)
    # A fair coin gives fewer than 10 or more than 50 of 60 less than once in ten million runs.
    assert 10 <= lefts <= 50
    rows = list(csv.DictReader(io.StringIO(service.admin.get(f"/api/v1/arenas/{arena}/votes").text)))
    assert [row["left"] for row in rows] == [ask["left"]["item"] for ask in asks]


@pytest.mark.parametrize("outcome", ["left", "right", "tie", "both_bad", "skip"])
def test_every_outcome_is_kept_and_counted_once(service: Running, outcome: str) -> None:
    arena = service.create()
    ask = service.ask(arena)
    first = service.tell(arena, ask["id"], outcome).json()
    again = service.tell(arena, ask["id"], outcome).json()
    assert first == {"id": ask["id"], "outcome": outcome, "repeated": False, "undo_until": None}
    assert again == {**first, "repeated": True}
    other = "tie" if outcome != "tie" else "skip"
    assert service.tell(arena, ask["id"], other).status_code == 409
    assert service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}").json()["outcome"] == outcome
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == (0 if outcome == "skip" else 1)


def test_a_double_click_counts_once_however_the_requests_race(service: Running) -> None:
    arena = service.create()
    ask = service.ask(arena)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: service.tell(arena, ask["id"], "left" if n % 2 else "right"), range(32)))
    kinds = sorted(answer.status_code for answer in answers)
    assert kinds == [200] * 16 + [409] * 16
    assert sum(not answer.json()["repeated"] for answer in answers if answer.status_code == 200) == 1
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["votes"] == 1


def test_a_repeated_request_id_gets_the_same_pair(service: Running) -> None:
    arena = service.create()
    with ThreadPoolExecutor(8) as pool:
        asks = list(pool.map(lambda _: service.ask(arena, request_id="one"), range(16)))
    assert len({ask["id"] for ask in asks}) == 1
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["asks"] == 1


def test_an_answer_can_be_undone_by_its_voter(service: Running) -> None:
    arena = service.create()
    ask = service.ask(arena)
    told = service.tell(arena, ask["id"], "left", voter="ann").json()
    assert told["undo_until"] is not None
    path = f"/api/v1/arenas/{arena}/asks/{ask['id']}/undo"
    assert service.admin.post(path, json={"voter": "ben"}).status_code == 409
    undone = service.admin.post(path, json={"voter": "ann"})
    assert undone.status_code == 200
    assert undone.json() == ask
    assert service.admin.post(path, json={"voter": "ann"}).status_code == 409, "there is nothing left to undo"
    assert service.tell(arena, ask["id"], "right", voter="ann").status_code == 200


def test_without_a_window_there_is_no_undo(service: Running) -> None:
    arena = service.create(undo_seconds=0)
    ask = service.ask(arena)
    assert service.tell(arena, ask["id"], "left", voter="ann").json()["undo_until"] is None
    assert service.admin.post(f"/api/v1/arenas/{arena}/asks/{ask['id']}/undo", json={"voter": "ann"}).status_code == 409


def test_features_can_come_with_the_ask(service: Running) -> None:
    arena = service.create(features="request", dim=2)
    ask = service.ask(arena, features={"alpha": [1.0, 0.0], "beta": [0.0, 1.0]})
    assert {ask["left"]["item"], ask["right"]["item"]} == {"alpha", "beta"}
    assert service.tell(arena, ask["id"], "left").status_code == 200
    path = f"/api/v1/arenas/{arena}/asks"
    assert "needs the features" in service.admin.post(path).json()["detail"]
    assert service.admin.post(path, json={"features": {"alpha": [1.0], "beta": [0.0]}}).status_code == 422
    assert service.admin.post(path, json={"features": {"alpha": [1.0, 0.0], "nobody": [0.0, 1.0]}}).status_code == 404
    known = service.create()
    assert (
        service.admin.post(f"/api/v1/arenas/{known}/asks", json={"features": {"alpha": [1.0], "beta": [0.0]}}).status_code
        == 422
    )


def test_asks_of_one_arena_are_unknown_in_another(service: Running) -> None:
    here, there = service.create(), service.create()
    ask = service.ask(here)
    assert service.tell(there, ask["id"], "left").status_code == 404
    assert service.tell("nowhere", ask["id"], "left").status_code == 404


def test_a_key_that_asks_too_fast_is_told_to_wait() -> None:
    with running_service(settings=ServiceSettings(rate=1.0, burst=5)) as service:
        statuses = [service.admin.get("/api/v1/arenas").status_code for _ in range(8)]
        assert statuses[:5] == [200] * 5
        assert 429 in statuses[5:]
        refused = service.admin.get("/api/v1/arenas")
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1


def test_predictions_follow_the_features(service: Running) -> None:
    arena = service.create(features="request", dim=1)
    path = f"/api/v1/arenas/{arena}/predictions"
    for _ in range(30):
        ask = service.ask(arena, features={"alpha": [1.0], "beta": [-1.0]})
        service.tell(arena, ask["id"], "left" if ask["left"]["item"] == "alpha" else "right")
    asks = service.admin.get(f"/api/v1/arenas/{arena}").json()["asks"]
    rows = service.admin.post(path, json={"features": {"alpha": [-1.0], "gamma": [1.0]}}).json()["rows"]
    assert [row["item"] for row in rows] == ["gamma", "alpha"], "the feature is what is good, not the item"
    assert rows[0]["probability_best"] > 0.9
    assert rows[0]["low"] <= rows[0]["utility"] <= rows[0]["high"]
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["asks"] == asks
    assert service.admin.post(path, json={"features": {"alpha": [1.0, 2.0], "beta": [1.0, 2.0]}}).status_code == 422
    assert service.admin.post(path, json={"features": {"alpha": [1.0], "nobody": [1.0]}}).status_code == 404
    known = service.create()
    body = {"features": {"alpha": [1.0], "beta": [1.0]}}
    assert service.admin.post(f"/api/v1/arenas/{known}/predictions", json=body).status_code == 409
