"""Tastes drift: an agent that forgets follows, one that does not stays behind."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.samplers.mala import MALA

ARMS = np.random.default_rng(3).standard_normal((8, 4))


def share_of_best_after_a_change_of_taste(policy: FGTS) -> float:
    """Votes follow theta for 600 duels and -theta for 300 more: how often the new best arm is shown in the last 100."""
    agent = Agent(policy, dim=4, seed=0)
    theta = np.array([1.5, -1.0, 0.5, 2.0])
    voter = np.random.default_rng(0)
    shown = []
    for t in range(900):
        utilities = ARMS @ (theta if t < 600 else -theta)
        duel = agent.choose(ARMS)
        chance = 1.0 / (1.0 + np.exp(utilities[duel.second] - utilities[duel.first]))
        agent.learn(duel, "first" if voter.random() < chance else "second")
        shown.append(int(np.argmax(utilities)) in (duel.first, duel.second))
    return float(np.mean(shown[-100:]))


@pytest.mark.slow
def test_an_agent_that_forgets_follows_a_change_of_taste() -> None:
    assert share_of_best_after_a_change_of_taste(FGTS(discount=0.98)) > 0.8
    assert share_of_best_after_a_change_of_taste(FGTS()) < 0.2


@pytest.mark.slow
def test_the_sampler_stays_tuned_however_long_the_forgotten_past() -> None:
    """What shapes the proposals is renewed with the memory, not with the number of votes ever cast."""
    agent = Agent(FGTS(discount=0.98, sampler=MALA(steps=4)), dim=4, seed=0)
    for _ in range(3000):
        agent.learn(agent.choose(ARMS), "first")
    before = agent._state.lane.state.chains.curvature.observations
    for _ in range(10):
        agent.learn(agent.choose(ARMS), "first")
    assert agent._state.lane.state.chains.curvature.observations >= before + 6
    assert agent.report()["acceptance"] == pytest.approx(0.574, abs=0.1)
