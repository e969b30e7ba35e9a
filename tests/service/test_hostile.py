"""Inputs that want to break something. Each gets a 4xx that says why, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from duelist.service.settings import ServiceSettings
from tests.support.services import Running, running_service

GOOD: dict[str, Any] = {"name": "x", "items": [{"name": "a"}, {"name": "b"}]}


def changed(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes})


@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "nonsense",
        "[]",
        "null",
        '"text"',
        "[" * 100_000,
        '{"a":' * 50_000,
        '{"name": NaN, "items": []}',
        changed(seed=1.5),
        changed(seed=True),
        changed(seed="1"),
        changed(seed=-1),
        changed(seed=10**400),
        changed(undo_seconds=float("nan")),
        changed(undo_seconds=float("inf")),
        changed(undo_seconds="10"),
        changed(extra=1),
        changed(name=None),
        changed(name=""),
        changed(name="   "),
        changed(name="a\x00b"),
        changed(name="a\nb"),
        changed(name="x" * 201),
        changed(name=["x"]),
        changed(id="Upper"),
        changed(id="../etc"),
        changed(id="a" * 65),
        changed(id="a\n"),
        changed(items=[]),
        changed(items=[{"name": "a"}]),
        changed(items={"name": "a"}),
        changed(items=[{"name": "a"}] * 257),
        changed(items=[{"name": "a", "content": "\x1b[2J"}, {"name": "b"}]),
        changed(items=[{"name": "a", "content": "x" * 20_001}, {"name": "b"}]),
        changed(items=[{"name": "a", "format": "html"}, {"name": "b"}]),
        changed(items=[{"name": "a", "__proto__": {}}, {"name": "b"}]),
        changed(features="given", dim=0),
        changed(features="given", dim=513),
        changed(features="given", dim=1, items=[{"name": "a", "features": [float("nan")]}, {"name": "b", "features": [1.0]}]),
        changed(features="given", dim=1, items=[{"name": "a", "features": [1e400]}, {"name": "b", "features": [1.0]}]),
        changed(features="given", dim=1, items=[{"name": "a", "features": [1001.0]}, {"name": "b", "features": [1.0]}]),
        changed(features="given", dim=1, items=[{"name": "a", "features": ["1"]}, {"name": "b", "features": [1.0]}]),
        changed(features="given", dim=1, items=[{"name": "a", "features": [[1.0]]}, {"name": "b", "features": [1.0]}]),
        changed(policy={"name": "__class__"}),
        changed(policy={"name": "FGTS", "settings": {"eta": float("nan")}}),
        changed(policy={"name": "FGTS", "settings": {"eta": 0.0}}),
        changed(policy={"name": "FGTS", "settings": {"horizon": 0.5}}),
        changed(policy={"name": "FGTS", "settings": {"sampler": {"kind": "MALA"}}}),
        changed(policy={"name": "FGTS", "settings": {"__init__": 1}}),
        changed(policy={"name": "FGTS", "settings": {"kind": "Uniform"}}),
        changed(name="\ud800"),
        changed(items=[{"name": "a", "content": "\udfff"}, {"name": "b"}]),
    ],
)
def test_a_bad_arena_is_refused_with_a_reason(service: Running, body: str) -> None:
    before = service.service.store.position
    answer = service.admin.post("/api/v1/arenas", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422), (body[:200], answer.text)
    problem = answer.json()
    assert problem["detail"]
    assert problem["title"]
    assert service.service.store.position == before


def test_a_body_in_another_encoding_or_type_is_refused(service: Running) -> None:
    for content, kind in (
        (json.dumps(GOOD).encode("utf-16"), "application/json"),
        (b"\xff\xfe\xfd", "application/json"),
        (b"name=x", "application/x-www-form-urlencoded"),
        (b"<a/>", "application/xml"),
        (json.dumps(GOOD).encode(), "text/plain"),
    ):
        answer = service.admin.post("/api/v1/arenas", content=content, headers={"content-type": kind})
        if content.startswith(b"\xff\xfe{") or (kind == "application/json" and answer.status_code == 201):
            continue  # UTF-16 with its mark is JSON that Python understands; it is an arena like any other
        assert answer.status_code in (400, 415, 422), (content, kind, answer.text)
        assert answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"outcome": "LEFT"},
        {"outcome": ""},
        {"outcome": None},
        {"outcome": ["left"]},
        {"outcome": "left", "voter": ""},
        {"outcome": "left", "voter": "a b"},
        {"outcome": "left", "voter": "x" * 65},
        {"outcome": "left", "voter": 7},
        {"outcome": "left", "extra": 1},
        {},
        [],
        None,
    ],
)
def test_a_bad_answer_is_refused_and_the_ask_still_waits(service: Running, body: Any) -> None:
    arena = service.create()
    ask = service.ask(arena)
    answer = service.admin.put(f"/api/v1/arenas/{arena}/asks/{ask['id']}/answer", json=body)
    assert answer.status_code == 422
    assert service.admin.get(f"/api/v1/arenas/{arena}/asks/{ask['id']}").json()["outcome"] is None


@pytest.mark.parametrize(
    "features",
    [
        {"alpha": [float("nan"), 0.0], "beta": [0.0, 1.0]},
        {"alpha": [float("inf"), 0.0], "beta": [0.0, 1.0]},
        {"alpha": [1e300, 0.0], "beta": [0.0, 1.0]},
        {"alpha": [1.0, 0.0]},
        {"alpha": [], "beta": []},
        {"alpha": [1.0] * 513, "beta": [1.0] * 513},
        {"../x": [1.0, 0.0], "beta": [0.0, 1.0]},
        [[1.0, 0.0], [0.0, 1.0]],
        "alpha",
    ],
)
def test_bad_features_are_refused_and_nothing_is_asked(service: Running, features: Any) -> None:
    arena = service.create(features="request", dim=2)
    body = json.dumps({"features": features})
    answer = service.admin.post(f"/api/v1/arenas/{arena}/asks", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["asks"] == 0


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/arenas/..%2f..%2fetc",
        "/api/v1/arenas/%00",
        "/api/v1/arenas/a%0a",
        "/api/v1/arenas/" + "a" * 5000,
        "/api/v1/arenas/x/asks/99999999999999999999-0000000000000000",
        "/api/v1/arenas/x/asks/-1-0000000000000000",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/nowhere",
        "/api/v1/nowhere",
        "/api/v2/arenas",
    ],
)
def test_odd_addresses_lead_nowhere(service: Running, path: str) -> None:
    answer = service.admin.get(path)
    assert answer.status_code in (403, 404, 405, 422), answer.text
    assert "create_app" not in answer.text


def test_a_method_that_a_route_does_not_know_is_named(service: Running) -> None:
    answer = service.admin.delete("/api/v1/arenas")
    assert answer.status_code == 405
    assert "GET" in answer.headers["allow"] or "POST" in answer.headers["allow"]


def test_a_body_that_is_too_large_is_refused_announced_or_not() -> None:
    with running_service(settings=ServiceSettings(max_body=2000)) as service:
        big = json.dumps({**GOOD, "name": "x" * 3000}).encode()
        assert service.admin.post("/api/v1/arenas", content=big).status_code == 413
        chunks = iter([big[:1000], big[1000:2500], big[2500:]])
        streamed = service.admin.post("/api/v1/arenas", content=chunks)
        assert streamed.status_code == 413
        assert "2000 bytes" in streamed.json()["detail"]


def test_an_error_never_repeats_what_came(service: Running) -> None:
    answer = service.admin.post("/api/v1/session", json={"key": "duel_" + "s" * 300})
    assert answer.status_code == 422
    assert "ssss" not in answer.text


def test_many_wrong_fields_give_a_short_answer(service: Running) -> None:
    body = {**GOOD, **{f"field{n}": n for n in range(5000)}}
    answer = service.admin.post("/api/v1/arenas", json=body)
    assert answer.status_code == 422
    assert len(answer.content) < 20_000
    assert len(answer.json()["faults"]) <= 20


def test_long_item_ids_in_features_are_not_echoed_at_length(service: Running) -> None:
    arena = service.create(features="request", dim=1)
    body = {"features": {"z" * 100_000: [1.0], "alpha": [1.0]}}
    answer = service.admin.post(f"/api/v1/arenas/{arena}/asks", json=body)
    assert answer.status_code == 422
    assert len(answer.content) < 5000
