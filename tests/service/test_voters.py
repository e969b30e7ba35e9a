"""A voter who is named in an ask gets no pair twice while there are others, in memory, on a journal and over HTTP."""

from __future__ import annotations

import csv
import io
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from duelist.service.arena.item_commands import AddItems, SetRetired
from duelist.service.arena.items import Item
from duelist.service.client import Client
from duelist.service.errors import ConflictError
from duelist.service.state import ServiceState, from_saved, to_saved
from tests.support.arenas import Stage
from tests.support.services import Running

POLICIES: list[dict[str, Any]] = [
    {"kind": "FGTS"},
    {"kind": "FGTS", "same_arm": "allow"},
    {"kind": "CoLSTIM"},
    {"kind": "Foresight"},
    {"kind": "VACDB"},
    {"kind": "Uniform"},
]


def play(stage: Stage, counts: Counter[tuple[str, frozenset[int]]], asks: int, seed: int) -> None:
    """Ask and answer in the name of voters, and check every pair against a plain count."""
    rng, at = np.random.default_rng(seed), stage.state.latest
    for _ in range(asks):
        at += int(rng.integers(1, 6000))
        voter = str(rng.choice(["ann", "bob"]))
        decision = stage.ask(at, voter=voter, flipped=bool(rng.integers(2)))
        pairs = [frozenset(pair) for pair in combinations(stage.arena.table.active, 2)]
        shown = frozenset((decision.first, decision.second))
        assert counts[voter, shown] == min(counts[voter, pair] for pair in pairs)
        counts[voter, shown] += 1
        if rng.random() < 0.7:
            stage.tell(decision, str(rng.choice(["left", "right", "tie", "skip"])), at)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_least_shown_pairs_come_first_while_items_come_and_go(policy: dict[str, Any]) -> None:
    stage, counts = Stage(items=5, policy=policy), Counter[tuple[str, frozenset[int]]]()
    play(stage, counts, 24, seed=0)
    stage.commit(SetRetired("arena", "i1", True))
    play(stage, counts, 10, seed=1)
    stage.commit(AddItems("arena", [Item(f"n{n}", f"New {n}", "new") for n in range(5)]))  # the dimension doubles
    play(stage, counts, 20, seed=2)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()
    loaded = ServiceState.from_bytes(stage.state.to_bytes())
    assert loaded.to_bytes() == stage.state.to_bytes()
    event = stage.next_ask(voter="ann").decide(loaded, loaded.latest)
    assert event is not None
    after = stage.ask(stage.state.latest, voter="ann")
    assert (event.body["first"], event.body["second"]) == (after.first, after.second)


def test_without_a_voter_nothing_is_avoided_or_kept() -> None:
    named, plain = Stage(items=3, seed=4), Stage(items=3, seed=4)
    first = named.ask(voter="ann")
    again = plain.ask()
    assert (first.first, first.second) == (again.first, again.second)
    pairs = {frozenset((one.first, one.second)) for one in (named.ask(voter="ann") for _ in range(2))}
    assert len(pairs | {frozenset((first.first, first.second))}) == 3
    assert len(plain.arena.seen.to_saved()["pairs"]) == 0
    assert "voter" not in plain.events[-1].body


def test_where_features_come_with_the_ask_other_features_are_another_pair() -> None:
    stage = Stage(features="request", dim=2, items=2)
    one, other = {"i0": [1.0, 0.0], "i1": [0.0, 1.0]}, {"i0": [1.0, 1.0], "i1": [0.0, 1.0]}
    three = {**one, "i1": [0.0, 2.0]}
    stage.ask(features=one, voter="ann")
    assert stage.ask(features=other, voter="ann").probability > 0.0  # nothing to avoid
    assert stage.ask(features=three, voter="ann").probability > 0.0
    assert stage.ask(features=one, voter="ann").probability > 0.0  # the one pair there is
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_the_probability_of_a_pair_that_stands_in_is_unknown() -> None:
    stage = Stage(items=3)
    known = [stage.ask(voter="ann").probability for _ in range(4)]
    assert [np.isnan(probability) for probability in known] == [False, True, True, False]


def test_an_answer_without_a_voter_is_that_of_who_was_asked() -> None:
    stage = Stage(items=4)
    decision = stage.ask(0, voter="ann")
    assert stage.tell(decision, "left", 0).undo_until == 10_000
    stage.undo(decision, 5, "ann")
    assert stage.tell(decision, "right", 6).undo_until == 10_006  # ann's again
    other = stage.ask(7, voter="ann")
    stage.tell(other, "left", 8, voter="bob")
    with pytest.raises(ConflictError, match="another voter"):
        stage.undo(other, 9, "ann")
    nobody = stage.ask(10)
    assert stage.tell(nobody, "left", 10).undo_until is None
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_a_snapshot_from_before_voters_were_asked_is_read() -> None:
    stage = Stage(items=3)
    stage.crowd(10)
    saved = to_saved(stage.arena)
    del saved["seen"], saved["log"]["asker"]
    arena = from_saved(saved)
    assert to_saved(arena)["log"]["asker"].tolist() == [-1] * len(arena.log)
    assert len(arena.log) == len(stage.arena.log)


def test_voters_over_http_and_by_the_client(service: Running) -> None:
    arena = service.create(items=[{"name": name} for name in "abcd"])
    pairs = []
    for _ in range(6):
        ask = service.ask(arena, voter="ann")
        pairs.append(frozenset((ask["left"]["item"], ask["right"]["item"])))
        service.tell(arena, ask["id"], "left")
    assert len(set(pairs)) == 6
    with Client(service.url, service.secret) as client:
        asks = [client.ask(arena, voter="bob") for _ in range(6)]
        client.tell(asks[0], "right")
    assert len({frozenset((ask.left, ask.right)) for ask in asks}) == 6
    rows = list(csv.DictReader(io.StringIO(service.admin.get(f"/api/v1/arenas/{arena}/votes").text)))
    assert [row["voter"] for row in rows] == ["ann"] * 6 + ["bob"] + [""] * 5
    assert service.admin.post(f"/api/v1/arenas/{arena}/asks", json={"voter": "no spaces"}).status_code == 422
