"""Exploration shows any two candidates now and then, and the propensity of every duel is what the frequencies say."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist import FGTS, MALA, Agent, BallActions, CoLSTIM, DuelistError, Foresight, MaxInP, Uniform
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.journal import MemoryJournal
from duelist.live import Duel, LiveLane, SlateAgent
from duelist.policies import ListwiseFGTS

ARMS = np.random.default_rng(3).standard_normal((4, 3))
PAIRS = [*itertools.combinations(range(4), 2)]


def name_of(policy: Any) -> str:
    return type(policy).__name__


def pair_of(duel: Duel) -> tuple[int, int]:
    return min(duel.rows), max(duel.rows)


def taught(policy: Any, votes: int = 40, **settings: Any) -> Agent:
    """An agent that has learnt some votes, which do not depend on the policy."""
    agent = Agent(policy, dim=3, **settings)
    rng = np.random.default_rng(0)
    rows = np.array([rng.choice(4, 2, replace=False) for _ in range(votes)])
    wins = rng.random(votes) < 1.0 / (1.0 + np.exp(-(ARMS[rows[:, 0]] - ARMS[rows[:, 1]]) @ [0.4, -0.3, 0.2]))
    agent.import_votes(ARMS[rows[:, 0]], ARMS[rows[:, 1]], np.where(wins, 1, -1))
    return agent


def shown_by(agent: Agent, duels: int) -> list[Duel]:
    """What the agent shows when asked again and again, without an answer in between."""
    shown = []
    for _ in range(duels):
        shown.append(agent.choose(ARMS))
        agent.skip(shown[-1])
    return shown


@pytest.mark.parametrize("policy", [FGTS(), Foresight(), CoLSTIM(), MaxInP()], ids=name_of)
def test_without_a_turn_of_the_coin_the_policy_shows_what_it_would_have_shown(policy: Any) -> None:
    plain, mixed = taught(policy), taught(policy, exploration=0.3)
    same = [one == other for one, other in zip(shown_by(plain, 200), shown_by(mixed, 200), strict=True)]
    # A fair draw of the 12 ordered pairs is the policy's own pair now and then.
    assert 0.6 < np.mean(same) < 0.9


@pytest.mark.parametrize("policy", [Foresight(), MaxInP(), CoLSTIM(), FGTS(), Uniform()], ids=name_of)
def test_every_pair_is_shown_as_often_as_its_propensity_says(policy: Any) -> None:
    # Horvitz and Thompson: the inverse propensities of the times that a pair was shown add up to the number of duels, whatever
    # the policy did. A propensity that is wrong by a factor makes the sum wrong by that factor.
    n = 4000
    shown = shown_by(taught(policy, exploration=0.5), n)
    for pair in PAIRS:
        inverse = np.array([1.0 / duel.propensity if pair_of(duel) == pair else 0.0 for duel in shown])
        # Four and a half standard errors: one false alarm in 5,000 runs of the 30 sums of this table.
        assert inverse.mean() == pytest.approx(1.0, abs=4.5 * inverse.std() / math.sqrt(n))


@pytest.mark.parametrize("policy", [FGTS(alpha=0.0, sampler=MALA(steps=20)), Uniform()], ids=name_of)
def test_a_policy_that_draws_knows_how_often_it_shows_a_pair(policy: Any) -> None:
    n = 4000
    shown = shown_by(taught(policy), n)
    counts = Counter(pair_of(duel) for duel in shown)
    stated = {pair: np.mean([duel.propensity for duel in shown if pair_of(duel) == pair]) for pair in counts}
    assert sum(stated.values()) == pytest.approx(1.0, abs=0.05)
    for pair, count in counts.items():
        # For Uniform the error is that of a share of 4,000. FGTS estimates from a normal approximation, which is skew by a few
        # hundredths after 40 votes.
        room = 4.5 * math.sqrt(count) / n if isinstance(policy, Uniform) else 0.04
        assert stated[pair] == pytest.approx(count / n, abs=room)


def test_the_mixture_is_exact() -> None:
    agent = taught(MaxInP(), exploration=0.05)
    own = next(duel for duel in shown_by(taught(MaxInP()), 1))
    for duel in shown_by(agent, 300):
        by_policy = pair_of(duel) == pair_of(own)
        assert duel.propensity == pytest.approx(0.95 * by_policy + 0.05 / 6)
    assert Agent(MaxInP(), dim=3, exploration=1.0).choose(ARMS).propensity == pytest.approx(1 / 6)


def test_the_coin_is_the_same_on_a_journal_after_a_restart_and_after_loading(tmp_path: Path) -> None:
    def play(agent: Agent, duels: int) -> list[tuple[int, int, float]]:
        shown = []
        for _ in range(duels):
            duel = agent.choose(ARMS)
            agent.learn(duel, winner="left")
            shown.append((*duel.rows, duel.propensity))
        return shown

    settings: dict[str, Any] = {"dim": 3, "seed": 4, "exploration": 0.4}
    expected = play(Agent(Foresight(), **settings), 60)
    with MemoryJournal() as journal:
        shown = play(Agent(Foresight(), journal=journal, **settings), 30)
        shown += play(Agent(Foresight(), journal=journal, **settings), 30)
        events = [record.body for record in journal.read() if record.kind == "asked"]
    assert shown == expected
    assert [event["propensity"] for event in events] == [propensity for *_, propensity in expected]
    assert {event["exploration"] for event in events} == {0.4}
    assert 12 <= sum(event["explored"] for event in events) <= 36
    saved = Agent(Foresight(), **settings)
    first_half = play(saved, 30)
    saved.save(tmp_path / "agent.npz")
    assert first_half + play(Agent.load(tmp_path / "agent.npz"), 30) == expected


def test_a_journal_may_be_opened_with_another_exploration() -> None:
    with MemoryJournal() as journal:
        for exploration in (0.0, 0.5, 0.0):
            agent = Agent(MaxInP(), dim=3, journal=journal, exploration=exploration)
            for _ in range(5):
                agent.learn(agent.choose(ARMS), winner="first")
        known = [record.body["propensity"] is not None for record in journal.read() if record.kind == "asked"]
    assert known == [False] * 5 + [True] * 5 + [False] * 5


def test_an_arm_beside_itself_has_one_order() -> None:
    lane = LiveLane(FGTS(same_arm="allow"), Problem(dim=3, live=True), seed=0)
    total = 0.0
    proposal = lane.propose(FiniteActions(ARMS))
    for first, second in itertools.combinations_with_replacement(range(4), 2):
        features = ARMS[[first, second]][None]
        shown = proposal.shown._replace(first=np.array([first]), second=np.array([second]), features=features)
        total += lane.propensity(proposal._replace(shown=shown))
    assert total == pytest.approx(1.0)


def test_where_anything_else_intervened_the_propensity_is_unknown() -> None:
    lane = LiveLane(Uniform(), Problem(dim=3, live=True), seed=0)
    proposal = lane.explore(lane.propose(FiniteActions(ARMS)), 0.5, 0)
    assert lane.propensity(proposal) in (pytest.approx(0.5 + 0.5 / 6), pytest.approx(0.5 / 6))
    assert math.isnan(lane.propensity(proposal._replace(intervened=True)))


def test_what_cannot_be_explored_is_refused() -> None:
    with pytest.raises(DuelistError, match="exploration"):
        Agent(FGTS(), dim=3, exploration=1.5)
    with pytest.raises(DuelistError, match="finite action set"):
        Agent(FGTS(), dim=3, exploration=0.1).choose(BallActions(lanes=1, dim=3))
    with pytest.raises(DuelistError, match="duels"):
        SlateAgent(ListwiseFGTS(choices=3), dim=3, exploration=0.1)
