"""Voters are people: links, quotas, blinded items, removal, erasure, closing, deleting, and who did what."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from duelist.journal.memory import MemoryJournal
from duelist.service.arena.admin_commands import EraseVoter, RemoveAnswers, SetClosed
from duelist.service.client import Client, ClientError
from duelist.service.errors import ClosedError, NotFoundError, QuotaError
from duelist.service.insight.leaderboard import compute_leaderboard, leaderboard_inputs
from duelist.service.state import ServiceState
from tests.support.arenas import Stage
from tests.support.services import Running, running_service

SPECS: list[dict[str, Any]] = [
    {"policy": {"kind": "FGTS"}},
    {"policy": {"kind": "FGTS", "discount": 0.9}},
    {"policy": {"kind": "RUCB"}},
    {"policy": {"kind": "ListwiseFGTS", "choices": 3}},
    {"policy": {"kind": "CoLSTIM"}, "features": "request", "dim": 2},
]
FEATURES = {f"i{n}": [1.0, n / 4] for n in range(5)}


def vote(stage: Stage, turns: list[tuple[int, str, str]], *, leave_out: str = "") -> None:
    """Ask and answer; answers of one voter may be left out, though that voter is asked."""
    for at, voter, answer in turns:
        features = FEATURES if stage.arena.spec.features == "request" else None
        decision = stage.ask(at, voter=voter, features=features)
        if voter == leave_out:
            continue
        if decision.number in stage.arena.learner.slates:
            best = stage.arena.learner.slates[decision.number].items[0]
            stage.tell_ranking(decision, [f"i{best}"])
        else:
            stage.tell(decision, answer, at)


@pytest.mark.parametrize("settings", SPECS, ids=lambda one: str(one["policy"]["kind"]))
def test_what_is_left_is_what_the_others_taught(settings: dict[str, Any]) -> None:
    stage = Stage(items=5, undo_ms=5, **settings)
    random = np.random.default_rng(8)
    turns = [
        (10 * n, str(random.choice(["ann", "bob", "eve"])), str(random.choice(["left", "right", "tie"]))) for n in range(30)
    ]
    vote(stage, [*turns, (301, "eve", "left")])  # the last one can still be undone
    assert stage.commit(RemoveAnswers("arena", "eve"), 302)
    assert not stage.commit(RemoveAnswers("arena", "eve"), 302)
    stage.commit(SetClosed("arena", True), 400)
    arena = stage.arena
    # An arena in which eve was asked the same and said nothing: her answers are dropped from the events.
    eves = {event.body["number"] for event in stage.events if event.kind == "asked" and event.body["voter"] == "eve"}
    other = ServiceState()
    for event in stage.events:
        if event.kind not in ("removed", "closed") and not (event.kind == "told" and event.body["number"] in eves):
            other.apply(event)
    without = other.arena("arena")
    without.settle(400)
    assert arena.learner.learnt == without.learner.learnt
    assert arena.n_votes == without.n_votes == sum(voter != "eve" for _, voter, _ in turns)
    mine, theirs = (compute_leaderboard(leaderboard_inputs(one)) for one in (arena, without))
    assert [rank[7:] for rank in mine.ranks] == [rank[7:] for rank in theirs.ranks]
    if settings["policy"]["kind"] != "ListwiseFGTS":  # which draws from its own chains, started again here
        np.testing.assert_array_equal(mine.theta, theirs.theta)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()
    assert ServiceState.from_bytes(stage.state.to_bytes()).to_bytes() == stage.state.to_bytes()
    assert arena.counts.of_voter(arena.voters["eve"]) == 0


def test_after_a_removal_a_restart_goes_on_with_the_same_pairs() -> None:
    stage = Stage(items=9, undo_ms=0)
    vote(stage, [(n, "ann" if n % 2 else "bob", "left") for n in range(12)])
    stage.commit(RemoveAnswers("arena", "ann"), 20)
    vote(stage, [(30 + n, "cid", "right") for n in range(3)])
    loaded = ServiceState.from_bytes(stage.state.to_bytes())
    for _ in range(3):
        command = stage.next_ask()
        event = command.decide(loaded, 50)
        assert event is not None
        loaded.apply(event)
        decision = stage.commit(command, 50).decision
        assert (event.body["first"], event.body["second"]) == (decision.first, decision.second)


def test_an_erased_name_is_nowhere_in_the_state_and_votes_stay() -> None:
    stage = Stage(items=4, undo_ms=0)
    vote(stage, [(n, "ann.smith", "left") for n in range(4)])
    votes = stage.arena.n_votes
    assert stage.commit(EraseVoter("arena", "ann.smith"), 9) == "erased-0"
    assert stage.arena.n_votes == votes
    assert "ann.smith" not in json.dumps(stage.events[-1].body)
    assert b"ann.smith" not in stage.state.to_bytes()
    assert list(stage.arena.voters) == ["erased-0"]
    with pytest.raises(NotFoundError):
        stage.commit(EraseVoter("arena", "ann.smith"), 9)
    vote(stage, [(20, "ann.smith", "left")])
    assert list(stage.arena.voters) == ["erased-0", "ann.smith"]
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_a_voter_quota_counts_answers_that_stand() -> None:
    stage = Stage(items=4, voter_quota=2)
    first = stage.ask(0, voter="ann")
    second, third = stage.ask(1, voter="ann"), stage.ask(2, voter="ann")
    stage.tell(first, "left", 3)
    stage.tell(second, "skip", 4)
    for attempt in (lambda: stage.ask(5, voter="ann"), lambda: stage.tell(third, "left", 5)):
        with pytest.raises(QuotaError, match="2 answers"):
            attempt()
    stage.tell(second, "skip", 6)  # again: counts once, and is no new answer
    stage.undo(second, 6, "ann")
    stage.tell(third, "left", 7)
    stage.ask(8, voter="bob")
    stage.commit(RemoveAnswers("arena", "ann"), 9)
    stage.ask(10, voter="ann")


def test_a_closed_arena_takes_nothing_until_it_is_opened_again() -> None:
    stage = Stage(items=3)
    decision = stage.ask()
    stage.tell(other := stage.ask(), "left", 1, "ann")
    stage.commit(SetClosed("arena", True), 2)
    for attempt in (
        lambda: stage.ask(3),
        lambda: stage.tell(decision, "left", 3),
        lambda: stage.undo(other, 3, "ann"),
    ):
        with pytest.raises(ClosedError):
            attempt()
    assert stage.state.arena("arena").summary().closed
    stage.commit(SetClosed("arena", False), 4)
    stage.tell(decision, "left", 5)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_a_named_link_votes_as_its_voter_up_to_its_quota(service: Running) -> None:
    arena = service.create(undo_seconds=60)
    with Client(service.url, service.secret) as admin:
        secret = admin.make_key("Ann Smith", arena=arena, voter="ann", quota=2)
        with Client(service.url, secret) as ann:
            for _ in range(2):
                ask = ann.ask(arena, voter="somebody-else")
                ann.tell(ask, "left", voter="a-third")
            with pytest.raises(ClientError, match="2 answers") as error:
                ann.ask(arena)
            assert error.value.status == 403
            ann.undo(ask, voter="whoever")
            ann.tell(ask, "right")
        assert admin.voters(arena) == [{"voter": "ann", "answers": 2, "removed": 0}]
        (link,) = (key for key in service.admin.get("/api/v1/keys").json()["keys"] if key["arena"] == arena)
        assert (link["voter"], link["quota"], link["answers"], link["label"]) == ("ann", 2, 2, "Ann Smith")
        assert admin.remove_answers(arena, "ann")
        assert admin.voters(arena) == [{"voter": "ann", "answers": 0, "removed": 2}]
        assert admin.erase_voter(arena, "ann") == "erased-0"
        assert "removed" in admin.export_csv(arena)
    for body in ({"role": "read", "voter": "x", "arena": arena}, {"voter": "x"}):
        assert service.admin.post("/api/v1/keys", json={"label": "x", **body}).status_code == 422


def test_voters_of_a_blind_arena_learn_nothing_but_contents(service: Running) -> None:
    items = [{"name": "Secret brand one", "content": "x"}, {"name": "Secret brand two", "content": "y"}]
    arena, slates = (
        service.create(items=items),
        service.create(
            items=[*items, {"name": "Secret brand three", "content": "z"}],
            policy={"name": "ListwiseFGTS", "settings": {"choices": 3}},
        ),
    )
    secret = service.admin.post("/api/v1/keys", json={"label": "web"}).json()["secret"]
    with service.with_key(secret) as voter, Client(service.url, secret) as client:
        for place in (arena, slates):
            made = voter.post(f"/api/v1/arenas/{place}/asks")
            again = voter.get(f"/api/v1/arenas/{place}/asks/{made.json()['id']}")
            for answer in (made, again, voter.get(f"/api/v1/arenas/{place}")):
                assert "ecret" not in answer.text
            assert made.json()["probability"] is None
        ask = client.ask(arena)
        client.tell_winner(ask, ask.right)
        slate = client.ask(slates)
        client.tell_ranking(slate, slate.items[::-1])
        told = voter.get(f"/api/v1/arenas/{slates}/asks/{slate.id}").json()
        assert told["ranking"] == list(slate.items[::-1])
    export = service.admin.get(f"/api/v1/arenas/{arena}/votes").text.splitlines()
    winner = next(line.split(",") for line in export if line.startswith(ask.id))
    assert winner[6] == "right"
    ranked = service.admin.get(f"/api/v1/arenas/{slates}/asks/{slate.id}").json()
    by_content = {one["content"]: one["item"] for one in ranked["candidates"]}
    assert ranked["ranking"] == [by_content[content] for content in slate.contents[::-1]]
    plain = service.create(items=items, blind=False)
    with service.with_key(secret) as voter:
        assert "secret-brand" in voter.post(f"/api/v1/arenas/{plain}/asks").text


def test_a_deleted_arena_is_gone_with_its_links(service: Running) -> None:
    arena = service.create(id="to-be-deleted")
    with Client(service.url, service.secret) as admin:
        secret = admin.make_key("web", arena=arena)
        with service.with_key(secret) as voter:
            assert voter.delete(f"/api/v1/arenas/{arena}").status_code == 403
            assert voter.patch(f"/api/v1/arenas/{arena}", json={"closed": True}).status_code == 403
            admin.set_closed(arena, closed=True)
            assert voter.post(f"/api/v1/arenas/{arena}/asks").status_code == 409
            admin.delete_arena(arena)
            assert voter.get("/api/v1/arenas").status_code == 401
    assert service.admin.get(f"/api/v1/arenas/{arena}").status_code == 404
    answer = service.admin.post("/api/v1/arenas", json={"id": arena, "name": "x", "items": [{"name": "a"}, {"name": "b"}]})
    assert answer.status_code == 409
    assert "was deleted" in answer.json()["detail"]


def test_every_event_says_who_did_it_and_the_audit_log_shows_it() -> None:
    journal = MemoryJournal()
    with running_service(journal) as service, Client(service.url, service.secret) as admin:
        arena = service.create()
        admin.add_items(arena, ["Delta"])
        secret = admin.make_key("web", arena=arena, voter="ann")
        with Client(service.url, secret) as ann:
            ask = ann.ask(arena)
            ann.tell(ask, "left")
            ann.undo(ask, voter="ann")
        admin.set_goal(arena, "best")
        admin.set_active(arena, "delta", active=False)
        service.create()
        events = list(journal.read())
        keys = {key["id"]: key["label"] for key in service.admin.get("/api/v1/keys").json()["keys"]}
        assert [keys.get(event.body["by"], event.body["by"]) for event in events] == [
            "service",
            *["given key"] * 3,
            *["web"] * 3,
            *["given key"] * 3,
        ]
        entries = admin.audit(arena)
        assert [entry["kind"] for entry in entries] == ["retired", "goal", "key", "added", "created"]
        assert [entry["label"] for entry in entries] == ["given key"] * 5
        assert [entry["kind"] for entry in admin.audit(arena, votes=True)][2:5] == ["undone", "told", "asked"]
        assert [entry["position"] for entry in admin.audit()] == [10, 9, 8, 4, 3, 2, 1]
        digests = [event.body["digest"] for event in events if event.kind == "key"]
        assert not any(digest in json.dumps(admin.audit()) for digest in digests)
        page = service.admin.get("/api/v1/audit?limit=2").json()
        rest = service.admin.get(f"/api/v1/audit?limit=5&before={page['next']}").json()
        assert [entry["position"] for entry in page["entries"] + rest["entries"]] == [10, 9, 8, 4, 3, 2, 1]
