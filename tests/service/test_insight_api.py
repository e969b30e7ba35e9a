"""Leaderboard, explanation, timeline, export and import over HTTP."""

from __future__ import annotations

import csv
import io

import pyarrow.parquet as pq
import pytest

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
