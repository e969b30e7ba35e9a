"""Leaderboard, explanation, timeline, export and import over HTTP."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

from duelist.live import beliefs
from duelist.live.ensemble import Ensemble
from tests.support.services import Running


def test_the_leaderboard_follows_the_votes(service: Running) -> None:
    arena = service.create()
    fresh = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert fresh["votes"] == 0
    assert [row["rank"] for row in fresh["rows"]] == [1, 2, 3]
    service.vote(arena, "gba", 25)
    board = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert board["rows"][0]["item"] == "gamma"
    assert board["rows"][0]["probability_best"] > 0.9
    assert board["votes"] == board["answers_learnt"] == 25
    for row in board["rows"]:
        assert row["low"] <= row["utility"] <= row["high"]
    assert service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json() == board, "the same votes give the same numbers"


def test_held_answers_are_on_the_leaderboard_at_once(service: Running) -> None:
    arena = service.create()
    service.tell(arena, service.ask(arena)["id"], "left", voter="ann")
    assert service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["answers_learnt"] == 1


def test_an_explanation_is_about_the_pair(service: Running) -> None:
    arena = service.create()
    service.vote(arena, "abg", 10)
    ask = service.ask(arena)
    why = service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}/explanation").json()
    assert (why["left"]["item"], why["right"]["item"]) == (ask["left"]["item"], ask["right"]["item"])
    assert why["pair_probability"] == ask["probability"]
    assert len(why["left"]["drawn"]) == 2
    assert why["low"] <= why["probability_left_wins"] <= why["high"]
    assert why["words"].startswith("FGTS drew")
    assert service.admin.get(f"/api/v1/arenas/{arena}/asks/0-{0:016x}/explanation").status_code == 404


def test_the_timeline_adds_up(service: Running) -> None:
    arena = service.create()
    service.vote(arena, "abg", 7)
    timeline = service.admin.get(f"/api/v1/arenas/{arena}/timeline").json()
    assert sum(bucket["votes"] for bucket in timeline["buckets"]) == 7
    assert sum(bucket["asks"] for bucket in timeline["buckets"]) == 7
    assert 0 <= timeline["explored"] <= 1


def test_csv_and_parquet_hold_the_same_comparisons(service: Running) -> None:
    arena = service.create()
    service.vote(arena, "abg", 5)
    service.tell(arena, service.ask(arena)["id"], "tie", voter="ann")
    service.ask(arena)
    answer = service.admin.get(f"/api/v1/arenas/{arena}/votes")
    assert answer.headers["content-type"].startswith("text/csv")
    assert f'filename="{arena}.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    binary = service.admin.get(f"/api/v1/arenas/{arena}/votes", params={"format": "parquet"})
    table = pq.read_table(io.BytesIO(binary.content)).to_pylist()
    assert len(rows) == len(table) == 7
    for row, other in zip(rows, table, strict=True):
        for column in ("ask", "left", "right", "outcome", "winner", "loser", "voter"):
            assert row[column] == (other[column] or "")
        assert float(row["probability"]) == pytest.approx(other["probability"])
        assert json.loads(row["candidates"]) == json.loads(other["candidates"]) == ["alpha", "beta", "gamma"]
    assert rows[5]["voter"] == "ann"
    assert rows[6]["outcome"] == ""
    for row in rows[:5]:
        assert {row["winner"], row["loser"]} == {row["left"], row["right"]}
    assert service.admin.get(f"/api/v1/arenas/{arena}/votes", params={"format": "xml"}).status_code == 422


def test_a_cell_that_looks_like_a_formula_is_defused(service: Running) -> None:
    arena = service.create()
    service.tell(arena, service.ask(arena)["id"], "left", voter="-1")
    assert ",'-1" in service.admin.get(f"/api/v1/arenas/{arena}/votes").text


def test_past_votes_are_a_warm_start(service: Running) -> None:
    arena = service.create()
    votes = [{"first": "beta", "second": other, "outcome": "first"} for other in ("alpha", "gamma") for _ in range(15)]
    path = f"/api/v1/arenas/{arena}/imports"
    answer = service.admin.post(path, json={"batch": "2024", "votes": votes})
    assert answer.status_code == 201
    assert answer.json() == {"batch": "2024", "votes": 30, "repeated": False}
    assert service.admin.post(path, json={"batch": "2024", "votes": votes}).json()["repeated"] is True
    assert service.admin.post(path, json={"batch": "2024", "votes": votes[:3]}).status_code == 409
    board = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert board["votes"] == 30
    assert board["rows"][0]["item"] == "beta"
    asks = [service.ask(arena) for _ in range(10)]
    assert sum("beta" in (ask["left"]["item"], ask["right"]["item"]) for ask in asks) >= 8, "the policy learnt from them"
    bad = [{"first": "beta", "second": "beta", "outcome": "first"}]
    assert service.admin.post(path, json={"batch": "bad", "votes": bad}).status_code == 422
    unknown = [{"first": "beta", "second": "nobody", "outcome": "first"}]
    assert service.admin.post(path, json={"batch": "bad", "votes": unknown}).status_code == 404


def test_what_was_exported_can_be_imported(service: Running) -> None:
    old, new = service.create(), service.create()
    service.vote(old, "bga", 20)
    rows = list(csv.DictReader(io.StringIO(service.admin.get(f"/api/v1/arenas/{old}/votes").text)))
    votes = [{"first": row["winner"], "second": row["loser"], "outcome": "first"} for row in rows]
    assert service.admin.post(f"/api/v1/arenas/{new}/imports", json={"batch": "old", "votes": votes}).status_code == 201
    boards = [service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["rows"] for arena in (old, new)]
    assert [row["item"] for row in boards[0]] == [row["item"] for row in boards[1]]
    assert [row["wins"] for row in boards[0]] == [row["wins"] for row in boards[1]]


def test_an_arena_with_features_from_asks_cannot_import(service: Running) -> None:
    arena = service.create(features="request", dim=1)
    votes = [{"first": "alpha", "second": "beta", "outcome": "first"}]
    assert service.admin.post(f"/api/v1/arenas/{arena}/imports", json={"batch": "b", "votes": votes}).status_code == 409


def test_draws_are_kept_until_votes_have_grown(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str, call: Callable[..., Ensemble]) -> Callable[..., Ensemble]:
        def count(*args: Any, **options: Any) -> Ensemble:
            made.append(name)
            return call(*args, **options)

        return count

    for name in ("start_ensemble", "renew_ensemble"):
        monkeypatch.setattr(beliefs, name, counted(name, getattr(beliefs, name)))
    arena = service.create()
    service.vote(arena, "gba", 100)
    first = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (first["drawn_from"], first["age"]) == (100, 0)
    service.vote(arena, "gba", 1)
    second = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (second["drawn_from"], second["age"], second["answers_learnt"]) == (100, 1, 101)
    assert [row["utility"] for row in second["rows"]] == [row["utility"] for row in first["rows"]]
    assert sum(row["wins"] for row in second["rows"]) == 101, "counts are those of now"
    assert made == ["start_ensemble"]
    service.vote(arena, "gba", 5)
    third = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (third["drawn_from"], third["age"]) == (106, 0)
    assert made == ["start_ensemble", "renew_ensemble"]


def test_an_answer_that_was_undone_and_given_again_is_news(service: Running) -> None:
    arena = service.create()
    ask = service.ask(arena)
    service.tell(arena, ask["id"], "left", voter="ann")
    before = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()["rows"]
    assert before[0]["item"] == ask["left"]["item"]
    service.admin.post(f"/api/v1/arenas/{arena}/asks/{ask['id']}/undo", json={"voter": "ann"})
    service.tell(arena, ask["id"], "right", voter="ann")
    after = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert after["rows"][0]["item"] == ask["right"]["item"]
    assert (after["drawn_from"], after["age"]) == (1, 0)


def test_nothing_is_said_of_items_whose_features_nobody_knows(service: Running) -> None:
    arena = service.create(features="request", dim=2)
    path = f"/api/v1/arenas/{arena}"
    for row in service.admin.get(f"{path}/leaderboard").json()["rows"]:
        assert (row["utility"], row["low"], row["high"], row["probability_best"]) == (0.0, None, None, None)
    service.admin.post(f"{path}/asks", json={"features": {"alpha": [1.0, 0.0], "beta": [0.0, 1.0]}})
    rows = {row["item"]: row for row in service.admin.get(f"{path}/leaderboard").json()["rows"]}
    assert rows["gamma"]["probability_best"] is None
    assert rows["alpha"]["probability_best"] + rows["beta"]["probability_best"] == pytest.approx(1.0)
    assert rows["alpha"]["low"] < 0.0 < rows["alpha"]["high"]
    found = service.admin.post(f"{path}/predictions", json={"features": {"alpha": [1.0, 0.0], "gamma": [1.0, 0.0]}}).json()
    assert [row["probability_best"] for row in found["rows"]] == [0.5, 0.5]
    assert [row["expected_loss"] for row in found["rows"]] == [0.0, 0.0]
    assert (found["drawn_from"], found["age"]) == (0, 0)
