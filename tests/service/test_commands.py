"""Commands decide without HTTP, without a journal and without a clock."""

from __future__ import annotations

import pytest

from duelist.service.arena.commands import Ask, Tell, Undo
from duelist.service.arena.item_commands import AddItems, ImportVotes, SetRetired
from duelist.service.arena.items import Item
from duelist.service.commands import CreateArena, CreateKey, EnsureAdminKey, RevokeKey
from duelist.service.errors import ConflictError, NotFoundError
from duelist.service.keys import digest_of
from tests.support.arenas import Stage, spec

ITEMS = [Item("a", "A", "a"), Item("b", "B", "b")]


def test_deciding_changes_nothing() -> None:
    stage = Stage()
    waiting, answered = stage.ask(), stage.ask()
    stage.tell(answered, "left", voter="ann")
    before = stage.state.to_bytes()
    for command in (
        stage.next_ask(),
        Tell("arena", waiting.id, "right"),
        Undo("arena", answered.id, "ann"),
        AddItems("arena", ITEMS),
        SetRetired("arena", "i0", True),
        ImportVotes("arena", "march", [("i0", "i1", "first")]),
        CreateArena(spec(id="other"), ITEMS),
        CreateKey("a secret", "vote", "page", "arena"),
        EnsureAdminKey("a secret", given=False),
    ):
        assert command.decide(stage.state, 5) is not None
        assert stage.state.to_bytes() == before


@pytest.mark.parametrize(
    "command",
    [
        Ask("nowhere", 1, flipped=False),
        Tell("nowhere", "0-0000000000000001", "left"),
        Undo("nowhere", "0-0000000000000001", "ann"),
        AddItems("nowhere", ITEMS),
        SetRetired("nowhere", "i0", True),
        ImportVotes("nowhere", "march", []),
        CreateKey("a secret", "vote", "page", "nowhere"),
        RevokeKey("0123456789ab"),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_is_not_there_is_refused(command: Ask) -> None:
    with pytest.raises(NotFoundError, match="there is no"):
        command.decide(Stage().state, 0)


def test_an_ask_replies_with_both_items_as_they_are_shown() -> None:
    stage = Stage()
    for flipped in (False, True):
        asked = stage.commit(stage.next_ask(flipped=flipped))
        items = stage.arena.table.items
        assert (asked.left, asked.right) == (items[asked.decision.left], items[asked.decision.right])
        assert asked.decision.flipped == flipped


def test_an_answer_replies_until_when_it_can_be_undone() -> None:
    stage = Stage(undo_ms=500)
    assert stage.tell(stage.ask(at=0), "left", at=3) == (False, None)
    mine = stage.ask(at=10)
    assert stage.tell(mine, "left", at=20, voter="ann") == (False, 520)
    assert stage.tell(mine, "left", at=30, voter="ann") == (True, 520)
    undone = stage.commit(Undo("arena", mine.id, "ann"), at=40)
    assert undone.decision.outcome.name == "OPEN"


def test_items_without_an_id_get_a_free_one() -> None:
    stage = Stage()
    listed = stage.commit(AddItems("arena", [Item("", "I0", "x"), Item("", "Réponse 1", "x"), Item("mine", "Mine", "x")]))
    assert [each.item.id for each in listed[4:]] == ["i0-2", "reponse-1", "mine"]
    assert all(each.active for each in listed)


def test_an_arena_is_created_once() -> None:
    stage = Stage()
    with pytest.raises(ConflictError, match="already"):
        stage.commit(CreateArena(spec(), ITEMS))
    events = len(stage.events)
    assert stage.commit(CreateArena(spec(), ITEMS, if_missing=True)).items == 4
    assert len(stage.events) == events


def test_a_key_is_known_by_its_digest_until_it_is_revoked() -> None:
    stage = Stage()
    assert stage.commit(EnsureAdminKey("first secret", given=False))
    assert not stage.commit(EnsureAdminKey("second secret", given=False)), "there is one"
    assert stage.commit(EnsureAdminKey("given secret", given=True)), "the administrator asked for this one"
    assert not stage.commit(EnsureAdminKey("given secret", given=True))
    key = stage.commit(CreateKey("page secret", "vote", "page", "arena"), at=7)
    assert (key.role, key.scope, key.created_at, key.digest) == ("vote", "arena", 7, digest_of("page secret"))
    assert "secret" not in repr(CreateKey("page secret", "vote", "page")).replace("secret=", "")
    stage.commit(RevokeKey(key.id))
    assert digest_of("page secret") not in stage.state.by_digest
    first, given = stage.state.keys
    stage.commit(RevokeKey(first))
    with pytest.raises(ConflictError, match="last admin key"):
        stage.commit(RevokeKey(given))


def test_unknown_exploration_is_said_to_be_unknown() -> None:
    stage = Stage(policy={"kind": "Uniform"})
    stage.ask()
    assert stage.events[-1].body["explored"] is None
    assert stage.replayed().to_bytes() == stage.state.to_bytes()
