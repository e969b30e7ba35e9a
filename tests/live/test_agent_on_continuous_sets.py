"""An agent in live use on continuous sets: points instead of rows, never the same point twice, saved and on a journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.box import BoxActions
from duelist.actions.custom import CustomActions
from duelist.actions.ellipsoid import EllipsoidActions
from duelist.actions.finite import ActionSet
from duelist.actions.polytope import PolytopeActions
from duelist.actions.product import ProductActions
from duelist.core.errors import InvalidInputError
from duelist.journal.memory import MemoryJournal
from duelist.live.agent import Agent
from duelist.policies.algorithms.confidence.maxinp import MaxInP
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.sampling.finite_models import FiniteModels
from duelist.policies.base import Policy

SETS: dict[str, ActionSet] = {
    "ball": BallActions(1, 2),
    "box": BoxActions([-1.0, 0.0], [1.0, 1.0]),
    "ellipsoid": EllipsoidActions([[1.0, 0.5], [0.0, 1.0]]),
    "triangle": PolytopeActions([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [0.0, 0.0, 1.0]),
    "product": ProductActions([BoxActions([0.0], [1.0]), BallActions(1, 1)]),
}
TRUTH = np.array([1.0, 2.0])


def _ask(agent: Agent, actions: ActionSet, rounds: int) -> list[list[float]]:
    shown = []
    for _ in range(rounds):
        duel = agent.choose(actions)
        assert (duel.first, duel.second) == (-1, -1)
        assert not np.array_equal(duel.features[0], duel.features[1])
        agent.learn(duel, winner="first" if (duel.features[0] - duel.features[1]) @ TRUTH > 0 else "second")
        shown.append(duel.features.ravel().tolist())
    return shown


@pytest.mark.parametrize("name", SETS)
def test_an_agent_ends_near_the_best_point(name: str) -> None:
    agent = Agent(FGTS(), dim=2, seed=1)
    shown = _ask(agent, SETS[name], 60)
    best = SETS[name].best(TRUTH[None, None]).value[0, 0]
    worst = -SETS[name].best(-TRUTH[None, None]).value[0, 0]
    firsts = np.array(shown)[-20:, :2] @ TRUTH
    assert np.median(best - firsts) < 0.15 * (best - worst)


@pytest.mark.parametrize("policy", [FGTS(), FiniteModels(models=60)], ids=["FGTS", "FiniteModels"])
@pytest.mark.parametrize("name", SETS)
def test_a_saved_agent_goes_on_bit_for_bit(policy: Policy[Any], name: str, tmp_path: Path) -> None:
    agent = Agent(policy, dim=2, seed=3)
    _ask(agent, SETS[name], 6)
    waiting = agent.choose(SETS[name])
    agent.save(tmp_path / "agent.npz")
    again = Agent.load(tmp_path / "agent.npz")
    for one in (agent, again):
        one.learn(waiting.id, winner="second")
    assert _ask(agent, SETS[name], 6) == _ask(again, SETS[name], 6)


@pytest.mark.parametrize("name", SETS)
def test_an_agent_on_a_journal_restarts_where_it_was(name: str) -> None:
    journal = MemoryJournal()
    agent = Agent(FGTS(), dim=2, seed=3, journal=journal, snapshot_every=5)
    _ask(agent, SETS[name], 8)
    again = Agent(FGTS(), dim=2, seed=3, journal=journal, snapshot_every=5)
    assert again.rounds == 8
    straight = Agent(FGTS(), dim=2, seed=3)
    _ask(straight, SETS[name], 8)
    assert _ask(again, SETS[name], 4) == _ask(straight, SETS[name], 4)


def test_maxinp_plays_a_ball_live() -> None:
    agent = Agent(MaxInP(radius=2.0), dim=2, seed=0)
    _ask(agent, BallActions(1, 2), 30)
    assert agent.rounds == 30


def test_a_winner_by_row_is_refused_where_there_are_no_rows() -> None:
    agent = Agent(FGTS(), dim=2)
    duel = agent.choose(SETS["box"])
    with pytest.raises(InvalidInputError, match='Say "left", "right", "first", "second" or "tie"'):
        agent.learn(duel, winner=duel.first)
    assert agent.pending == (duel,)


def test_a_set_with_one_point_is_shown_against_itself_because_there_is_no_other() -> None:
    agent = Agent(FGTS(), dim=2)
    duel = agent.choose(BoxActions([1.0, 1.0], [1.0, 1.0]))
    np.testing.assert_array_equal(duel.features[0], duel.features[1])


def test_an_agent_on_a_users_own_set_plays_but_cannot_be_saved(tmp_path: Path) -> None:
    own = CustomActions(lambda theta: np.where(theta > 0, 1.0, 0.0), dim=2, name="switches")
    agent = Agent(FGTS(), dim=2)
    _ask(agent, own, 5)
    with pytest.raises(InvalidInputError, match="known by its solver alone"):
        agent.save(tmp_path / "agent.npz")
    assert not (tmp_path / "agent.npz").exists()


def test_a_set_of_another_dimension_is_refused_and_nothing_is_lost() -> None:
    agent = Agent(FGTS(), dim=2)
    with pytest.raises(InvalidInputError, match="dimension"):
        agent.choose(BallActions(1, 3))
    assert agent.report()["asked"] == 0
