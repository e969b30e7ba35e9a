"""An agent on a journal loses nothing it acknowledged, and goes on bit for bit."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import AlreadyLearntError, DuelistError, InvalidInputError, SavedStateError, UnknownDuelError
from duelist.core.serialize import to_bytes
from duelist.core.stored_names import stored
from duelist.journal.base import JournalError, Turn
from duelist.journal.memory import MemoryJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from duelist.live.agent_state import DROPPED
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from tests.support.agents import ARMS, Ends, Line, bytes_of, pair_policies

OTHER_ARMS = np.random.default_rng(2).standard_normal((9, 4))


@pytest.fixture
def journal() -> Iterator[MemoryJournal]:
    with MemoryJournal() as opened:
        yield opened


def agent_on(journal: Any, policy: Any = None, snapshot_every: int = 1000, **changed: Any) -> Agent:
    settings: dict[str, Any] = {"dim": 4, "seed": 11, "max_pending": 5, "horizon": 1000, **changed}
    return Agent(policy or FGTS(), journal=journal, snapshot_every=snapshot_every, **settings)


ACTIONS = 90


def act(agent: Agent, t: int) -> None:
    """One of the things that happen to an agent: asking, answering late and out of order, skipping, forgetting."""
    dice = random.Random(t)
    pending = agent.pending
    if not pending or dice.random() < 0.55:
        agent.choose(ARMS if dice.random() < 0.7 else OTHER_ARMS)
    elif dice.random() < 0.9:
        agent.learn(dice.choice(pending), winner=dice.choice(["first", "second", "tie"]))
    else:
        agent.skip(dice.choice(pending))


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*pair_policies(), FGTS(sampler="online"), FGTS(exact_rounds=32)], ids=repr)
def test_a_snapshot_that_is_made_in_steps_is_of_the_moment_at_which_it_began(policy: Any, journal: MemoryJournal) -> None:
    """However much the agent learns between two steps. The oracle is the snapshot made at once."""
    agent = agent_on(journal, policy)
    replica, rng = agent._replica, np.random.default_rng(0)
    assert replica is not None
    fold: Any = replica._fold
    saved: dict[str, bytes] = {}
    # Rules without features keep a table of all pairs of arms: for them arms come back.
    pool = None if policy.linear_utilities else rng.standard_normal((20, 5, 4))

    def arms() -> Any:
        return rng.standard_normal((5, 4)) if pool is None else pool[rng.integers(len(pool))]

    for _ in range(2):
        for _ in range(300):
            agent.learn(agent.choose(arms()), "first")
        expected = fold.dump(replica.state)
        steps = fold.dump_in_steps(replica.state, saved.keys())
        while True:
            agent.learn(agent.choose(arms()), "second")
            try:
                saved.update(next(steps) or {})
            except StopIteration as end:
                data, names = end.value
                break
        assert set(names) <= saved.keys()
        assert fold.dump(fold.load_from_pieces(data, saved.get)) == expected


def in_memory(actions: int, policy: Any = None) -> Agent:
    agent = Agent(policy or FGTS(), dim=4, seed=11, max_pending=5, horizon=1000)
    for t in range(actions):
        act(agent, t)
    return agent


EVERY_POLICY = [*pair_policies(), FGTS(sampler="paper", alpha=3.0), FGTS(discount=0.9)]


@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY_POLICY, ids=lambda policy: type(policy).__name__)
def test_stopping_at_any_point_changes_nothing(policy: Any, tmp_path: Path) -> None:
    """Whether a restart finds a snapshot at the very end, some events before it, or none at all."""
    uninterrupted = in_memory(ACTIONS, policy)
    assert DROPPED in uninterrupted._state.endings, "or the actions below do not show all that may happen"
    straight = bytes_of(uninterrupted, tmp_path)
    for snapshot_every in (1, 9, 1000):
        dice = random.Random(snapshot_every)
        with MemoryJournal() as journal:
            agent = agent_on(journal, policy, snapshot_every)
            for t in range(ACTIONS):
                act(agent, t)
                if dice.random() < 0.1:
                    agent = agent_on(journal, policy, snapshot_every)
            assert bytes_of(agent, tmp_path) == straight, f"snapshot_every={snapshot_every}"


@pytest.mark.parametrize("snapshot_every", [3, 1000])
def test_arms_without_rows_are_kept_with_their_features(snapshot_every: int, journal: MemoryJournal, tmp_path: Path) -> None:
    ball = BallActions(lanes=1, dim=4, radius=0.5)
    straight, agent = (
        Agent(FGTS(), dim=4, seed=11, max_pending=5, horizon=1000),
        agent_on(journal, snapshot_every=snapshot_every),
    )
    for t in range(20):
        for one in (straight, agent):
            one.choose(ball)
            if t % 3:
                one.learn(one.pending[0], winner="first" if t % 2 else "second")
        agent = agent_on(journal, snapshot_every=snapshot_every)
    assert bytes_of(agent, tmp_path) == bytes_of(straight, tmp_path)
    straight.save(tmp_path / "ball")
    assert bytes_of(Agent.load(tmp_path / "ball"), tmp_path) == bytes_of(straight, tmp_path)


def test_folding_the_whole_journal_gives_what_snapshots_give(journal: MemoryJournal, tmp_path: Path) -> None:
    agent = agent_on(journal, snapshot_every=10)
    for t in range(120):
        act(agent, t)
    assert journal.latest_snapshot() is not None
    with MemoryJournal() as events_only:
        copy_events(journal, events_only)
        assert bytes_of(agent_on(events_only), tmp_path) == bytes_of(agent, tmp_path)


def test_a_restart_replays_only_what_follows_the_snapshot(journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = agent_on(journal, snapshot_every=25)
    for _ in range(100):
        agent.learn(agent.choose(ARMS), "first")
    calls = []
    choose = FGTS.choose

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return choose(*arguments)

    monkeypatch.setattr(FGTS, "choose", counted)
    agent_on(journal, snapshot_every=25)
    assert len(calls) <= 13


def test_what_was_asked_and_told_is_written_down(journal: MemoryJournal) -> None:
    agent = agent_on(journal, Uniform())
    duel = agent.choose(ARMS)
    agent.learn(duel, winner=duel.second)
    agent.skip(agent.choose(ARMS))
    opened, asked, told, again, skipped = journal.read()
    assert opened.kind == "opened"
    assert opened.body["policy"] == {"kind": "Uniform"}
    assert {"dim", "seed", "version", "max_pending", "horizon"} <= set(opened.body)
    assert asked.kind == "asked"
    assert asked.body == {
        "id": 0,
        "set": FiniteActions(ARMS).digest.hex(),
        "set_bytes": len(asked.blob),
        "first": duel.first,
        "second": duel.second,
        "stream": 0,
        "policy": opened.position,
        "propensity": pytest.approx(1 / 15),
    }
    assert (told.kind, told.body) == ("told", {"id": 0, "winner": "second"})
    assert (again.kind, again.body["id"], again.blob) == ("asked", 1, b""), "the content of a set is written once"
    assert (skipped.kind, skipped.body) == ("skipped", {"id": 1})


def test_the_same_answer_again_is_no_news(journal: MemoryJournal, tmp_path: Path) -> None:
    agent = agent_on(journal)
    duel, other = agent.choose(ARMS), agent.choose(ARMS)
    agent.learn(duel, winner=duel.second)
    agent.skip(other)
    before, events = bytes_of(agent, tmp_path), len(list(journal.read()))
    agent.learn(duel, winner=duel.second)
    agent.learn(duel.id, winner=duel.second)
    agent.learn(duel, winner="second")
    agent.skip(other)
    assert bytes_of(agent, tmp_path) == before
    assert len(list(journal.read())) == events


@pytest.mark.parametrize(
    ("tell", "error", "says"),
    [
        (lambda agent: agent.learn(0, "first"), AlreadyLearntError, r"learnt before \(second"),
        (lambda agent: agent.skip(0), AlreadyLearntError, "learnt before"),
        (lambda agent: agent.learn(1, "first"), AlreadyLearntError, "skipped before"),
        (lambda agent: agent.learn(9, "first"), UnknownDuelError, "got duel 9"),
        (lambda agent: agent.learn(2, 77), InvalidInputError, "winner must be"),
        (lambda agent: agent.choose(ARMS[:, :3]), InvalidInputError, "dimension 3"),
        (lambda agent: agent.choose(np.full((3, 4), np.nan)), InvalidInputError, "finite"),
    ],
)
def test_bad_input_leaves_agent_and_journal_as_they_were(
    tell: Callable[[Agent], None], error: type[DuelistError], says: str, journal: MemoryJournal, tmp_path: Path
) -> None:
    agent = agent_on(journal)
    for _ in range(3):
        agent.choose(ARMS)
    agent.learn(0, "second")
    agent.skip(1)
    before, events = bytes_of(agent, tmp_path), list(journal.read())
    with pytest.raises(error, match=says):
        tell(agent)
    assert bytes_of(agent, tmp_path) == before
    assert list(journal.read()) == events
    assert bytes_of(agent_on(journal), tmp_path) == before


def test_a_set_that_no_journal_can_hold_is_refused_before_asking(journal: MemoryJournal) -> None:
    agent = Agent(Ends(), dim=2, journal=journal)
    with pytest.raises(InvalidInputError, match="Line"):
        agent.choose(Line())
    assert agent.report()["asked"] == 0
    assert [record.kind for record in journal.read()] == ["opened"]


def test_a_commit_that_fails_is_undone_in_memory_too(
    journal: MemoryJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_on(journal, snapshot_every=7)
    for t in range(40):
        act(agent, t)
    before = bytes_of(agent, tmp_path)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(journal._store, "commit", fail)
        with pytest.raises(JournalError, match="disk full"):
            agent.choose(ARMS)
        with pytest.raises(JournalError, match="disk full"):
            agent.learn(agent.pending[0], "first")
    agent.refresh()
    assert bytes_of(agent, tmp_path) == before
    for t in range(40, 60):
        act(agent, t)
    assert bytes_of(agent, tmp_path) == bytes_of(in_memory(60), tmp_path)


@pytest.mark.parametrize("error", [ZeroDivisionError, InvalidInputError])
def test_a_policy_that_breaks_in_the_middle_of_a_turn_is_undone(
    error: type[Exception], journal: MemoryJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = agent_on(journal, Uniform())
    for t in range(20):
        act(agent, t)
    before = bytes_of(agent, tmp_path)

    def breaks(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Uniform, "pair_probability", breaks)
        with pytest.raises(error):
            agent.choose(ARMS)
    agent.refresh()
    assert bytes_of(agent, tmp_path) == before


def test_agents_that_share_a_journal_stay_in_step(tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "shared.db") as left, SQLiteJournal(tmp_path / "shared.db") as right:
        agents = [agent_on(left, snapshot_every=15), agent_on(right, snapshot_every=15)]
        dice = random.Random(4)
        for t in range(80):
            agent = dice.choice(agents)
            agent.refresh()
            act(agent, t)
        for agent in agents:
            agent.refresh()
        assert bytes_of(agents[0], tmp_path) == bytes_of(agents[1], tmp_path) == bytes_of(in_memory(80), tmp_path)


def test_one_agent_may_answer_what_another_asked_without_being_told_of_it(journal: MemoryJournal) -> None:
    asking, answering = agent_on(journal), agent_on(journal)
    duel = asking.choose(ARMS)
    answering.learn(duel, winner=duel.first)
    with pytest.raises(AlreadyLearntError):
        asking.learn(duel, winner=duel.second)
    assert asking.rounds == 1


def test_the_pair_that_was_shown_stands_even_if_the_policy_would_now_choose_another(journal: MemoryJournal) -> None:
    duel = agent_on(journal).choose(ARMS)
    with MemoryJournal() as elsewhere:
        copy_events(journal, elsewhere, lambda body: {**body, "first": duel.second, "second": duel.first})
        seen = agent_on(elsewhere).pending[0]
    assert (seen.first, seen.second) == (duel.second, duel.first)
    assert (seen.features == ARMS[[duel.second, duel.first]]).all()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"seed": 12}, "seed 11; got 12"),
        ({"dim": 5}, "dim 4; got 5"),
        ({"max_pending": 3}, "max_pending 5; got 3"),
        ({"policy": Uniform()}, "policy .*Uniform"),
        ({"policy": FGTS(alpha=0.2)}, "'alpha': 0.1.* got .*'alpha': 0.2"),
    ],
)
@pytest.mark.parametrize("snapshot_every", [2, 1000])
def test_a_journal_of_another_agent_is_refused(
    changed: dict[str, Any], says: str, snapshot_every: int, journal: MemoryJournal
) -> None:
    agent = agent_on(journal, snapshot_every=snapshot_every)
    agent.learn(agent.choose(ARMS), "first")
    with pytest.raises(InvalidInputError, match=says):
        agent_on(journal, **changed)


def test_a_journal_of_something_else_is_refused(journal: MemoryJournal) -> None:
    journal.transact(lambda turn: turn.append("weather", {"rain": True}))
    with pytest.raises(SavedStateError, match="'weather'"):
        agent_on(journal)


def test_a_policy_of_the_users_own_may_live_on_a_journal(journal: MemoryJournal) -> None:
    for _ in range(3):
        agent = Agent(Ends(), dim=4, journal=journal, snapshot_every=3)
        agent.learn(agent.choose(ARMS), "second")
    assert agent.report()["sum"] == -3.0


class Unsaveable(Ends):
    def start(self, problem: Any, streams: Any) -> Any:  # noqa: ARG002
        return object()


def test_a_state_that_no_snapshot_can_hold_is_refused_at_once(journal: MemoryJournal) -> None:
    with pytest.raises(InvalidInputError, match="to_arrays"):
        Agent(Unsaveable(), dim=4, journal=journal)
    assert list(journal.read()) == []


def copy_events(source: Any, target: Any, change: Callable[[dict[str, Any]], dict[str, Any]] = dict) -> None:
    """The events of one journal on another; `change` rewrites the duels that were asked."""

    def transaction(turn: Turn) -> None:
        for record in source.read():
            turn.append(record.kind, change(record.body) if record.kind == "asked" else record.body, record.blob)

    target.transact(transaction)


_PLAYER = """
import sys
import numpy as np
import duelist
from duelist.journal.sqlite import SQLiteJournal
agent = duelist.Agent(duelist.FGTS(), dim=4, seed=5, journal=SQLiteJournal(sys.argv[1]), snapshot_every=40)
arms = np.random.default_rng(0).standard_normal((6, 4))
print("ready", flush=True)
while True:
    duel = agent.choose(arms)
    print("asked", duel.id, duel.first, duel.second, flush=True)
    winner = min(duel.first, duel.second)
    agent.learn(duel, winner)
    print("told", duel.id, winner, flush=True)
"""


@pytest.mark.slow
def test_killing_the_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    path, dice = tmp_path / "votes.db", random.Random(0)
    acknowledged: list[list[str]] = []
    for _ in range(4):
        player = subprocess.Popen([sys.executable, "-c", _PLAYER, str(path)], stdout=subprocess.PIPE, text=True)
        assert player.stdout is not None
        acknowledged += [player.stdout.readline().split() for _ in range(dice.randrange(10, 90))]
        time.sleep(dice.random() * 0.003)
        player.send_signal(signal.SIGKILL)
        # The last line may be cut off by the signal; then nothing was acknowledged by it.
        acknowledged += [line.split() for line in player.stdout if line.endswith("\n")]
        player.wait()
        player.stdout.close()
    with SQLiteJournal(path) as journal, MemoryJournal() as straight:
        asked = {r.body["id"]: (r.body["first"], r.body["second"]) for r in journal.read() if r.kind == "asked"}
        told = [r.body["id"] for r in journal.read() if r.kind == "told"]
        assert len(told) == len(set(told))
        for kind, *facts in (line for line in acknowledged if line != ["ready"]):
            if kind == "asked":
                assert asked[int(facts[0])] == (int(facts[1]), int(facts[2]))
            else:
                assert int(facts[0]) in told
        copy_events(journal, straight)
        settings: dict[str, Any] = {"dim": 4, "seed": 5}
        restarted = Agent(FGTS(), journal=journal, **settings)
        assert bytes_of(restarted, tmp_path) == bytes_of(Agent(FGTS(), journal=straight, **settings), tmp_path)


def test_a_tie_told_twice_counts_once_and_survives_a_restart(journal: MemoryJournal, tmp_path: Path) -> None:
    agent = agent_on(journal)
    duel = agent.choose(ARMS)
    agent.learn(duel, winner="tie")
    again = agent_on(journal)
    again.learn(duel, winner="tie")
    assert again.rounds == 1
    with pytest.raises(AlreadyLearntError, match="a tie"):
        again.learn(duel, winner="first")
    assert bytes_of(again, tmp_path) == bytes_of(agent, tmp_path)
    assert [record.body["winner"] for record in journal.read() if record.kind == "told"] == ["tie"]


def test_the_probability_of_a_pair_is_in_the_journal_where_it_can_be_estimated(journal: MemoryJournal) -> None:
    agent = agent_on(journal)
    for _ in range(5):
        agent.learn(agent.choose(ARMS), winner="first")
    asked = [record.body["propensity"] for record in journal.read() if record.kind == "asked"]
    assert len(asked) == 5
    assert all(0.0 < probability < 1.0 for probability in asked)
    with MemoryJournal() as other:
        agent_on(other, FGTS(sampler="paper")).choose(ARMS)
        unknown = [record.body["propensity"] for record in other.read() if record.kind == "asked"]
    assert unknown == [None], "unknown is not zero"


def test_a_snapshot_that_cannot_be_read_gives_way_to_a_replay_of_everything(journal: MemoryJournal, tmp_path: Path) -> None:
    agent = agent_on(journal, snapshot_every=10)
    for t in range(40):
        act(agent, t)
    for data in (b"written by another version", to_bytes({"agent": 1, "lane": {}}), to_bytes({"agent": 7})):
        journal.transact(lambda turn, data=data: turn.save_snapshot(data))  # type: ignore[misc]
        assert bytes_of(agent_on(journal), tmp_path) == bytes_of(agent, tmp_path)


def test_sets_that_were_offered_need_not_be_written_again_after_a_snapshot(journal: MemoryJournal) -> None:
    for _ in range(4):
        agent = agent_on(journal, Uniform(), snapshot_every=2)
        agent.choose(ARMS)
        agent.choose(OTHER_ARMS)
    written = [record.body["id"] for record in journal.read() if "set_bytes" in record.body]
    assert written == [0, 1]


def test_more_sets_than_are_remembered_are_written_again(journal: MemoryJournal, tmp_path: Path) -> None:
    sets = [ARMS * (1.0 + i) for i in range(70)]
    agent = agent_on(journal, Uniform(), snapshot_every=33)
    for features in [*sets, *sets]:
        agent.choose(features)
    assert bytes_of(agent_on(journal, Uniform()), tmp_path) == bytes_of(agent, tmp_path)


def test_a_journal_of_another_version_is_marked_where_this_one_takes_over(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1.0", "1.0", "2.0"):
        monkeypatch.setattr("duelist.live.agent_log.__version__", version)
        agent_on(journal).choose(ARMS)
    opened = [(record.position, record.body["version"]) for record in journal.read() if record.kind == "opened"]
    assert opened == [(1, "1.0"), (4, "2.0")]
    assert [record.body["policy"] for record in journal.read() if record.kind == "asked"] == [1, 1, 4]


def test_a_description_without_later_hyper_parameters_is_the_same_policy(journal: MemoryJournal) -> None:
    agent_on(journal).choose(ARMS)
    with MemoryJournal() as older:
        first, *rest = journal.read()
        policy = {name: value for name, value in first.body["policy"].items() if name != "exact_rounds"}
        older.transact(lambda turn: turn.append("opened", {**first.body, "policy": policy}))
        older.transact(lambda turn: [turn.append(record.kind, record.body, record.blob) for record in rest])
        assert agent_on(older).pending == agent_on(journal).pending


@stored("test-growing-state")
class Growing(NamedTuple):
    told: tuple[Any, ...] = ()


class TurnsUnsaveable(Ends):
    """Its state can be saved until it has learnt twice."""

    def start(self, problem: Any, streams: Any) -> Any:  # noqa: ARG002
        return Growing()

    def learn(self, state: Any, actions: Any, duels: Any, outcomes: Any) -> Any:  # noqa: ARG002
        return Growing((*state.told, object() if len(state.told) == 1 else 1.0))

    def report(self, state: Any) -> dict[str, Any]:
        return {"told": np.array([float(len(state.told))])}


def test_a_state_that_can_no_longer_be_saved_costs_no_vote(journal: MemoryJournal) -> None:
    agent = Agent(TurnsUnsaveable(), dim=4, journal=journal, snapshot_every=2)
    for _ in range(5):
        agent.learn(agent.choose(ARMS), "first")
    assert agent.report()["told"] == 5.0
    again = Agent(TurnsUnsaveable(), dim=4, journal=journal, snapshot_every=2)
    assert again.report()["told"] == 5.0
