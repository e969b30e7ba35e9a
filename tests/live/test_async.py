"""Waiting for an agent without blocking an event loop: nothing is lost, doubled or left half done, cancelled or not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from duelist.journal.memory import MemoryJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from tests.support.agents import ARMS, bytes_of


@pytest.fixture(params=["memory", "journal"])
def agent(request: pytest.FixtureRequest) -> Iterator[Agent]:
    if request.param == "memory":
        yield Agent(FGTS(), dim=4, seed=3)
        return
    with MemoryJournal() as journal:
        yield Agent(FGTS(), dim=4, seed=3, journal=journal)


def hold(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Make the policy stop in the middle of choosing, until it may go on."""
    entered, go_on = threading.Event(), threading.Event()
    propose = agent._state.propose

    def slowly(*arguments: Any) -> Any:
        entered.set()
        assert go_on.wait(10)
        return propose(*arguments)

    monkeypatch.setattr(agent._state, "propose", slowly)
    return entered, go_on


def test_awaiting_gives_the_agent_that_calling_gives(agent: Agent, tmp_path: Path) -> None:
    reference = Agent(FGTS(), dim=4, seed=3)
    for t in range(20):
        duel = reference.choose(ARMS)
        if t % 5:
            reference.learn(duel, "left", voter="ann", time=float(t))
        else:
            reference.skip(duel)

    async def play() -> None:
        for t in range(20):
            duel = await agent.choose_async(ARMS)
            if t % 5:
                await agent.learn_async(duel, "left", voter="ann", time=float(t))
            else:
                await agent.skip_async(duel)

    asyncio.run(play())
    assert bytes_of(agent, tmp_path) == bytes_of(reference, tmp_path)
    assert agent.forget(voter="ann") == 16


def test_the_loop_runs_on_while_a_pair_is_chosen(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = hold(agent, monkeypatch)

    async def play() -> int:
        choosing = asyncio.create_task(agent.choose_async(ARMS))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        assert not choosing.done(), "and yet this line is reached"
        go_on.set()
        return (await choosing).id

    assert asyncio.run(play()) == 0


def test_many_at_once_are_all_answered_and_counted_once(agent: Agent) -> None:
    async def one() -> int:
        duel = await agent.choose_async(ARMS)
        await agent.learn_async(duel, "first")
        return duel.id

    async def play() -> list[int]:
        return await asyncio.gather(*(one() for _ in range(40)))

    assert sorted(asyncio.run(play())) == list(range(40))
    assert agent.rounds == 40
    assert agent.pending == ()


def test_a_cancelled_question_is_skipped_and_the_next_is_as_if_it_had_been(
    agent: Agent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entered, go_on = hold(agent, monkeypatch)

    async def play() -> None:
        choosing = asyncio.create_task(agent.choose_async(ARMS))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        choosing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await choosing
        go_on.set()
        while agent.report()["asked"] < 1 or agent.pending:
            await asyncio.sleep(0.001)
        await agent.learn_async(await agent.choose_async(ARMS), "second")

    asyncio.run(play())
    reference = Agent(FGTS(), dim=4, seed=3)
    reference.skip(reference.choose(ARMS))
    reference.learn(reference.choose(ARMS), "second")
    monkeypatch.undo()
    assert bytes_of(agent, tmp_path) == bytes_of(reference, tmp_path)


def test_a_cancelled_answer_is_learnt_all_the_same(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    duel = agent.choose(ARMS)
    entered, go_on = hold(agent, monkeypatch)

    async def play() -> None:
        choosing = asyncio.create_task(agent.choose_async(ARMS))
        while not entered.is_set():
            await asyncio.sleep(0.001)
        learning = asyncio.create_task(agent.learn_async(duel, "first"))  # it waits behind the other
        await asyncio.sleep(0.01)
        learning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await learning
        go_on.set()
        await choosing
        while not agent.rounds:
            await asyncio.sleep(0.001)

    asyncio.run(play())
    assert [one.id for one in agent.pending] == [1]


def test_errors_reach_who_awaits_and_a_cancelled_error_harms_nobody(agent: Agent) -> None:
    async def play() -> None:
        with pytest.raises(ValueError, match="features"):
            await agent.choose_async([[1.0, float("nan"), 0.0, 0.0]] * 2)
        choosing = asyncio.create_task(agent.choose_async([[1.0]]))
        await asyncio.sleep(0)
        choosing.cancel()
        await asyncio.gather(choosing, return_exceptions=True)

    asyncio.run(play())
    assert agent.report()["asked"] == 0


def test_slates_can_be_awaited_too() -> None:
    agent: Any = SlateAgent(ListwiseFGTS(choices=3), dim=4)

    async def play() -> None:
        slate = await agent.choose_async(ARMS)
        await agent.learn_async(slate, ranking=list(slate.rows))
        await agent.skip_async(await agent.choose_async(ARMS))

    asyncio.run(play())
    assert (agent.rounds, agent.pending) == (1, ())
