"""The order on the screen is drawn, a duel knows who asked it and how likely it was, and a vote goes where it belongs."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.core.errors import InvalidInputError, UnknownDuelError
from duelist.journal.memory import MemoryJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.policies.algorithms.uniform import Uniform
from tests.support.agents import ARMS, bytes_of
from tests.support.golden_files import facts, policy_of, settings_of, unpack


def test_each_side_gets_the_first_candidate_half_of_the_time() -> None:
    agent = Agent(Uniform(), dim=4, seed=0)
    left_is_first = [agent.choose(ARMS).left_is_first for _ in range(2000)]
    assert abs(np.mean(left_is_first) - 0.5) < 4 * 0.5 / math.sqrt(2000)  # a false alarm in 16,000 seeds; this one is fixed
    changes = np.mean(np.diff(np.array(left_is_first, dtype=int)) != 0)
    assert abs(changes - 0.5) < 4 * 0.5 / math.sqrt(2000), "one coin after the other, not turn by turn"


def test_left_and_right_are_the_two_rows_and_the_features_follow_them() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    seen = set()
    for _ in range(20):
        duel = agent.choose(ARMS)
        assert {duel.left, duel.right} == {duel.first, duel.second}
        assert (duel.left == duel.first) == duel.left_is_first
        assert (duel.screen_features == ARMS[[duel.left, duel.right]]).all()
        seen.add(duel.left_is_first)
    assert seen == {True, False}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_winner_on_a_side_is_the_row_shown_there(side: Any, tmp_path: Path) -> None:
    by_side, by_row = Agent(FGTS(), dim=4, seed=0), Agent(FGTS(), dim=4, seed=0)
    for _ in range(20):
        duel = by_side.choose(ARMS)
        by_side.learn(duel, winner=side)
        by_row.choose(ARMS)
        by_row.learn(duel.id, winner=getattr(duel, side))
    assert bytes_of(by_side, tmp_path) == bytes_of(by_row, tmp_path)


def test_sides_work_where_arms_have_no_rows() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    duel = next(duel for duel in (agent.choose(BallActions(1, 4, 1.0)) for _ in range(50)) if not duel.left_is_first)
    assert (duel.left, duel.right) == (-1, -1)
    assert (duel.screen_features[0] == duel.features[1]).all()
    agent.learn(duel, winner="left")
    assert agent._state.lane.state.history.outcomes[-1, 0] == -1, "the left one is the second"


def test_sides_are_the_same_after_loading_and_on_a_journal(tmp_path: Path) -> None:
    agent = Agent(Uniform(), dim=4, seed=3)
    sides = [agent.choose(ARMS).left for _ in range(12)]
    agent.save(tmp_path / "a")
    assert [duel.left for duel in Agent.load(tmp_path / "a").pending] == sides
    with MemoryJournal() as journal:
        logged = Agent(Uniform(), dim=4, seed=3, journal=journal)
        assert [logged.choose(ARMS).left for _ in range(12)] == sides
        assert [duel.left for duel in Agent(Uniform(), dim=4, seed=3, journal=journal).pending] == sides


def test_agents_with_other_seeds_draw_other_sides() -> None:
    one, other = Agent(Uniform(), dim=4, seed=0), Agent(Uniform(), dim=4, seed=1)
    assert [one.choose(ARMS).left_is_first for _ in range(20)] != [other.choose(ARMS).left_is_first for _ in range(20)]


def test_a_misspelt_side_is_never_turned_round() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    with pytest.raises(InvalidInputError, match="Did you mean 'right'"):
        agent.learn(agent.choose(ARMS), winner="rihgt")  # type: ignore[arg-type]


def test_agents_of_0_1_0_have_sides_too(tmp_path: Path) -> None:
    case = next(c for c in facts("saved_agents")["agents"].values() if c["policy"] and c["at_A"]["pending"])
    path = unpack(case["at_A"]["file"], tmp_path / "old")
    agent, again = Agent.load(path), Agent.load(path)
    assert [duel.left for duel in agent.pending] == [duel.left for duel in again.pending]
    again.learn(agent.pending[0], winner="left")


# Who asked


def test_a_duel_of_another_agent_is_refused_even_where_number_and_rows_agree() -> None:
    mine, yours = Agent(FGTS(), dim=4, seed=0), Agent(FGTS(), dim=4, seed=0)
    duel = yours.choose(ARMS)
    assert mine.choose(ARMS) == duel
    with pytest.raises(UnknownDuelError, match=r"asked by another agent.*pass the number"):
        mine.learn(duel, "first")
    with pytest.raises(UnknownDuelError, match="asked by another agent"):
        mine.skip(duel)
    assert mine.rounds == 0
    mine.learn(duel.id, "first")
    assert mine.rounds == 1


def test_a_slate_of_another_agent_is_refused() -> None:
    mine, yours = (SlateAgent(ListwiseFGTS(choices=3), dim=4, seed=0) for _ in range(2))
    slate = yours.choose(ARMS)
    mine.choose(ARMS)
    with pytest.raises(UnknownDuelError, match="another agent"):
        mine.learn(slate, winner=slate.rows[0])


def test_a_loaded_copy_is_the_same_agent(tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    duel = agent.choose(ARMS)
    agent.save(tmp_path / "a")
    copy = Agent.load(tmp_path / "a")
    copy.learn(duel, "first")
    copy.save(tmp_path / "b")
    with pytest.raises(UnknownDuelError, match="another agent"):
        Agent(FGTS(), dim=4, seed=0).learn(duel, "first")
    assert Agent.load(tmp_path / "b").choose(ARMS).agent == duel.agent


@pytest.mark.parametrize("snapshot_every", [2, 1000])
def test_all_agents_on_one_journal_are_one_and_no_other_is(snapshot_every: int, tmp_path: Path) -> None:
    def agent_on(journal: Any) -> Agent:
        return Agent(FGTS(), dim=4, seed=0, journal=journal, snapshot_every=snapshot_every)

    with SQLiteJournal(tmp_path / "a.db") as journal, MemoryJournal() as other:
        duel = agent_on(journal).choose(ARMS)
        stranger = agent_on(other)
        stranger.choose(ARMS)
        with pytest.raises(UnknownDuelError, match="another agent"):
            stranger.learn(duel, "first")
    with SQLiteJournal(tmp_path / "a.db") as journal:
        agent_on(journal).learn(duel, "first")


@pytest.mark.slow
def test_a_journal_of_0_1_0_gets_a_mark_when_it_is_opened(tmp_path: Path) -> None:
    case = next(iter(facts("journals")["journals"].values()))
    path = unpack(case["file"], tmp_path / "old.db")
    settings: dict[str, Any] = settings_of(case)
    with SQLiteJournal(path) as journal:
        one, other = (Agent(policy_of(case), journal=journal, **settings) for _ in range(2))
        assert one._state.token
        assert one._state.token == other._state.token


# Propensities


def test_a_duel_knows_how_likely_it_was() -> None:
    assert Agent(Uniform(), dim=4).choose(ARMS).propensity == pytest.approx(1 / 15)
    assert math.isnan(Agent(CoLSTIM(), dim=4).choose(ARMS).propensity)


def test_the_propensity_is_that_of_the_moment_of_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, other = Agent(FGTS(), dim=4, seed=0), Agent(FGTS(), dim=4, seed=0)
    for one in (agent, other):
        for _ in range(10):
            duel = one.choose(ARMS)
            one.learn(duel, winner=min(duel.first, duel.second))
    late, at_once = agent.choose(ARMS), other.choose(ARMS)
    read = at_once.propensity
    assert 0.0 <= read <= 1.0
    for _ in range(30):
        agent.learn(agent.choose(ARMS), "second")
    assert late.propensity == read
    monkeypatch.setattr(FGTS, "unordered_probability", None)
    assert late.propensity == read, "worked out once"


def test_a_propensity_is_not_worked_out_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FGTS, "_probability", lambda *_, **__: pytest.fail("too early"))
    Agent(FGTS(), dim=4).choose(ARMS)


def test_on_a_journal_the_propensity_is_what_was_written_down() -> None:
    with MemoryJournal() as journal:
        agent = Agent(FGTS(), dim=4, seed=0, journal=journal)
        for _ in range(5):
            agent.learn(agent.choose(ARMS), "first")
        duel = agent.choose(ARMS)
        assert duel.propensity == [record.body["propensity"] for record in journal.read() if record.kind == "asked"][-1]


def test_a_duel_can_be_pickled_with_its_propensity() -> None:
    agent = Agent(Uniform(), dim=4)
    duel = pickle.loads(pickle.dumps(agent.choose(ARMS)))
    assert duel.propensity == pytest.approx(1 / 15)
    agent.learn(duel, "left")


# Policies that do not fit


def test_a_policy_that_was_not_saved_is_refused_when_loading(tmp_path: Path) -> None:
    agent = Agent(FGTS(), dim=4)
    agent.learn(agent.choose(ARMS), "first")
    agent.save(tmp_path / "a")
    for other in (Uniform(), FGTS(alpha=0.5)):
        with pytest.raises(InvalidInputError, match="to which its state means nothing"):
            Agent.load(tmp_path / "a", policy=other)
    assert Agent.load(tmp_path / "a", policy=FGTS()).rounds == 1
