"""The arena as a fold over its events."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.errors import SavedStateError
from duelist.service.arena.item_commands import AddItems, ImportVotes, SetRetired
from duelist.service.arena.items import Item
from duelist.service.arena.outcomes import Outcome
from duelist.service.errors import ConflictError, NotFoundError, RefusedError
from duelist.service.state import ServiceState, check_playable
from tests.support.arenas import Stage, spec


def test_a_replay_of_the_events_is_the_same_state_bit_for_bit() -> None:
    stage = Stage()
    stage.crowd(150)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_a_snapshot_at_any_moment_goes_on_exactly() -> None:
    stage = Stage()
    stage.crowd(60)
    middle, events_so_far = stage.state.to_bytes(), len(stage.events)
    stage.crowd(60, seed=1)
    restored = ServiceState.from_bytes(middle)
    assert restored.to_bytes() == middle
    for event in stage.events[events_so_far:]:
        restored.apply(event)
    assert restored.to_bytes() == stage.state.to_bytes()


def test_open_asks_count_and_are_the_same_after_a_snapshot_and_in_a_replay() -> None:
    stage = Stage(policy={"kind": "MaxInP"})
    stage.crowd(40)
    at = stage.state.latest
    asked = [stage.ask(at) for _ in range(4)]
    shown = [frozenset((one.first, one.second)) for one in asked]
    assert len(set(shown)) > 1
    learner = stage.arena.learner
    assert list(learner.open)[-4:] == list(range(len(stage.arena.log) - 4, len(stage.arena.log)))
    restored = ServiceState.from_bytes(stage.state.to_bytes())
    for other in (restored, stage.replayed()):
        again = other.arenas[stage.arena.spec.id].learner
        assert again.open == learner.open
        assert again.propose(again.offer(None)).shown.first == learner.propose(learner.offer(None)).shown.first


def test_a_snapshot_of_something_else_is_refused() -> None:
    with pytest.raises(SavedStateError):
        ServiceState.from_bytes(b"not a snapshot")


def test_the_same_answer_again_is_nothing_and_another_is_a_conflict() -> None:
    stage = Stage()
    decision = stage.ask()
    stage.tell(decision, "left")
    before = stage.state.to_bytes()
    assert stage.tell(decision, "left", at=5).repeated
    with pytest.raises(ConflictError, match="answered before"):
        stage.tell(decision, "right", at=5)
    assert stage.state.to_bytes() == before


@pytest.mark.parametrize("flipped", [False, True])
def test_left_and_right_mean_what_the_voter_saw(flipped: bool) -> None:
    stage = Stage()
    decision = stage.ask(flipped=flipped)
    assert (decision.left == decision.second) == flipped
    stage.tell(decision, "left")
    assert stage.arena.log[decision.number].outcome is (Outcome.SECOND if flipped else Outcome.FIRST)


def test_the_counts_of_answers_are_those_of_the_log_through_votes_undos_and_a_restart() -> None:
    stage = Stage()
    stage.crowd(80)
    undone = stage.ask()
    stage.tell(undone, "left", voter="v")
    stage.undo(undone, 1, "v")
    for arena in (stage.arena, ServiceState.from_bytes(stage.state.to_bytes()).arena(stage.arena.spec.id)):
        outcomes = arena.log.column("outcome").tolist()
        assert [arena.log.count(one) for one in Outcome] == [outcomes.count(one) for one in Outcome]
        assert arena.n_learnable == sum(outcomes.count(one) for one in (Outcome.FIRST, Outcome.SECOND, Outcome.TIE))
        assert arena.n_votes == len(outcomes) - outcomes.count(Outcome.OPEN) - outcomes.count(Outcome.SKIP)


def test_an_answer_without_a_voter_is_learnt_at_once_and_cannot_be_undone() -> None:
    stage = Stage()
    decision = stage.ask()
    stage.tell(decision, "left")
    assert stage.arena.learner.lane.state.history.rounds == 1
    with pytest.raises(ConflictError, match="no longer"):
        stage.undo(decision, 1, "anybody")


def test_an_answer_of_a_voter_is_learnt_when_its_time_is_over() -> None:
    stage = Stage()
    stage.tell(stage.ask(at=0), "left", at=0, voter="ann")
    stage.ask(at=9_999)
    assert stage.arena.learner.lane.state.history.rounds == 0
    stage.ask(at=10_000)
    assert stage.arena.learner.lane.state.history.rounds == 1


def test_an_answer_of_a_voter_is_learnt_when_the_same_voter_answers_again() -> None:
    stage = Stage()
    stage.tell(stage.ask(), "left", voter="ann")
    stage.tell(stage.ask(), "left", voter="ben")
    assert stage.arena.learner.lane.state.history.rounds == 0
    stage.tell(stage.ask(), "right", voter="ann")
    assert stage.arena.learner.lane.state.history.rounds == 1


def test_undo_is_for_the_voter_who_answered_and_in_time() -> None:
    stage = Stage()
    decision = stage.ask()
    with pytest.raises(ConflictError, match="no answer"):
        stage.undo(decision, 0, "ann")
    stage.tell(decision, "left", at=0, voter="ann")
    with pytest.raises(ConflictError, match="another voter"):
        stage.undo(decision, 1, "ben")
    stage.undo(decision, 2, "ann")
    assert stage.arena.log[decision.number].outcome is Outcome.OPEN
    stage.tell(decision, "right", at=3, voter="ann")
    with pytest.raises(ConflictError, match="no longer"):
        stage.undo(decision, 10_003, "ann")
    assert stage.arena.learner.lane.state.history.rounds == 1, "asking too late settled it"


def test_an_undone_answer_leaves_no_trace_in_what_was_learnt() -> None:
    undone, never = Stage(), Stage()
    for stage in (undone, never):
        decision = stage.ask(at=0)
        if stage is undone:
            stage.tell(decision, "left", at=1, voter="ann")
            stage.undo(decision, at=2, voter="ann")
        stage.tell(decision, "right", at=3)
    left, right = undone.arena.learner.lane.state, never.arena.learner.lane.state
    assert left.history.outcomes.tolist() == right.history.outcomes.tolist()
    assert (left.chains.position == right.chains.position).all()


def test_a_repeated_request_id_finds_the_same_decision() -> None:
    stage = Stage()
    first = stage.commit(stage.next_ask(request="r1"))
    assert not first.repeated
    assert stage.commit(stage.next_ask(request="r1")) == first._replace(repeated=True)
    assert not stage.commit(stage.next_ask(request="r2")).repeated
    assert not stage.commit(stage.next_ask()).repeated
    assert not stage.commit(stage.next_ask()).repeated


@pytest.mark.parametrize("name", ["", "7", "0-0000000000000002", "0-1", "x-0000000000000001", "٣-0000000000000001", "-1-1"])
def test_a_decision_is_found_only_by_its_whole_id(name: str) -> None:
    stage = Stage()
    assert stage.ask().id == "0-0000000000000001"
    with pytest.raises(NotFoundError):
        stage.arena.decision(name)


def test_a_retired_item_is_not_shown_and_what_was_learnt_of_it_stays() -> None:
    stage = Stage(items=3)
    waiting = stage.ask()
    stage.commit(SetRetired("arena", "i0", True))
    for _ in range(20):
        decision = stage.ask()
        assert {decision.first, decision.second} == {1, 2}
    stage.tell(waiting, "left")
    assert stage.arena.learner.lane.state.history.rounds == 1, "a pair shown before still counts"
    with pytest.raises(ConflictError, match="2 active"):
        stage.commit(SetRetired("arena", "i1", True))
    assert SetRetired("arena", "i0", True).decide(stage.state, 0) is None
    stage.commit(SetRetired("arena", "i0", False))
    assert any(0 in (d.first, d.second) for d in (stage.ask() for _ in range(40)))
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_adding_items_beyond_the_room_keeps_every_vote() -> None:
    stage = Stage(items=7)
    stage.crowd(60)
    learnt = stage.arena.learner.lane.state.history.rounds
    waiting = stage.ask(at=stage.state.latest)
    stage.commit(AddItems("arena", [Item(f"n{n}", f"New {n}", "x") for n in range(5)]), at=stage.state.latest)
    assert (stage.arena.learner.lane.dim, stage.arena.learner.lane.generation) == (16, 1)
    assert stage.arena.learner.lane.state.history.rounds == learnt
    stage.tell(waiting, "left", at=stage.state.latest)
    assert stage.arena.learner.lane.state.history.rounds == learnt + 1
    stage.crowd(40, seed=2)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()
    assert ServiceState.from_bytes(stage.state.to_bytes()).to_bytes() == stage.state.to_bytes()


def test_items_that_do_not_fit_are_refused() -> None:
    stage = Stage()
    with pytest.raises(ConflictError, match="already"):
        stage.commit(AddItems("arena", [Item("i0", "again", "x")]))
    with pytest.raises(ConflictError, match="already"):
        stage.commit(AddItems("arena", [Item("n", "n", "x"), Item("n", "n", "x")]))
    with pytest.raises(RefusedError, match="0 features"):
        stage.commit(AddItems("arena", [Item("n", "n", "x", "text", (1.0,))]))
    with pytest.raises(ConflictError, match="at most 1024"):
        stage.commit(AddItems("arena", [Item(f"n{n}", "n", "x") for n in range(1024)]))


def test_imported_votes_are_learnt_once_a_batch() -> None:
    stage = Stage()
    votes = [("i0", "i1", "first"), ("i2", "i1", "second"), ("i0", "i2", "tie")]
    assert stage.commit(ImportVotes("arena", "march", votes)) is False
    assert stage.arena.learner.lane.state.history.rounds == 3
    assert stage.commit(ImportVotes("arena", "march", votes), at=1) is True
    with pytest.raises(ConflictError, match="3 votes; got 1"):
        stage.commit(ImportVotes("arena", "march", votes[:1]), at=1)
    with pytest.raises(RefusedError, match="itself"):
        stage.commit(ImportVotes("arena", "april", [("i0", "i0", "first")]), at=1)
    with pytest.raises(NotFoundError):
        stage.commit(ImportVotes("arena", "april", [("i0", "nobody", "first")]), at=1)
    stage.commit(SetRetired("arena", "i3", True), at=2)
    stage.commit(ImportVotes("arena", "april", [("i3", "i0", "first")]), at=3)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_features_with_every_ask_are_kept_until_the_answer() -> None:
    stage = Stage(features="request", dim=2)
    with pytest.raises(RefusedError, match="needs the features"):
        stage.ask()
    with pytest.raises(RefusedError, match="length 2"):
        stage.ask(features={"i0": [1.0], "i1": [1.0, 2.0]})
    with pytest.raises(RefusedError, match="at least two"):
        stage.ask(features={"i0": [1.0, 0.0]})
    with pytest.raises(NotFoundError):
        stage.ask(features={"i0": [1.0, 0.0], "who": [1.0, 0.0]})
    rng = np.random.default_rng(0)
    waiting = []
    for _ in range(30):
        features = {f"i{n}": rng.normal(size=2).tolist() for n in rng.permutation(4)[:3]}
        decision = stage.ask(features=features)
        shown = {f"i{n}" for n in (decision.first, decision.second)}
        assert shown <= set(features)
        waiting.append(decision)
    for decision in waiting[::2]:
        stage.tell(decision, "left")
    assert stage.arena.learner.lane.state.history.rounds == 15
    assert stage.replayed().to_bytes() == stage.state.to_bytes()
    assert ServiceState.from_bytes(stage.state.to_bytes()).to_bytes() == stage.state.to_bytes()
    stage.commit(SetRetired("arena", "i0", True))
    with pytest.raises(ConflictError, match="retired"):
        stage.ask(features={"i0": [1.0, 0.0], "i1": [0.0, 1.0]})


def test_an_ask_dropped_for_room_is_refused_and_not_learnt() -> None:
    stage = Stage(features="request", dim=1)
    assert stage.arena.learner.request_features is not None
    stage.arena.learner.request_features.most_waiting = 2
    first, *_ = [stage.ask(features={"i0": [1.0], "i1": [0.5]}) for _ in range(3)]
    with pytest.raises(ConflictError, match="dropped"):
        stage.tell(first, "left")


def test_every_ask_writes_down_how_it_came_about() -> None:
    stage = Stage()
    stage.crowd(40)
    asked = [event.body for event in stage.events if event.kind == "asked"]
    for number, event in enumerate(asked):
        assert event["number"] == number
        assert event["policy"] == "FGTS"
        assert event["version"]
        assert event["stream"] == [0, number]
        assert 0.0 < event["probability"] <= 1.0
        assert event["explored"] in (0.0, 0.5, 1.0)
        assert len(event["drawn"]) == 2


def test_a_pair_that_was_considered_but_never_asked_leaves_no_trace() -> None:
    stage = Stage()
    stage.crowd(30)
    at = stage.state.latest
    stage.next_ask().decide(stage.state, at)  # decided, and then not written down
    stage.tell(stage.ask(at), "left", at)
    stage.next_ask().decide(stage.state, at)
    stage.commit(SetRetired("arena", "i3", True), at=at)
    elsewhere = stage.replayed()  # the next ask is decided in another process
    event = stage.next_ask().decide(elsewhere, at)
    assert event is not None
    stage.events.append(event)
    stage.state.apply(event)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_a_policy_that_does_not_draw_says_nothing_of_draws() -> None:
    stage = Stage(policy={"kind": "Uniform"})
    decision = stage.ask()
    assert decision.probability == pytest.approx(2 / (4 * 3))
    assert math.isnan(decision.draw_1_first)
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_settings_that_cannot_play_are_refused_before_the_arena_exists() -> None:
    items = [Item("a", "A", "a", "text", (1.0,)), Item("b", "B", "b", "text", (-1.0, 1.0))]
    with pytest.raises(RefusedError, match="2 features"):
        check_playable(spec(features="given", dim=2), items)
    with pytest.raises(RefusedError, match="cannot play"):
        check_playable(spec(policy={"kind": "FGTS", "alpha": [0.1, 0.2, 0.3]}), [Item("a", "A", "a"), Item("b", "B", "b")])
