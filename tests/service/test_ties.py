"""What a tie teaches, what "both bad" and a skip do not, and that arenas from before there was a choice go on as they were."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from duelist.service.arena.items import Item
from duelist.service.insight.leaderboard import compute_leaderboard, leaderboard_inputs, posterior_draws, potential_of
from duelist.service.state import ServiceState
from tests.support.arenas import Stage
from tests.support.services import Running

TWO = [Item("a", "A", "A", features=(0.9,)), Item("b", "B", "B", features=(-0.5,))]


def test_a_tie_is_half_a_win_each_way_and_both_bad_and_skips_are_kept_but_not_learnt() -> None:
    stage = Stage(items=2)
    for verdict in ("both_bad", "skip"):
        stage.tell(stage.ask(), verdict)
    assert stage.arena.learner.lane.state.history.rounds == 0
    stage.tell(stage.ask(), "tie")
    stage.tell(stage.ask(), "left")
    statistics = stage.arena.learner.lane.state.history.statistics
    assert (stage.arena.learner.lane.state.history.rounds, statistics.totals[0, 0]) == (2, 2.0)
    assert statistics.losses[0, 0] in (0.5, 1.5)
    assert [stage.arena.log[n].outcome.name for n in range(3)] == ["BOTH_BAD", "SKIP", "TIE"]


def test_the_posterior_with_ties_is_that_of_numerical_integration() -> None:
    stage = Stage(items=TWO, features="given", dim=1)
    grid = np.linspace(-8.0, 8.0, 4001)
    energy = 0.5 * grid**2
    for verdict in ("left", "tie", "tie", "right", "both_bad", "left", "skip", "tie", "left"):
        decision = stage.ask()
        stage.tell(decision, verdict)
        u = grid * (TWO[decision.left].features[0] - TWO[decision.right].features[0])
        left, right = np.logaddexp(0.0, -u), np.logaddexp(0.0, u)
        energy += {"left": left, "right": right, "tie": 0.5 * (left + right)}.get(verdict, 0.0 * u)
    weight = np.exp(-energy)
    weight /= weight.sum()
    mean = float(weight @ grid)
    spread = float(np.sqrt(weight @ (grid - mean) ** 2))
    draws = posterior_draws(potential_of(stage.arena, chains=4), seed=0)
    # 1,000 correlated draws; the standard error of a mean is about sd / sqrt(500).
    assert draws.mean() == pytest.approx(mean, abs=4 * spread / np.sqrt(500))
    assert draws.std() == pytest.approx(spread, rel=0.12)


def test_the_counts_of_the_leaderboard_are_those_of_the_policy() -> None:
    # Answers without a voter are learnt when they are told, so both see the same votes; ties fade and are faded as wins are.
    stage = Stage(items=3, policy={"kind": "FGTS", "discount": 0.8})
    rng = np.random.default_rng(0)
    for vote in range(40):
        stage.tell(stage.ask(at=vote), str(rng.choice(["left", "right", "tie", "both_bad"])), at=vote)
    mine, theirs = potential_of(stage.arena, chains=1).likelihood, stage.arena.learner.lane.state.history.statistics
    contrasts = stage.arena.learner.lane.state.history.statistics.contrasts
    for row in range(int(mine.n_rows[0])):
        match = (contrasts[0] == mine.contrasts[0, :, row : row + 1]).all(axis=0)
        assert mine.totals[0, row] == pytest.approx(theirs.totals[0, match].sum())
        assert mine.losses[0, row] == pytest.approx(theirs.losses[0, match].sum())


def test_ties_draw_two_items_together() -> None:
    far, near = Stage(items=2), Stage(items=2)
    for stage, ties in ((far, 0), (near, 60)):
        for vote in range(20 + ties):
            decision = stage.ask()
            stage.tell(decision, "tie" if vote >= 20 else "left" if decision.left == 0 else "right")
    gaps = [
        ranks[0].utility - ranks[1].utility
        for ranks in (compute_leaderboard(leaderboard_inputs(stage.arena)).ranks for stage in (far, near))
    ]
    assert gaps[1] < 0.5 * gaps[0]
    assert near.replayed().to_bytes() == near.state.to_bytes()


def test_an_arena_may_ignore_ties() -> None:
    stage, without = Stage(ties="ignored"), Stage(ties="ignored")
    for verdict in ("left", "tie", "right", "tie"):
        stage.tell(stage.ask(), verdict)
    for verdict in ("left", "skip", "right", "skip"):
        without.tell(without.ask(), verdict)
    assert stage.arena.learner.lane.state.history.rounds == 2
    one, other = (compute_leaderboard(leaderboard_inputs(each.arena)) for each in (stage, without))
    assert (one.theta == other.theta).all()


def test_an_arena_from_before_there_was_a_choice_goes_on_as_it_was() -> None:
    """Its journal says nothing about ties; replayed or from its snapshot, it counts them and learns nothing from them."""
    stage = Stage(ties="ignored")
    stage.crowd(80)
    created, *later = stage.events
    del created.body["spec"]["ties"]
    state = ServiceState()
    for event in (created, *later):
        state.apply(event)
    assert state.to_bytes() == stage.state.to_bytes()
    assert state.arena("arena").spec.ties == "ignored"


def test_ties_are_imported_exported_and_imported_again(service: Running) -> None:
    arena = service.create(undo_seconds=0)
    past = [{"first": "alpha", "second": "beta", "outcome": kind} for kind in ("first", "tie", "tie", "both_bad")]
    assert service.admin.post(f"/api/v1/arenas/{arena}/imports", json={"batch": "old", "votes": past}).status_code == 201
    assert service.tell(arena, service.ask(arena)["id"], "tie").status_code == 200
    board = service.admin.get(f"/api/v1/arenas/{arena}/leaderboard").json()
    assert (board["votes"], board["answers_learnt"]) == (5, 4)
    rows = list(csv.DictReader(io.StringIO(service.admin.get(f"/api/v1/arenas/{arena}/votes").text)))
    assert [row["outcome"] for row in rows] == ["left", "tie", "tie", "both_bad", "tie"]
    assert [row["winner"] for row in rows] == ["alpha", "", "", "", ""]
    kinds = {"left": "first", "right": "second"}
    again = [{"first": r["left"], "second": r["right"], "outcome": kinds.get(r["outcome"], r["outcome"])} for r in rows]
    new = service.create()
    assert service.admin.post(f"/api/v1/arenas/{new}/imports", json={"batch": "b", "votes": again}).status_code == 201
    assert service.admin.get(f"/api/v1/arenas/{new}/leaderboard").json()["rows"] == board["rows"]
