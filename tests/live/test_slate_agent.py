"""An agent of slates asks, learns winners and rankings, is saved, and goes on from its journal bit for bit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import AlreadyLearntError, InvalidInputError, UnknownDuelError
from duelist.core.lanes import Problem
from duelist.core.serialize import to_bytes
from duelist.core.streams import Streams
from duelist.history.slates import Slates, slates_of
from duelist.journal.memory import MemoryJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.live.slate import Slate
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.preferences.plackett_luce import RankingError
from duelist.preferences.ties import LearntDavidson
from tests.support.agents import ARMS, bytes_of

POLICY = ListwiseFGTS(choices=3, feedback="ranking")
TIES = ListwiseFGTS(choices=3, ties=LearntDavidson())


@pytest.fixture
def journal() -> Iterator[MemoryJournal]:
    with MemoryJournal() as opened:
        yield opened


def agent_of(policy: Any = POLICY, **settings: Any) -> Any:
    return Agent(policy, **{"dim": 4, "seed": 11, "max_pending": 5, **settings})


def act(agent: Any, t: int) -> None:
    """One of the things that happen to an agent: asking, answering late and out of order, skipping, forgetting."""
    dice = random.Random(t)
    pending = agent.pending
    if not pending or dice.random() < 0.55:
        agent.choose(ARMS if dice.random() < 0.7 else ARMS[:5])
        return
    slate = dice.choice(pending)
    rows = sorted(slate.rows)
    if dice.random() < 0.1:
        agent.skip(slate)
    elif dice.random() < 0.5:
        agent.learn(slate, winner=rows[0])
    else:
        agent.learn(slate, ranking=rows[: dice.randrange(1, len(rows) + 1)])


def test_a_slate_shows_as_many_rows_as_the_policy_has_choices() -> None:
    agent = agent_of()
    for number in range(10):
        slate = agent.choose(ARMS)
        assert (slate.id, len(slate.rows)) == (number, 3)
        assert (slate.features == ARMS[list(slate.rows)]).all()
        agent.learn(slate, winner=slate.rows[0])
    assert agent.rounds == 10


def test_a_policy_sees_the_same_state_as_without_the_agent() -> None:
    streams, arms = Streams(11, [0]), FiniteActions(ARMS)
    state = POLICY.start(Problem(dim=4, live=True), streams)
    agent = agent_of()
    for t in range(15):
        slates, state = POLICY.choose(state, arms, streams)
        slate = agent.choose(ARMS)
        assert slate.rows == tuple(slates.rows[0].tolist())
        places = [t % 3, (t + 1) % 3]
        state = POLICY.learn(state, arms, slates, [places])
        ranked = [slate.rows[place] for place in places]
        if len(set(slate.rows)) == 3:
            agent.learn(slate, ranking=ranked)
        else:
            agent._state.tell(slate.id, tuple(places))


def test_the_preferred_arm_is_shown_more_and_more() -> None:
    agent, utilities = agent_of(), ARMS @ np.array([1.0, 2.0, -1.0, 0.5])
    best, shown = int(np.argmax(utilities)), []
    for _ in range(60):
        slate = agent.choose(ARMS)
        shown.append(best in slate.rows)
        agent.learn(slate, ranking=sorted(slate.rows, key=lambda row: -utilities[row]))
    assert np.mean(shown[-20:]) > 0.9


def test_a_loaded_agent_goes_on_bit_for_bit(tmp_path: Path) -> None:
    straight, broken = agent_of(), agent_of()
    for t in range(60):
        act(straight, t)
        act(broken, t)
        if t in (0, 25, 40):
            broken.save(tmp_path / "agent")
            pending = broken.pending
            broken = Agent.load(tmp_path / "agent")
            assert broken.pending == pending
    assert bytes_of(broken, tmp_path) == bytes_of(straight, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("snapshot_every", [1, 9, 1000])
def test_stopping_at_any_point_changes_nothing(snapshot_every: int, journal: MemoryJournal, tmp_path: Path) -> None:
    agent, straight = agent_of(journal=journal, snapshot_every=snapshot_every), agent_of()
    for t in range(60):
        act(agent, t)
        act(straight, t)
        if t % 7 == 0:
            agent = agent_of(journal=journal, snapshot_every=snapshot_every)
    assert bytes_of(agent, tmp_path) == bytes_of(straight, tmp_path)


def test_what_was_asked_and_told_is_written_down(journal: MemoryJournal) -> None:
    agent = agent_of(TIES, journal=journal)
    slate = agent.choose(ARMS)
    agent.learn(slate, winner=slate.rows[1])
    agent.learn(agent.choose(ARMS), winner="tie")
    opened, asked, told, _again, tied = journal.read()
    assert (opened.body["policy_name"], asked.body["rows"]) == ("ListwiseFGTS", list(slate.rows))
    place = slate.rows.index(slate.rows[1])
    assert (told.body, tied.body) == ({"id": 0, "ranking": [place]}, {"id": 1, "ranking": []})


def test_the_same_answer_again_is_no_news_on_a_journal(journal: MemoryJournal) -> None:
    agent = agent_of(journal=journal)
    slate = agent.choose(ARMS)
    agent.learn(slate, ranking=slate.rows)
    events = len(list(journal.read()))
    agent.learn(slate, ranking=slate.rows)
    assert (agent.rounds, len(list(journal.read()))) == (1, events)
    with pytest.raises(AlreadyLearntError, match="learnt before"):
        agent.learn(slate, winner=slate.rows[0])


def test_in_memory_telling_twice_is_an_error() -> None:
    agent = agent_of()
    slate = agent.choose(ARMS)
    agent.learn(slate, ranking=slate.rows)
    with pytest.raises(AlreadyLearntError, match=r"places 0, 1, 2, best first"):
        agent.learn(slate, ranking=slate.rows)


@pytest.mark.parametrize(
    ("tell", "error", "says"),
    [
        (lambda agent: agent.learn(0, winner=77), RankingError, "names rows of"),
        (lambda agent: agent.learn(0, ranking=[]), RankingError, "at least the winner"),
        (lambda agent: agent.learn(0, ranking=[1.5]), RankingError, "names rows of"),
        (lambda agent: agent.learn(0, winner=True), RankingError, "names rows of"),
        (lambda agent: agent.learn(0, ranking=[agent.pending[0].rows[0]] * 4), RankingError, "as often as it was shown"),
        (lambda agent: agent.learn(0, winner="first"), RankingError, 'the one word is "tie"'),
        (lambda agent: agent.learn(0), InvalidInputError, "either winner or ranking"),
        (lambda agent: agent.learn(9, winner=0), UnknownDuelError, "asked slates 0 to 0; got slate 9"),
        (lambda agent: agent.learn("0", winner=0), InvalidInputError, "expected a Slate"),
        (lambda agent: agent.learn(Slate(0, (9, 9, 9), ARMS), winner=9), UnknownDuelError, "another agent"),
        (lambda agent: agent.choose(ARMS[:, :2]), InvalidInputError, "dimension 2"),
    ],
)
@pytest.mark.parametrize("on_journal", [False, True])
def test_bad_input_gets_an_error_that_teaches_and_changes_nothing(
    tell: Callable[[SlateAgent], None],
    error: type[Exception],
    says: str,
    on_journal: bool,
    journal: MemoryJournal,
    tmp_path: Path,
) -> None:
    agent = agent_of(journal=journal if on_journal else None)
    agent.choose(ARMS)
    before, events = bytes_of(agent, tmp_path), list(journal.read())
    with pytest.raises(error, match=says):
        tell(agent)
    assert bytes_of(agent, tmp_path) == before
    assert list(journal.read()) == events
    assert agent._replica is None or agent._replica.counters.rebuilt == 1


def test_a_row_that_is_there_twice_takes_the_places_in_order() -> None:
    kind = agent_of()._state.kind
    assert kind.read_answer(0, (4, 2, 4), [4, 4, 2]) == (0, 2, 1)
    assert kind.read_answer(0, (4, 2, 4), 4) == (0,)


def test_the_policy_decides_which_agent_it_is() -> None:
    assert type(Agent(POLICY, dim=4)) is SlateAgent
    assert type(Agent(ListwiseFGTS(choices=2), dim=4)) is Agent
    with pytest.raises(InvalidInputError, match="Make an Agent with it"):
        SlateAgent(FGTS(), dim=4)
    with pytest.raises(InvalidInputError, match="asks about pairs"):
        Agent(FGTS(), dim=4).change_policy(POLICY)
    with pytest.raises(InvalidInputError, match="have 3 candidates"):
        Agent(POLICY, dim=4).change_policy(ListwiseFGTS(choices=4))


def test_threads_may_share_an_agent(journal: MemoryJournal) -> None:
    agent = agent_of(journal=journal)

    def play() -> None:
        for _ in range(10):
            slate = agent.choose(ARMS)
            agent.learn(slate, winner=slate.rows[-1])

    threads = [threading.Thread(target=play) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (agent.rounds, agent.report()["asked"], agent.pending) == (30, 30, ())


@pytest.mark.parametrize("on_journal", [False, True])
def test_answers_to_slates_can_be_taken_back_exactly(on_journal: bool, journal: MemoryJournal) -> None:
    """The oracle was asked the same questions, showed the same slates, and was not told what is taken back."""
    agent, never_told = agent_of(journal=journal if on_journal else None), agent_of()
    for t in range(12):
        slate, voter = agent.choose(ARMS), ("ann", "bob")[t % 2]
        ranking = sorted(slate.rows)
        agent.learn(slate, ranking=ranking, voter=voter, time=float(t))
        shown = Slates(np.array([slate.rows]), np.array(slate.features)[None])
        never_told._memory.ask_again(FiniteActions(ARMS), shown)
        if voter == "ann" or t == 5:
            never_told.skip(slate.id)
        else:
            never_told.learn(slate.id, ranking=ranking)
    assert agent.forget(voter="ann") == 6
    assert agent.forget(5) == 1
    assert same_but_log(agent, never_told)
    if on_journal:
        assert same_but_log(agent_of(journal=journal), never_told)


def same_but_log(one: Any, other: Any) -> bool:
    """Whether two agents have learnt the same, bit for bit; a log also knows who voted when."""
    return bool(to_bytes(one._state.to_saved()) == to_bytes(other._state.to_saved()))


def test_changing_the_policy_learns_all_answers_again() -> None:
    agent, other = agent_of(), agent_of(ListwiseFGTS(choices=3, feedback="ranking", mu=0.0))
    for _ in range(9):
        slate = agent.choose(ARMS)
        agent.learn(slate, ranking=sorted(slate.rows))
        other._memory.ask_again(FiniteActions(ARMS), Slates(np.array([slate.rows]), np.array(slate.features)[None]))
        other.learn(slate.id, ranking=sorted(slate.rows))
    agent.change_policy(other.policy)
    assert same_but_log(agent, other)


def test_votes_on_pairs_are_learnt_as_slates_of_two() -> None:
    agent = agent_of()
    agent.import_votes(ARMS[[0, 1]], ARMS[[2, 3]], [1, 0])
    streams = Streams(11, [0])
    state = POLICY.start(Problem(dim=4, live=True), streams)
    for first, second, answer in ((0, 2, [0]), (1, 3, "tie")):
        pair = ARMS[[first, second]]
        order = [0, 1] if pair[0].tobytes() + pair[1].tobytes() <= pair[1].tobytes() + pair[0].tobytes() else [1, 0]
        arms, rows = FiniteActions(pair[order]), np.array([[order.index(0), order.index(1)]])
        state = POLICY.learn(state, arms, slates_of(arms, rows), [answer])  # type: ignore[list-item]
    theta = np.random.default_rng(0).normal(size=(1, 3, 4))
    mine = agent.policy.potential(agent._state.lane.state).value_and_gradient(theta)[0]
    np.testing.assert_allclose(mine, POLICY.potential(state).value_and_gradient(theta)[0], rtol=1e-12)


def test_what_is_believed_agrees_with_quadrature() -> None:
    """One feature, so that the posterior is an integral over a line."""
    arms = np.array([[0.0], [0.6], [1.5], [-0.7]])
    agent = agent_of(dim=1)
    grid = np.linspace(-8.0, 8.0, 4001)
    log_density = -0.5 * grid**2
    for t in range(40):
        slate = agent.choose(arms)
        ranking = sorted(slate.rows, key=lambda row: (row * 7 + t) % 5)
        agent.learn(slate, ranking=ranking)
        left = list(ranking)
        while len(left) > 1:
            utilities = np.outer(grid, arms[left, 0])
            log_density += utilities[:, 0] - np.log(np.exp(utilities).sum(axis=1))
            left.pop(0)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = float(density @ grid)
    sd = float(np.sqrt(density @ (grid - mean) ** 2))
    belief = agent.predict(arms)
    relative = arms[:, 0] - arms[:, 0].mean()
    assert belief.votes == 40
    # 512 draws, not independent: an effective 200 of them, and four standard errors.
    np.testing.assert_allclose(belief.utility, mean * relative, atol=4 * sd / np.sqrt(200) * np.abs(relative).max())
    assert agent.best(arms) == int(np.argmax(mean * relative))
    assert agent.preference(arms[2], arms[0]).probability == pytest.approx(
        float(density @ (1 / (1 + np.exp(-grid * 1.5)))), abs=0.04
    )


def test_guardrails_and_costs_are_for_pairs() -> None:
    agent = agent_of()
    with pytest.raises(InvalidInputError, match="for pairs"):
        agent.set_guardrails(None)
    with pytest.raises(InvalidInputError, match="for pairs"):
        agent.set_cost_weight(1.0)
