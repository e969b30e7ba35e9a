"""What an ask brings along: a prompt, what candidates say this time, a subset of the items; and datasets of prompts."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from duelist.service.arena.admin_commands import AddPrompts, NewPrompt
from duelist.service.arena.contexts import Content, Context, Message, Prompt
from duelist.service.arena.item_commands import SetRetired
from duelist.service.arena.items import Item
from duelist.service.client import Client
from duelist.service.dataset_files import rows_of_file
from duelist.service.errors import ConflictError, RefusedError
from duelist.service.state import ServiceState
from tests.support.arenas import Stage
from tests.support.services import Running

CHAT = Prompt("conversation", messages=(Message("user", "Why?"), Message("assistant", "Because."), Message("user", "And?")))


def check_replay(stage: Stage) -> None:
    """The fold over the events, and the state that a snapshot gives, are the state itself."""
    whole = stage.state.to_bytes()
    assert stage.replayed().to_bytes() == whole
    assert ServiceState.from_bytes(whole).to_bytes() == whole


def saying(*names: str, prompt: Prompt | None = None) -> Context:
    return Context(prompt, {name: Content(f"{name} says") for name in names})


@pytest.mark.parametrize("policy", ["FGTS", "Foresight", "RUCB", "Uniform"])
def test_asks_with_contents_of_their_own_teach_about_the_items_and_replay(policy: str) -> None:
    stage = Stage(items=6, policy={"kind": policy}, undo_ms=0)
    for turn in range(8):
        names = [f"i{(turn + step) % 6}" for step in range(3)]
        decision = stage.ask(context=saying(*names, prompt=CHAT), voter="ann")
        shown = {f"i{decision.first}", f"i{decision.second}"}
        assert shown < set(names)
        assert {one.content for one in stage.arena.contexts[decision.number].contents.values()} == {f"{n} says" for n in shown}
        stage.tell(decision, "left")
    stage.ask()
    assert stage.arena.learner.learnt == list(range(8))
    check_replay(stage)


def test_votes_on_brought_contents_count_like_votes_on_the_items() -> None:
    one, other = Stage(items=2, undo_ms=0), Stage(items=2, undo_ms=0)
    for turn in range(6):
        told = one.ask(context=saying("i0", "i1")), other.ask()
        for stage, decision in zip((one, other), told, strict=True):
            stage.tell(decision, "left" if (decision.first == 0) == (turn % 3 > 0) else "right")
    assert [(d.first, d.second) for d in map(one.arena.log.__getitem__, range(6))] == [
        (d.first, d.second) for d in map(other.arena.log.__getitem__, range(6))
    ]


def test_another_prompt_makes_it_another_pair_for_a_voter() -> None:
    stage = Stage(items=2)
    for text in ("one", "two"):
        decision = stage.ask(context=Context(Prompt("text", text)), voter="ann")
        assert decision.probability == decision.probability  # known: nothing had to be avoided
    assert stage.arena.prompt_of(1) == Prompt("text", "two")
    assert stage.arena.prompt_of(5) is None


def test_candidates_must_be_known_active_and_enough() -> None:
    stage = Stage(items=4)
    stage.commit(SetRetired("arena", "i3", True))
    with pytest.raises(ConflictError, match="retired"):
        stage.ask(context=saying("i0", "i3"))
    with pytest.raises(RefusedError, match="at least 2"):
        stage.ask(context=saying("i0"))
    words = [Item(f"i{n}", f"Item {n}", "words", features=(1.0, float(n))) for n in range(2)]
    with pytest.raises(RefusedError, match="learns from the words"):
        Stage(items=words, features="text", dim=2, embedder="hashing").ask(context=saying("i0", "i1"))


def rows(n: int, *names: str) -> list[NewPrompt]:
    return [NewPrompt(Prompt("text", f"p{i}"), {name: Content(f"{name} on p{i}") for name in names}) for i in range(n)]


def test_the_prompt_that_was_answered_least_comes_next() -> None:
    stage = Stage(items=3, undo_ms=0)
    stage.commit(AddPrompts("arena", "a", [*rows(4, "i0", "i1"), *rows(3, "Item 1", "new model")]))
    assert [item.id for item in stage.arena.table.items] == ["i0", "i1", "i2", "new-model"]
    answered = Counter[int]()
    for turn in range(21):
        decision = stage.ask()
        row = stage.events[-1].body["row"]
        assert answered[row] == min(answered[each] for each in range(7))
        assert {decision.first, decision.second} == ({0, 1} if row < 4 else {1, 3})
        assert stage.arena.content_of(decision.number, 1).content.endswith(f"on p{row % 4 if row < 4 else row - 4}")
        stage.tell(decision, ("left", "tie", "skip")[turn % 3])
        answered[row] += 1
    assert stage.arena.prompts.answered() == [3] * 7
    assert not stage.commit(AddPrompts("arena", "b", rows(1, "i0", "i1", "i2")))[1]
    assert stage.commit(AddPrompts("arena", "b", rows(1, "i0", "i1", "i2")))[1]  # the same batch counts once
    stage.ask()
    assert stage.events[-1].body["row"] == 7
    check_replay(stage)


def test_a_voter_sees_every_pair_of_every_prompt_once_before_any_twice() -> None:
    stage = Stage(items=3)
    stage.commit(AddPrompts("arena", "a", rows(3, "i0", "i1", "i2")))
    seen = Counter[tuple[int, frozenset[int]]]()
    for _ in range(9):
        decision = stage.ask(voter="ann")
        seen[stage.events[-1].body["row"], frozenset((decision.first, decision.second))] += 1
        stage.tell(decision, "left")
    assert len(seen) == 9
    stage.ask(voter="ann")  # and then again
    check_replay(stage)


def test_a_prompt_whose_models_are_retired_is_not_asked_about() -> None:
    stage = Stage(items=4)
    stage.commit(AddPrompts("arena", "a", [*rows(1, "i0", "i1"), *rows(1, "i2", "i3")]))
    stage.commit(SetRetired("arena", "i0", True))
    assert {stage.events[-1].body["row"] for _ in range(3) if stage.ask()} == {1}
    stage.commit(SetRetired("arena", "i2", True))
    with pytest.raises(ConflictError, match="no prompt"):
        stage.ask()


WIDE = 'prompt,small,large\nWhy?,So.,Because.\n"Two\nlines",x,\n'


def test_files_become_rows_and_errors_name_the_line() -> None:
    assert [row for _, row in rows_of_file(WIDE, "csv")] == [
        {"prompt": "Why?", "answers": {"small": "So.", "large": "Because."}},
        {"prompt": "Two\nlines", "answers": {"small": "x"}},
    ]
    long = "prompt,model,answer\np,a,1\nq,a,2\np,b,3\n"
    assert [row for _, row in rows_of_file(long, "csv")] == [
        {"prompt": "p", "answers": {"a": "1", "b": "3"}},
        {"prompt": "q", "answers": {"a": "2"}},
    ]
    assert list(rows_of_file('\n{"prompt": "p", "answers": {}}\n', "jsonl")) == [("line 2", {"prompt": "p", "answers": {}})]
    for text, kind, match in [
        ("{}\n{", "jsonl", "line 2"),
        ("[1]", "jsonl", "object"),
        ("a,b\n1,2", "csv", 'column "prompt"'),
        ("prompt,a,b\n1,2,3,4", "csv", "line 2"),
        ("prompt,model,answer\np,a,1\np,a,2", "csv", "second answer"),
    ]:
        with pytest.raises(RefusedError, match=match):
            list(rows_of_file(text, kind))


def test_a_dataset_becomes_an_arena_by_the_client(service: Running, tmp_path: Path) -> None:
    lines = [
        {"prompt": f"Question {n}", "answers": {"Small model": f"short {n}", "Large model": f"**long** {n}"}} for n in range(3)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    with Client(service.url, service.secret) as client:
        arena = client.create_arena("Two models", dataset=path)
        assert client.add_prompts(arena, [{"prompt": "q", "answers": {"Small model": "a", "third": "b"}}], batch="more") == 4
        asks = [client.ask(arena, voter="ann") for _ in range(4)]
        assert sorted(str(ask.prompt and ask.prompt["content"]) for ask in asks) == [
            "Question 0",
            "Question 1",
            "Question 2",
            "q",
        ]
        first = next(ask for ask in asks if "third" not in ask.items)
        assert set(first.items) == {"small-model", "large-model"}
        client.tell_winner(first, "large-model")
        assert client.leaderboard(arena)[0]["item"] == "large-model"
        exported = list(csv.DictReader(io.StringIO(client.export_csv(arena))))
    (row,) = (row for row in exported if row["winner"])
    assert row["prompt"] == (first.prompt or {})["content"]
    assert {row["left_content"], row["right_content"]} == set(first.contents)


def test_two_answers_generated_just_now_are_asked_about(service: Running) -> None:
    arena = service.create(prompt="For all")
    with Client(service.url, service.secret) as client:
        assert (client.ask(arena).prompt or {})["content"] == "For all"
        chat = {"format": "conversation", "messages": [{"role": "user", "content": "Hi"}]}
        said: dict[str, Any] = {"alpha": "I am A", "gamma": {"content": "I am *C*", "format": "markdown"}}
        ask = client.ask(arena, prompt=chat, candidates=said)
        assert set(ask.items) == {"alpha", "gamma"}
        assert set(ask.contents) == {"I am A", "I am *C*"}
        assert ask.prompt == {"format": "conversation", "content": "", "messages": chat["messages"]}
        client.tell(ask, "left", strength="much", comment="far better")
        why = client.explain(ask)
        assert why["prompt"] == ask.prompt
        assert {why["left"]["content"], why["right"]["content"]} == set(ask.contents)
        assert set(client.ask(arena, candidates=["beta", "gamma"]).items) == {"beta", "gamma"}
        rows_of = list(csv.DictReader(io.StringIO(client.export_csv(arena))))
    assert [row["prompt"] for row in rows_of] == ["For all", "user: Hi", "For all"]
    assert (rows_of[1]["strength"], rows_of[1]["comment"]) == ("much", "far better")


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"item": "alpha"}]},
        {"candidates": [{"item": "alpha"}, {"item": "alpha"}]},
        {"candidates": [{"item": "alpha", "format": "image", "content": "javascript:1"}, {"item": "beta"}]},
        {"prompt": {"format": "conversation", "content": "x"}},
        {"prompt": {"format": "image", "content": "no address"}},
        {"prompt": {"format": "text"}},
    ],
)
def test_questions_that_make_no_sense_are_refused(service: Running, body: dict[str, Any]) -> None:
    arena = service.create()
    assert service.admin.post(f"/api/v1/arenas/{arena}/asks", json=body).status_code == 422


def test_a_bad_line_of_an_upload_is_named_and_nothing_is_added(service: Running) -> None:
    arena = service.create()
    text = '{"prompt": "p", "answers": {"alpha": "a", "beta": "b"}}\n{"prompt": "p", "answers": {"alpha": "a"}}'
    answer = service.admin.post(f"/api/v1/arenas/{arena}/prompts", json={"batch": "x", "text": text, "file": "jsonl"})
    assert answer.status_code == 422
    assert "line 2 of the file: answers" in answer.json()["detail"]
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["prompts"] == 0


def test_slates_take_prompts_and_contents_too() -> None:
    stage = Stage(items=5, policy={"kind": "ListwiseFGTS", "choices": 3}, undo_ms=0)
    stage.commit(AddPrompts("arena", "a", rows(2, "i0", "i1", "i2", "i3")))
    for _ in range(4):
        decision = stage.ask(voter="ann")
        slate = stage.arena.learner.slates[decision.number].items
        assert set(slate) < {0, 1, 2, 3}
        stage.tell_ranking(decision, [f"i{slate[1]}"])
    decision = stage.ask(context=saying("i1", "i2", "i4", prompt=CHAT))
    assert set(stage.arena.contexts[decision.number].contents) == {1, 2, 4}
    assert stage.arena.prompts.answered() == [2, 2]
    check_replay(stage)


def test_features_and_contents_may_come_together() -> None:
    stage = Stage(items=3, features="request", dim=1, undo_ms=0)
    features = {"i0": [1.0], "i2": [0.5]}
    decision = stage.ask(features=features, context=saying("i0", "i2"), voter="ann")
    assert set(stage.arena.contexts[decision.number].contents) == {0, 2}
    stage.tell(decision, "left")
    with pytest.raises(RefusedError, match="features of its candidates"):
        stage.ask(features=features, context=saying("i0", "i1"))
    check_replay(stage)
