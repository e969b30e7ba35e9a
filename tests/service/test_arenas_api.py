"""Arenas and items over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.services import Running


def test_an_arena_is_created_listed_and_shown(service: Running) -> None:
    arena = service.create(name="My Nice Arena", id="nice-arena", question="Which?", seed=7, undo_seconds=2.5)
    assert arena == "nice-arena"
    shown = service.admin.get(f"/api/v1/arenas/{arena}").json()
    assert shown == {
        "id": "nice-arena",
        "name": "My Nice Arena",
        "question": "Which?",
        "features": "identity",
        "dim": 8,
        "embedder": "",
        "policy": "FGTS",
        "choices": 2,
        "items": 3,
        "active_items": 3,
        "asks": 0,
        "votes": 0,
        "ties": "half",
        "exploration": 0.0,
        "undo_seconds": 2.5,
        "seed": 7,
        "closed": False,
        "blind": True,
        "voter_quota": 0,
        "prompts": 0,
        "goal": None,
    }
    assert arena in [a["id"] for a in service.admin.get("/api/v1/arenas").json()["arenas"]]


def test_ids_are_made_from_names_and_kept_apart(service: Running) -> None:
    arena = service.create(
        name="Größe & Co", items=[{"name": "Größe"}, {"name": "große"}, {"name": "日本"}, {"name": "x", "id": "item"}]
    )
    items = service.admin.get(f"/api/v1/arenas/{arena}/items").json()["items"]
    assert [item["id"] for item in items] == ["groe", "groe-2", "item-2", "item"]
    assert arena.startswith("groe-co-")


def test_a_taken_id_is_a_conflict(service: Running) -> None:
    service.create(id="taken")
    again = service.admin.post("/api/v1/arenas", json={"id": "taken", "name": "x", "items": [{"name": "a"}, {"name": "b"}]})
    assert again.status_code == 409
    assert "already" in again.json()["detail"]


def test_items_are_added_retired_and_brought_back(service: Running) -> None:
    arena = service.create()
    added = service.admin.post(f"/api/v1/arenas/{arena}/items", json={"items": [{"name": "Delta", "content": "four"}]})
    assert added.status_code == 201
    assert added.json()["items"][-1] == {
        "id": "delta",
        "name": "Delta",
        "content": "four",
        "format": "text",
        "active": True,
        "features": [],
    }
    path = f"/api/v1/arenas/{arena}/items/delta"
    assert service.admin.patch(path, json={"active": False}).json()["active"] is False
    assert service.admin.patch(path, json={"active": False}).status_code == 200, "saying it twice is no mistake"
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["active_items"] == 3
    assert service.admin.patch(path, json={"active": True}).json()["active"] is True
    assert service.admin.patch(f"/api/v1/arenas/{arena}/items/nobody", json={"active": True}).status_code == 404
    same = service.admin.post(f"/api/v1/arenas/{arena}/items", json={"items": [{"name": "Delta", "id": "delta"}]})
    assert same.status_code == 409


def test_two_items_must_stay(service: Running) -> None:
    arena = service.create(items=[{"name": "a"}, {"name": "b"}])
    answer = service.admin.patch(f"/api/v1/arenas/{arena}/items/a", json={"active": False})
    assert answer.status_code == 409
    assert "2 active items" in answer.json()["detail"]


def test_given_features_and_text_features_are_kept(service: Running) -> None:
    given = service.create(
        features="given", dim=2, items=[{"name": "a", "features": [1.0, 0.0]}, {"name": "b", "features": [0, 1]}]
    )
    items = service.admin.get(f"/api/v1/arenas/{given}/items").json()["items"]
    assert [item["features"] for item in items] == [[1.0, 0.0], [0.0, 1.0]]
    text = service.create(features="text")
    assert service.admin.get(f"/api/v1/arenas/{text}").json()["dim"] == 64
    assert len(service.admin.get(f"/api/v1/arenas/{text}/items").json()["items"][0]["features"]) == 64


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"features": "given"}, "needs dim"),
        ({"features": "identity", "dim": 3}, "left out"),
        ({"features": "identity", "embedder": "hashing"}, "left out"),
        ({"features": "text", "embedder": "oracle"}, "no embedder"),
        ({"features": "given", "dim": 2}, "needs 2 features"),
        ({"items": [{"name": "a", "features": [1.0]}, {"name": "b"}]}, "without features"),
        ({"policy": {"name": "Oracle"}}, "Known policies"),
        ({"policy": {"name": "FGTS", "settings": {"alpha": -1.0}}}, "alpha must be"),
        ({"policy": {"name": "FGTS", "settings": {"colour": 1.0}}}, "colour"),
        ({"policy": {"name": "FGTS", "settings": {"sampler": "oracle"}}}, "oracle"),
        ({"policy": {"name": "FGTS", "settings": {"prior": "flat"}}}, "prior_scale"),
        ({"policy": {"name": "Uniform", "prior_scale": 2.0}}, "prior"),
        ({"policy": {"name": "FGTS", "settings": {"mu": "theory"}}}, "mu="),
        ({"policy": {"name": "FGTS", "settings": {"alpha": 5.0, "mu": 0.0}}}, "alpha would be ignored"),
    ],
)
def test_settings_that_do_not_fit_together_say_why(service: Running, changes: dict[str, Any], why: str) -> None:
    body = {"name": "x", "items": [{"name": "a"}, {"name": "b"}], **changes}
    answer = service.admin.post("/api/v1/arenas", json=body)
    assert answer.status_code == 422, answer.text
    assert why in answer.json()["detail"]


@pytest.mark.parametrize(
    "policy",
    ["FGTS", "fgts", "Uniform", "MaxInP", "MaxPairUCB", "CoLSTIM", "VACDB", "StaD", "SupCoLSTIM"],
)
def test_every_policy_can_run_an_arena_or_says_what_it_needs(service: Running, policy: str) -> None:
    items = [{"name": name} for name in ("a", "b", "c")]
    body = {"name": "x", "items": items, "policy": {"name": policy}}
    answer = service.admin.post("/api/v1/arenas", json=body)
    if answer.status_code == 422 and "horizon" in answer.json()["detail"]:
        body["policy"] = {"name": policy, "settings": {"horizon": 1000}}
        answer = service.admin.post("/api/v1/arenas", json=body)
    assert answer.status_code == 201, answer.text
    arena = answer.json()["id"]
    service.vote(arena, "abc", 12)
    board = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert board["rows"][0]["item"] == "a"


def test_an_image_needs_a_web_address(service: Running) -> None:
    for content in ("javascript:alert(1)", "data:image/png;base64,AAAA", "file:///etc/passwd", "https://a b", None):
        item: dict[str, Any] = {"name": "pic", "format": "image"}
        if content is not None:
            item["content"] = content
        answer = service.admin.post("/api/v1/arenas", json={"name": "x", "items": [item, {"name": "b"}]})
        assert answer.status_code == 422
        assert "address" in answer.json()["detail"]
    service.create(items=[{"name": "pic", "format": "image", "content": "https://example.org/a.png"}, {"name": "b"}])


def test_a_policy_of_somebody_s_own_is_never_looked_for_or_run(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hostile.py").write_text("open('was-run', 'w').close()\nclass FGTS: ...\n", encoding="utf-8")
    for name in ("hostile.py:FGTS", "hostile:FGTS", "os:PathLike"):
        body = {"name": "x", "items": [{"name": "a"}, {"name": "b"}], "policy": {"name": name}}
        answer = service.admin.post("/api/v1/arenas", json=body)
        assert answer.status_code == 422
        assert "Known policies" in answer.text
    assert not Path("was-run").exists()
