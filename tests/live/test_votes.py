"""Votes come from elsewhere, are taken back, and are learnt again by another policy: exactly, in memory and on a journal."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import AlreadyLearntError, DuelistError, InvalidInputError, UnknownDuelError
from duelist.core.serialize import to_arrays, to_bytes
from duelist.history.duels import Duels
from duelist.journal.base import Turn
from duelist.journal.memory import MemoryJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from duelist.live.pending import Parts, pack_parts, unpack_parts
from duelist.live.vote_log import VoteLog
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.confidence.maxinp import MaxInP
from duelist.policies.algorithms.confidence.maxpairucb import MaxPairUCB
from duelist.policies.algorithms.confidence.vacdb import VACDB
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.sampling.finite_models import FiniteModels
from duelist.policies.algorithms.sampling.foresight import Foresight
from duelist.policies.algorithms.uniform import Uniform
from tests.support.agents import ARMS, Ends, bytes_of, pair_policies

OTHER_ARMS = np.random.default_rng(2).standard_normal((9, 4))
EVERY_POLICY = [*pair_policies(), FGTS(alpha=0.0), FGTS(discount=0.9), FGTS(exact_rounds=8, alpha=1.0), FGTS(same_arm="redraw")]
SETTINGS: dict[str, Any] = {"dim": 4, "seed": 11, "max_pending": 4, "horizon": 1000}


def some_votes(n: int = 12, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    rows = generator.integers(len(ARMS), size=(n, 2))
    return {"first": ARMS[rows[:, 0]], "second": OTHER_ARMS[rows[:, 1]], "outcomes": generator.integers(-1, 2, n)}


def act(agent: Agent, t: int) -> None:
    """Ask, answer late and out of order with and without a name, skip, drop, import."""
    dice = random.Random(t)
    pending = agent.pending
    if t == 20:
        agent.import_votes(**some_votes(4), voters=["ann", "bob", "ann", "cem"], times=[20.0, 1.0, 2.0, 3.0])
    elif not pending or dice.random() < 0.55:
        agent.choose(ARMS if dice.random() < 0.7 else OTHER_ARMS + t)
    elif dice.random() < 0.9:
        voter = dice.choice([None, "ann", "bob"])
        agent.learn(dice.choice(pending), winner=dice.choice(["left", "right", "tie"]), voter=voter, time=float(t))
    else:
        agent.skip(dice.choice(pending))


def played(policy: Any, steps: int = 60, **more: Any) -> Agent:
    agent = Agent(policy, **SETTINGS, **more)
    for t in range(steps):
        act(agent, t)
    return agent


def never_told(policy: Any, gone: Callable[[int, str | None, float], bool], votes: dict[str, Any], steps: int = 60) -> Agent:
    """The slow and obvious way: the same questions and pairs on a new agent, with a skip for each vote that is gone."""
    agent, told = Agent(policy, **SETTINGS), Agent(policy, **SETTINGS)
    mine = agent._memory
    tell, skip, ask = told._memory.tell, told._memory.skip, told._memory._add

    def also_tell(number: int, answer: Any, voter: str | None = None, time: float | None = None) -> None:
        tell(number, answer, voter, time)
        if gone(number, voter, time or 0.0):
            mine.skip(number)
        else:
            mine.tell(number, answer, voter, time)

    def also_skip(number: int) -> None:
        skip(number)
        mine.skip(number)

    def also_ask(question: Any, shown: Any, actions: Any, conditions: Any) -> None:
        ask(question, shown, actions, conditions)
        mine.ask_again(actions, shown, conditions)

    told._memory.tell, told._memory.skip, told._memory._add = also_tell, also_skip, also_ask  # type: ignore[method-assign]
    told_import = told.import_votes

    def also_import(*arguments: Any, **named: Any) -> int:
        agent.import_votes(**votes)
        return told_import(*arguments, **named)

    told.import_votes = also_import  # type: ignore[method-assign]
    for t in range(steps):
        act(told, t)
    return agent


def kept(keep: list[int], **named: Any) -> dict[str, Any]:
    votes: dict[str, Any] = {**some_votes(4), "voters": ["ann", "bob", "ann", "cem"], "times": [20.0, 1.0, 2.0, 3.0], **named}
    return {name: [list(column)[i] for i in keep] for name, column in votes.items()}


SELECTIONS: dict[str, Any] = {
    "a duel": ({"duel": 3}, lambda number, _voter, _time: number == 3, [0, 1, 2, 3]),
    "a voter": ({"voter": "ann"}, lambda _number, voter, _time: voter == "ann", [1, 3]),
    "an interval": ({"since": 10.0, "until": 40.0}, lambda _number, _voter, time: 10.0 <= time < 40.0, [1, 2, 3]),
}


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("name", SELECTIONS)
def test_forgetting_is_never_having_been_told_bit_for_bit(name: str, policy: Any, tmp_path: Path) -> None:
    selection, gone, left = SELECTIONS[name]
    reference = never_told(policy, gone, kept(left))
    agent = played(policy)
    before = agent.rounds
    assert agent.forget(**selection) == before - reference.rounds > 0
    assert bytes_of(agent, tmp_path) == bytes_of(reference, tmp_path)
    assert agent.pending == reference.pending
    assert [agent.choose(ARMS).rows for _ in range(5)] == [reference.choose(ARMS).rows for _ in range(5)]
    with MemoryJournal() as journal:
        logged = played(policy, journal=journal)
        logged.forget(**selection)
        again = Agent(policy, **SETTINGS, journal=journal)
        with MemoryJournal() as events_only:
            copy_events(journal, events_only)
            folded = Agent(policy, **SETTINGS, journal=events_only)
            expected = bytes_of(never_told(policy, gone, kept(left)), tmp_path)
            assert [bytes_of(one, tmp_path) == expected for one in (logged, again, folded)] == [True] * 3


@pytest.mark.slow
def test_a_policy_with_a_nonlinear_reward_forgets_exactly_and_imports(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    from duelist.policies.algorithms.nonlinear.nonlinear_fgts import NonlinearFGTS

    selection, gone, left = SELECTIONS["a voter"]
    agent = played(NonlinearFGTS(), 36)
    reference = never_told(NonlinearFGTS(), gone, kept(left), 36)
    assert agent.forget(**selection) > 0
    assert bytes_of(agent, tmp_path) == bytes_of(reference, tmp_path)


def copy_events(source: Any, target: Any) -> None:
    def transaction(turn: Turn) -> None:
        for record in source.read():
            turn.append(record.kind, record.body, record.blob)

    target.transact(transaction)


def test_forgetting_one_after_the_other_is_forgetting_all(tmp_path: Path) -> None:
    agent, other = played(FGTS()), played(FGTS())
    agent.forget(voter="ann")
    agent.forget(voter="bob")
    other.forget(voter="bob")
    other.forget(voter="ann")
    assert bytes_of(agent, tmp_path) == bytes_of(other, tmp_path)
    with MemoryJournal() as journal:
        logged = played(FGTS(), journal=journal, snapshot_every=7)
        logged.forget(voter="ann")
        logged.forget(voter="bob")
        assert bytes_of(logged, tmp_path) == bytes_of(agent, tmp_path)
        assert bytes_of(Agent(FGTS(), **SETTINGS, journal=journal), tmp_path) == bytes_of(agent, tmp_path)


def test_a_saved_agent_can_forget_after_loading(tmp_path: Path) -> None:
    for policy in (FGTS(), Foresight(), FGTS(alpha=0.0)):
        agent = played(policy)
        agent.save(tmp_path / "a")
        again = Agent.load(tmp_path / "a")
        assert agent.forget(voter="ann") == again.forget(voter="ann")
        assert bytes_of(again, tmp_path) == bytes_of(agent, tmp_path)
        assert to_bytes(again._memory.log.to_saved()) == to_bytes(agent._memory.log.to_saved())  # type: ignore[union-attr]


def test_processes_that_share_a_journal_forget_together(tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "a.db") as left, SQLiteJournal(tmp_path / "a.db") as right:
        one, other = Agent(FGTS(), **SETTINGS, journal=left), Agent(FGTS(), **SETTINGS, journal=right)
        for _ in range(5):
            one.learn(one.choose(ARMS), "left", voter="ann")
            other.learn(other.choose(ARMS), "left", voter="bob")
        assert one.forget(voter="ann") == 5
        other.refresh()
        assert other.rounds == 5
        assert bytes_of(one, tmp_path) == bytes_of(other, tmp_path)


def test_a_forgotten_duel_has_ended() -> None:
    agent = Agent(FGTS(), dim=4)
    duel = agent.choose(ARMS)
    agent.learn(duel, "left")
    agent.forget(duel)
    assert agent.rounds == 0
    with pytest.raises(AlreadyLearntError, match="forgotten"):
        agent.learn(duel, "left")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, InvalidInputError, "which votes to forget"),
        ({"duel": 0, "voter": "ann"}, InvalidInputError, "one or the other"),
        ({"duel": 99}, UnknownDuelError, "got duel 99"),
        ({"duel": 1}, UnknownDuelError, "no answer"),
        ({"since": "monday"}, InvalidInputError, "since must be a number"),
    ],
)
def test_a_request_to_forget_nothing_sensible_is_refused(
    arguments: dict[str, Any], error: type[DuelistError], says: str, tmp_path: Path
) -> None:
    agent = Agent(FGTS(), dim=4)
    agent.learn(agent.choose(ARMS), "left")
    agent.choose(ARMS)
    before = bytes_of(agent, tmp_path)
    with pytest.raises(error, match=says):
        agent.forget(**arguments)
    assert bytes_of(agent, tmp_path) == before


def test_an_agent_that_keeps_no_votes_says_so() -> None:
    agent = Agent(FGTS(), dim=4, keep_votes=False)
    agent.learn(agent.choose(ARMS), "left")
    with pytest.raises(InvalidInputError, match="keep_votes=True"):
        agent.forget(0)
    with pytest.raises(InvalidInputError, match="cannot change the policy"):
        agent.change_policy(Uniform())
    agent.import_votes(**some_votes())


def test_continuous_sets_and_policies_of_the_users_own_can_forget(tmp_path: Path) -> None:
    ball = BallActions(lanes=1, dim=4, radius=0.5)
    agent = Agent(FGTS(), dim=4, seed=1)
    for voter in ("ann", "bob", "ann"):
        agent.learn(agent.choose(ball), "first", voter=voter)
    agent.save(tmp_path / "a")
    again = Agent.load(tmp_path / "a")
    assert again.forget(voter="ann") == 2
    assert agent.forget(0) + agent.forget(2) == 2
    assert bytes_of(agent, tmp_path) == bytes_of(again, tmp_path)
    own = Agent(Ends(), dim=4)
    for winner in ("first", "first", "second"):
        own.learn(own.choose(ARMS), winner)
    own.forget(0)
    assert own.report()["sum"] == 0.0


# Votes from elsewhere


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("asked_before", [0, 5])
def test_every_policy_learns_imported_votes_alike_in_memory_and_on_a_journal(
    policy: Any, asked_before: int, tmp_path: Path
) -> None:
    with MemoryJournal() as journal:
        agents = [Agent(policy, **SETTINGS), Agent(policy, **SETTINGS, journal=journal)]
        for agent in agents:
            for _ in range(asked_before):
                agent.learn(agent.choose(ARMS), "left")
            assert agent.import_votes(**some_votes()) == 12
            assert agent.rounds == asked_before + 12
            agent.learn(agent.choose(ARMS), "right")
        assert [record.kind for record in journal.read()].count("imported") == 1
        agents[0].save(tmp_path / "saved")
        agents += [Agent(policy, **SETTINGS, journal=journal), Agent.load(tmp_path / "saved")]
        assert len({bytes_of(agent, tmp_path) for agent in agents}) == 1
        assert len({agent.choose(OTHER_ARMS).rows for agent in (agents[0], agents[1], agents[3])}) == 1


def test_imported_votes_teach_what_the_same_duels_would_teach() -> None:
    agent, other = Agent(CoLSTIM(), dim=4), Agent(CoLSTIM(), dim=4)
    told = []
    for _ in range(20):
        duel = agent.choose(ARMS)
        winner = min(duel.first, duel.second)
        agent.learn(duel, winner)
        told.append((duel.features, 1 if winner == duel.first else -1))
    other.import_votes([pair[0] for pair, _ in told], [pair[1] for pair, _ in told], [outcome for _, outcome in told])
    np.testing.assert_allclose(other._state.lane.state.fit.theta, agent._state.lane.state.fit.theta, atol=1e-6)


@pytest.mark.parametrize(
    "policy", [CoLSTIM(), MaxPairUCB(width="local"), MaxInP(), Foresight()], ids=lambda one: type(one).__name__
)
@pytest.mark.parametrize("asked_before", [0, 5])
def test_one_fit_for_all_votes_is_the_fit_after_the_last(policy: Any, asked_before: int) -> None:
    together, apart = Agent(policy, dim=4), Agent(policy, dim=4)
    votes = some_votes(300)
    for agent in (together, apart):
        for _ in range(asked_before):
            agent.learn(agent.choose(ARMS), "left")
    together.import_votes(**votes)
    for i in range(300):
        apart.import_votes(**{name: column[i : i + 1] for name, column in votes.items()})
    for agent in (together, apart):
        agent.choose(ARMS)
    one, other = (to_arrays(agent._state.lane.state) for agent in (together, apart))
    assert one.keys() == other.keys()
    # Foresight leaves scales of the prior that do not count as they were.
    counts = one["value/scales/weights"] * other["value/scales/weights"] > 0.0 if isinstance(policy, Foresight) else ...
    compared = [name for name in one if name.endswith(("/theta", "/gram", "/whitener"))]
    assert len(compared) >= 2
    for name in compared:
        rows = ... if "/centre/" in name else counts  # the centre is not one per scale
        np.testing.assert_allclose(one[name][rows], other[name][rows], rtol=1e-5, atol=1e-6, err_msg=name)


def test_words_weights_and_precision_mean_what_they_say(tmp_path: Path) -> None:
    one, two, other = (Agent(FGTS(), dim=2) for _ in range(3))
    first, second = np.eye(2, dtype=np.float32)[[0, 1, 0]], np.eye(2, dtype=np.float32)[[1, 0, 1]]
    one.import_votes(first, second, ["first", "second", "tie"], weights=[2, 1, 0])
    two.import_votes(first[[0, 0, 1]].astype(np.float64), second[[0, 0, 1]].tolist(), np.array([1, 1, -1]))
    assert one.rounds == two.rounds == 3
    assert bytes_of(one, tmp_path) == bytes_of(two, tmp_path)
    other.import_votes(second, first, ["second", "first", "tie"], weights=[2, 1, 0])
    statistics = [agent._state.lane.state.history.statistics for agent in (one, other)]
    assert statistics[0].n_rows.tolist() == [1], "a pair and the same pair turned round are counted together"
    assert (statistics[0].losses == statistics[1].losses).all()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"first": np.zeros((12, 3))}, r"first must be \(n, 4\).*got \(12, 3\)"),
        ({"first": np.zeros((0, 4))}, "n >= 1"),
        ({"second": np.zeros((3, 4))}, "second must be as long as first, which has 12 votes; got 3"),
        ({"second": np.full((12, 4), np.nan)}, "finite"),
        ({"outcomes": [2] * 12}, "got 2"),
        ({"outcomes": "first"}, "one per vote"),
        ({"outcomes": ["left"] * 12}, "got 'left'"),
        ({"weights": [0.5] * 12}, "whole numbers.*got 0.5 at 0.*round the weights"),
        ({"weights": [-1] * 12}, "whole numbers"),
        ({"times": [1.0]}, "times must be as long"),
        ({"voters": ["ann"]}, "voters must be as long"),
    ],
)
def test_bad_votes_are_refused_together_and_change_nothing(changed: dict[str, Any], says: str, tmp_path: Path) -> None:
    with MemoryJournal() as journal:
        for agent in (Agent(FGTS(), dim=4), Agent(FGTS(), dim=4, journal=journal)):
            agent.learn(agent.choose(ARMS), "left")
            before = bytes_of(agent, tmp_path)
            with pytest.raises(InvalidInputError, match=says):
                agent.import_votes(**{**some_votes(), **changed})
            assert bytes_of(agent, tmp_path) == before
        assert [record.kind for record in journal.read()] == ["opened", "asked", "told"]


def test_a_policy_that_cannot_learn_a_pair_leaves_journal_and_state_as_they_were(tmp_path: Path) -> None:
    table = FiniteModels(rewards=[[0.0] * 6, [1.0] * 6])
    with MemoryJournal() as journal:
        agent = Agent(table, dim=4, journal=journal)
        agent.learn(agent.choose(ARMS), "left")
        before = bytes_of(agent, tmp_path)
        with pytest.raises(InvalidInputError, match="6 arms"):
            agent.import_votes(**some_votes())
        agent.refresh()
        assert bytes_of(agent, tmp_path) == before


# Another policy


@pytest.mark.parametrize("new", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
def test_a_changed_policy_knows_all_votes_as_if_it_had_learnt_them(new: Any, tmp_path: Path) -> None:
    old = Foresight() if isinstance(new, FGTS) else FGTS()
    with MemoryJournal() as journal:
        agent = played(old, journal=journal)
        pending, rounds = agent.pending, agent.rounds
        shown = {record.body["id"]: record.body for record in journal.read() if record.kind == "asked"}
        agent.change_policy(new)
        assert (agent.policy, agent.pending, agent.rounds) == (new, pending, rounds)
        with pytest.raises(InvalidInputError, match="changed its policy"):
            Agent(old, **SETTINGS, journal=journal)
        again = Agent(new, **SETTINGS, journal=journal)
        with MemoryJournal() as events_only:
            copy_events(journal, events_only)
            folded = Agent(new, **SETTINGS, journal=events_only)
        # The slow way: a journal that the new policy wrote, in which the same pairs were shown.
        with MemoryJournal() as rewritten:
            opened = {"policy": None, "policy_name": type(new).__name__}

            def transaction(turn: Turn) -> None:
                for record in journal.read():
                    if record.kind != "policy":
                        turn.append(record.kind, {**record.body, **(opened if record.kind == "opened" else {})}, record.blob)

            rewritten.transact(transaction)
            reference = Agent(new, **SETTINGS, journal=rewritten)
            expected = bytes_of(reference, tmp_path)
        assert [bytes_of(one, tmp_path) == expected for one in (agent, again, folded)] == [True] * 3
        assert shown
        agent.learn(agent.pending[0], "left")
        again.refresh()
        assert bytes_of(again, tmp_path) == bytes_of(agent, tmp_path)


@pytest.mark.parametrize("new", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("old", [Uniform(), FGTS(), Foresight(), VACDB()], ids=lambda policy: type(policy).__name__)
def test_an_agent_in_memory_can_change_its_policy_and_go_on(old: Any, new: Any, tmp_path: Path) -> None:
    agent = played(old)
    pending, rounds = agent.pending, agent.rounds
    agent.change_policy(new)
    assert (agent.policy, agent.pending, agent.rounds) == (new, pending, rounds)
    for t in range(60, 80):
        act(agent, t)
    agent.save(tmp_path / "a")
    again = Agent.load(tmp_path / "a")
    assert again.policy == new
    assert agent.forget(voter="bob") == again.forget(voter="bob") > 0
    assert bytes_of(agent, tmp_path) == bytes_of(again, tmp_path)


def test_other_processes_go_over_to_the_new_policy_too() -> None:
    with MemoryJournal() as journal:
        one, other = Agent(FGTS(), **SETTINGS, journal=journal), Agent(FGTS(), **SETTINGS, journal=journal)
        one.learn(one.choose(ARMS), "left")
        one.change_policy(CoLSTIM())
        other.learn(other.choose(ARMS), "left")
        one.refresh()
        assert (other.policy, one.rounds) == (CoLSTIM(), 2)


def test_a_waiting_duel_keeps_its_pair_and_not_its_set() -> None:
    agent = Agent(FGTS(alpha=0.0), dim=4, keep_votes=False)
    duel = agent.choose(OTHER_ARMS)
    (pending,) = agent._memory.pending.values()
    assert isinstance(pending.actions, bytes)
    assert isinstance(pending.shown, Duels)
    agent.learn(duel, "left")
    assert agent.rounds == 1


def test_what_was_shown_comes_back_from_few_bytes_as_it_was() -> None:
    """Bit for bit, with zeros left out and not; the oracle is the value itself, and the size of one block per arm."""
    rng = np.random.default_rng(0)
    blocks = duelist.features.one_block_per_arm(rng.standard_normal(9), 12)[[3, 7]]
    blocks[0, 0] = -0.0
    for features in (blocks, rng.standard_normal((2, 5)), np.zeros((2, 3)), np.array([[0.0, 1.0], [-0.0, np.inf]])):
        for note in (None, np.empty(0), rng.standard_normal(7)):
            for rows in ([3, 7], [-1, -1]):
                parts = Parts(np.array(rows), features, note)
                again = unpack_parts(pack_parts(parts))
                for one, other in zip(parts, again, strict=True):
                    assert (one is None) == (other is None)
                    if one is not None and other is not None:
                        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    assert len(pack_parts(Parts(np.array([3, 7]), blocks, None))) < 16 * 12 * 9 / 6


def test_sets_that_are_read_again_come_back_from_few_bytes_as_they_were() -> None:
    rng = np.random.default_rng(0)
    blocks = duelist.features.one_block_per_arm(rng.standard_normal(9), 12)
    blocks[0, 50] = -0.0
    log, offered = (
        VoteLog(keeps_sets=True, follows_sets=True),
        [FiniteActions(blocks), FiniteActions(rng.standard_normal((3, 2)))],
    )
    for actions in [*offered, *offered]:
        log.sets.add(actions)
    assert [*log.sets] == [actions.digest for actions in offered]
    for actions in offered:
        again = log.sets[actions.digest]
        assert isinstance(again, FiniteActions)
        assert again.features.tobytes() == actions.features.tobytes()
        assert again.digest == actions.digest
    assert b"no such set" not in log.sets
    assert sum(map(len, log.sets._packed.values())) < blocks.nbytes / 6
