"""Goals and verdicts: what is asked for their sake, when they are decided, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.posteriors import Goal, deciding_pairs, pair_verdict
from duelist.service.arena.admin_commands import SetGoal
from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.item_commands import ImportVotes, SetRetired
from duelist.service.client import Client, ClientError
from duelist.service.errors import ConflictError, RefusedError
from duelist.service.insight.verdict import ArenaVerdict, arena_verdict, verdict_inputs
from duelist.service.state import ServiceState
from tests.support.arenas import Stage
from tests.support.services import Running

BEST = ArenaGoal(kind="best", delta=0.1, evidence="pairs")
PROMOTE = ArenaGoal(kind="promote", challenger="i2", champion="i0", evidence="pairs")


def verdict_of(stage: Stage) -> ArenaVerdict:
    return arena_verdict(verdict_inputs(stage.arena))


def play(stage: Stage, votes: int) -> None:
    """Voters who always prefer the item of the higher number."""
    for _ in range(votes):
        decision = stage.ask()
        stage.tell(decision, "left" if decision.left > decision.right else "right")


@pytest.mark.parametrize(
    ("goal", "items"),
    [
        (BEST, ["i3"]),
        (ArenaGoal(kind="best", evidence="model"), ["i3"]),
        (ArenaGoal(kind="top", k=2, evidence="pairs"), ["i3", "i2"]),
        (ArenaGoal(kind="ranking", delta=0.2, evidence="pairs"), ["i3", "i2", "i1", "i0"]),
        (PROMOTE, ["i2"]),
        (ArenaGoal(kind="promote", challenger="i0", champion="i1", evidence="model"), ["i1"]),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_goals_are_reached_and_survive_a_restart(goal: ArenaGoal, items: list[str]) -> None:
    stage = Stage(items=4, undo_ms=0)
    stage.commit(SetGoal("arena", goal))
    assert not verdict_of(stage).verdict.decided
    for _ in range(15):
        play(stage, 8)
        if verdict_of(stage).verdict.decided:
            break
    found = verdict_of(stage)
    assert found.verdict.decided
    assert sorted(found.items) == sorted(items)
    assert found.items == items or goal.kind == "top"
    assert found.sentence.startswith("Decided: ")
    again = ServiceState.from_bytes(stage.state.to_bytes())
    assert arena_verdict(verdict_inputs(again.arena("arena"))) == found
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_the_verdict_counts_the_votes_that_stand_as_a_plain_table_does() -> None:
    stage = Stage(items=4)
    stage.crowd(60, seed=3)
    stage.commit(ImportVotes("arena", "b", [("i0", "i1", "first"), ("i2", "i1", "tie")]))
    stage.commit(SetGoal("arena", BEST))
    wins = np.zeros((4, 4))
    for number in range(len(stage.arena.log)):
        one = stage.arena.log[number]
        points = {"FIRST": 1.0, "SECOND": 0.0, "TIE": 0.5}.get(one.outcome.name)
        if points is not None:
            wins[one.first, one.second] += points
            wins[one.second, one.first] += 1.0 - points
    assert verdict_of(stage).verdict == pair_verdict(wins, Goal(kind="best", delta=0.1))
    stage.commit(SetRetired("arena", "i3", True))
    assert verdict_of(stage).verdict == pair_verdict(wins[:3, :3], Goal(kind="best", delta=0.1))


def test_for_a_promotion_only_the_two_meet_and_a_voter_who_saw_them_goes_on() -> None:
    stage = Stage(items=4)
    stage.commit(SetGoal("arena", PROMOTE))
    for _ in range(3):
        decision = stage.ask()
        assert {decision.first, decision.second} == {0, 2}
        assert stage.arena.learner.candidates(decision) == (0, 2)
    stage.commit(SetGoal("arena", BEST))
    pairs = {frozenset((d.first, d.second)) for d in (stage.ask(voter="ann") for _ in range(6))}
    assert len(pairs) == 6
    stage.commit(SetRetired("arena", "i0", True))
    stage.commit(SetGoal("arena", None))
    with pytest.raises(ConflictError, match="has no goal"):
        verdict_of(stage)


def test_deciding_pairs_are_those_that_the_claim_needs() -> None:
    random = np.random.default_rng(0)
    wins = np.array([[0, 9, 9, 30], [1, 0, 6, 30], [2, 5, 0, 30], [0, 0, 0, 0]])
    assert deciding_pairs(wins, Goal(kind="best"), random)[:1] in ([(0, 1)], [(0, 2)])
    assert set(deciding_pairs(wins, Goal(kind="top", k=2), random)) == {(i, j) for i in (0, 1) for j in (2, 3)}
    assert deciding_pairs(wins, Goal(kind="ranking"), random)[0] == (1, 2)
    first = {deciding_pairs(np.zeros((4, 4)), Goal(kind="ranking"), np.random.default_rng(n))[0] for n in range(40)}
    assert len(first) > 4  # without votes any pair may come first


def test_goals_that_an_arena_cannot_have_are_refused() -> None:
    stage = Stage(items=3)
    for goal in (ArenaGoal(kind="top", k=3), ArenaGoal(kind="promote", challenger="i0", champion="i9")):
        with pytest.raises(RefusedError):
            stage.commit(SetGoal("arena", goal))
    contexts = Stage(features="request", dim=2)
    with pytest.raises(ConflictError, match="features come with each ask"):
        contexts.commit(SetGoal("arena", ArenaGoal(kind="best", evidence="model")))
    slates = Stage(policy={"kind": "ListwiseFGTS", "choices": 3})
    with pytest.raises(ConflictError, match="slates"):
        slates.commit(SetGoal("arena", BEST))


def test_a_gate_asks_for_the_verdict(service: Running) -> None:
    goal = {"kind": "promote", "challenger": "beta", "champion": "alpha"}
    arena = service.create(goal=goal)
    with Client(service.url, service.secret) as client:
        before = client.verdict(arena)
        assert (before["decided"], before["promote"], before["votes_expected"]) == (False, False, None)
        for _ in range(14):
            client.tell_winner(client.ask(arena), "beta")
        after = client.verdict(arena)
        assert (after["decided"], after["promote"], after["items"], after["votes"]) == (True, True, ["beta"], 14)
        assert after["sentence"] == (
            "Decided: “Beta” is better than “Alpha”. "
            "This is wrong with a probability of at most 0.05, however often one looked."
        )
        client.set_goal(arena, "promote", challenger="beta", champion="alpha", delta=1e-6)
        assert "more votes would settle it" in client.verdict(arena)["sentence"]
        voter = Client(service.url, client.make_key("web", arena=arena))
        with voter, pytest.raises(ClientError, match="role read"):
            voter.verdict(arena)
        assert service.admin.delete(f"/api/v1/arenas/{arena}/goal").json()["goal"] is None
    for bad in ({"kind": "top"}, {"kind": "best", "k": 2}, {"kind": "promote"}, {"kind": "best", "delta": 0}):
        assert service.admin.put(f"/api/v1/arenas/{arena}/goal", json=bad).status_code == 422


def test_an_arena_with_a_goal_from_a_model_gets_the_policy_that_fits(service: Running) -> None:
    arena = service.create(goal={"kind": "top", "k": 2, "evidence": "model"})
    assert service.admin.get(f"/api/v1/arenas/{arena}").json()["policy"] == "BestArm"
    assert service.admin.get(f"/api/v1/arenas/{service.create(goal={'kind': 'best'})}").json()["policy"] == "FGTS"
