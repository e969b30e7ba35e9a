"""A live lane: proposing changes nothing, committing moves on, and the same calls give the same state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.live.lane import LiveLane
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from tests.support.agents import ARMS

ACTIONS = FiniteActions(ARMS)


def lane_of(policy: Any, **settings: Any) -> LiveLane:
    return LiveLane(policy, Problem(dim=4, live=True), **{"seed": 3, **settings})


def test_proposing_changes_nothing_and_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, calls, choose = lane_of(FGTS()), [], FGTS.choose

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return choose(*arguments)

    monkeypatch.setattr(FGTS, "choose", counted)
    before = lane.state
    proposal = lane.propose(ACTIONS)
    assert lane.state is before
    assert lane.propose(FiniteActions(ARMS)) is proposal, "the same set by its content"
    assert len(calls) == 1
    assert lane.propose(FiniteActions(ARMS[:3])) is not proposal


def test_a_proposal_is_no_longer_good_when_something_was_learnt_meanwhile() -> None:
    lane = lane_of(FGTS())
    proposal = lane.propose(ACTIONS)
    lane.learn_rows(ACTIONS, 0, 1, outcome=1)
    assert lane.propose(ACTIONS) is not proposal


def test_a_lane_does_what_the_policy_does_by_itself() -> None:
    policy, streams = FGTS(), Streams(3, [0])
    lane, state = lane_of(policy), policy.start(Problem(dim=4, live=True), streams)
    for t in range(20):
        duels, state = policy.choose(state, ACTIONS, streams)
        proposal = lane.propose(ACTIONS)
        lane.commit(proposal)
        assert (proposal.shown.first, proposal.shown.second) == (duels.first, duels.second)
        state = policy.learn(state, ACTIONS, duels, np.array([1 if t % 3 else -1]))
        lane.learn_rows(ACTIONS, int(duels.first[0]), int(duels.second[0]), 1 if t % 3 else -1)


def pairs_of(lane: LiveLane) -> list[tuple[int, int]]:
    pairs = []
    for _ in range(20):
        proposal = lane.propose(ACTIONS)
        lane.commit(proposal)
        pairs.append((int(proposal.shown.first[0]), int(proposal.shown.second[0])))
    return pairs


def test_each_generation_has_random_numbers_of_its_own() -> None:
    first, again, second = (pairs_of(lane_of(Uniform(), generation=generation)) for generation in (0, 0, 1))
    assert first == again != second


class Stubborn(Uniform):
    """Proposes the last row against itself."""

    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        duels, state = super().choose(state, actions, streams)
        return duels._replace(first=np.array([5]), second=np.array([5])), state


def test_the_same_arm_twice_becomes_the_next_row_where_two_are_needed() -> None:
    lane = lane_of(Stubborn())
    shown = lane.propose(ACTIONS).shown
    assert (shown.first[0], shown.second[0]) == (5, 5)
    proposal = lane.propose_distinct(ACTIONS)
    assert (proposal.shown.first[0], proposal.shown.second[0]) == (5, 0)
    assert (proposal.shown.features[0] == ARMS[[5, 0]]).all()
    usual = lane_of(Uniform())
    assert usual.propose_distinct(ACTIONS) is usual.propose(ACTIONS)


def test_a_lane_tells_the_probability_of_a_pair_and_the_draws_behind_it_where_the_policy_can() -> None:
    lane = lane_of(Uniform())
    proposal = lane.propose(ACTIONS)
    assert lane.propensity(proposal) == pytest.approx(1 / 15)
    assert lane.drawn_utilities(proposal).shape == (0, 2)


@pytest.mark.parametrize("outcome", [2, -3])
def test_an_outcome_that_cannot_be_is_refused_and_changes_nothing(outcome: int) -> None:
    lane = lane_of(FGTS())
    before = lane.state
    with pytest.raises(InvalidInputError, match="outcomes"):
        lane.learn_rows(ACTIONS, 0, 1, outcome)
    with pytest.raises(InvalidInputError, match="outcomes"):
        lane.learn(ACTIONS, lane.propose(ACTIONS).shown, np.array([1, 1]))
    assert lane.state is before


def test_a_set_of_another_dimension_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="dimension 3"):
        lane_of(FGTS()).propose(FiniteActions(ARMS[:, :3]))
