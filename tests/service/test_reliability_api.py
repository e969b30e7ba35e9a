"""Which voters can be trusted, over HTTP."""

from __future__ import annotations

import numpy as np

from tests.support.services import Running


def test_a_voter_who_means_the_opposite_is_named_and_the_left_is_found(service: Running) -> None:
    arena = service.create()
    path = f"/api/v1/arenas/{arena}/reliability"
    fresh = service.admin.get(path).json()
    assert (fresh["rows"], fresh["left"], fresh["answers"]) == ([], None, 0)
    rng = np.random.default_rng(0)
    for n in range(180):
        voter = ("ann", "bob", "devil")[n % 3]
        ask = service.ask(arena, voter=voter)
        better = "left" if ask["left"]["item"] < ask["right"]["item"] else "right"
        if voter == "devil":
            better = {"left": "right", "right": "left"}[better]
        # One vote in four goes to the left, whatever stands there.
        service.tell(arena, ask["id"], "left" if rng.random() < 0.25 else better, voter=voter)
    service.tell(arena, service.ask(arena)["id"], "tie")
    found = service.admin.get(path).json()
    assert found["rows"][0]["voter"] == "devil", "the least reliable comes first"
    assert {row["voter"] for row in found["rows"]} == {"ann", "bob", "devil"}, "and nobody without a name"
    assert found["rows"][0]["high"] < 0.0 < found["rows"][1]["low"]
    assert [row["votes"] for row in found["rows"]] == [60, 60, 60]
    assert found["left"]["low"] > 0.0
    assert found["answers"] == 181
    assert found["spread"] > 0.3
    assert service.admin.get(path).json() == found


def test_imports_count_without_a_side_and_readers_alone_may_look(service: Running) -> None:
    arena = service.create(features="request", dim=2)
    ask = service.ask(arena, features={"alpha": [1, 0], "beta": [0, 1], "gamma": [1, 1]}, voter="ann")
    service.tell(arena, ask["id"], "left")
    found = service.admin.get(f"/api/v1/arenas/{arena}/reliability").json()
    assert [(row["voter"], row["votes"]) for row in found["rows"]] == [("ann", 1)]
    other = service.create()
    votes = [{"first": "alpha", "second": "beta", "outcome": "first"}] * 3
    service.admin.post(f"/api/v1/arenas/{other}/imports", json={"batch": "one", "votes": votes})
    imported = service.admin.get(f"/api/v1/arenas/{other}/reliability").json()
    assert (imported["rows"], imported["left"], imported["answers"]) == ([], None, 3)
    assert service.anonymous.get(f"/api/v1/arenas/{other}/reliability").status_code == 401
    assert service.admin.get("/api/v1/arenas/none/reliability").status_code == 404


def test_slates_have_no_reliability(service: Running) -> None:
    arena = service.create(policy={"name": "ListwiseFGTS", "settings": {"choices": 3}})
    answer = service.admin.get(f"/api/v1/arenas/{arena}/reliability")
    assert answer.status_code == 409
    assert "pairs" in answer.text
