"""Agents whose voters differ: what they learn of them, and that state stays a fold over what was asked and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist import FGTS, Agent
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.serialize import to_bytes
from duelist.datasets import Comparisons, fit_votes
from duelist.journal import SQLiteJournal
from duelist.live.crowd import Crowd
from duelist.live.crowd_lane import CrowdLane
from duelist.live.votes import check_votes, learn_votes
from duelist.policies import RUCB, MaxInP
from duelist.posteriors import UniformBall
from duelist.typing import FloatArray

FEATURES = np.random.default_rng(7).standard_normal((8, 3))
THETA = np.array([1.5, -1.0, 0.5])
SLOPES = {"ann": 1.0, "bob": 1.0, "cyd": 1.0, "dan": 1.0, "dice": 0.0, "coin": 0.0, "devil": -1.0}
NAMES = list(SLOPES)


def agent_of(**settings: Any) -> Agent:
    return Agent(settings.pop("policy", FGTS()), dim=3, seed=2, reliability=True, **settings)


def play(agent: Agent, votes: int, seed: int = 0, left: float = 0.0) -> list[Any]:
    """Voters in turn answer by their slopes."""
    rng, asked = np.random.default_rng(seed), []
    utilities = FEATURES @ THETA
    for n in range(votes):
        voter = NAMES[n % len(NAMES)]
        duel = agent.choose(FEATURES)
        logit = SLOPES[voter] * (utilities[duel.left] - utilities[duel.right]) + left
        agent.learn(duel, "left" if rng.random() < 1.0 / (1.0 + np.exp(-logit)) else "right", voter=voter, time=float(n))
        asked.append(duel)
    return asked


def saved_state(agent: Agent) -> bytes:
    return to_bytes(agent._state.to_saved())


@pytest.mark.slow
def test_voters_are_told_apart_and_the_side_is_found() -> None:
    agent = agent_of(policy=MaxInP())
    play(agent, 1400, left=0.6)
    found = agent.voters(level=0.9)
    trust = dict(zip(found.reliability.names, zip(found.reliability.low, found.reliability.high, strict=True), strict=True))
    assert set(trust) == set(NAMES)
    assert found.votes.tolist() == [200] * 7
    assert trust["devil"][1] < 0.0 < min(trust[name][0] for name in NAMES[:4])
    assert max(trust[name][1] for name in ("dice", "coin")) < 0.6
    assert found.position.low[0] > 0.0
    assert found.spread > 0.4
    assert agent.best(FEATURES) == int((FEATURES @ THETA).argmax())


@pytest.mark.slow
def test_what_is_believed_is_nearer_to_the_truth_than_without() -> None:
    """Half of the voters are random or flipped. Squared errors of centred utilities, summed over eight crowds."""
    errors = np.zeros(2)
    truth = FEATURES @ THETA - (FEATURES @ THETA).mean()
    for seed in range(8):
        for place, reliability in enumerate((False, True)):
            agent = Agent(MaxInP(), dim=3, seed=seed, reliability=reliability)
            play(agent, 280, seed)
            found = agent.predict(FEATURES).utility
            # A scale is free: the average voter of a crowd is less reliable than its best.
            errors[place] += ((found * (found @ truth) / (found @ found) - truth) ** 2).sum()
    assert errors[1] < 0.7 * errors[0]


def test_a_vote_with_a_slope_is_learnt_as_a_vote_on_so_much_of_the_contrast() -> None:
    lane = CrowdLane(FGTS(), Problem(dim=3, live=True), seed=0)
    saved = lane.crowd.to_saved()
    names = np.array(["half", "double", "devil", "dice"])
    lane.crowd.restore({**saved, "names": names, "slopes": np.array([0.5, 2.0, -1.0, 0.0])})
    pair = FEATURES[:2]
    expected = Agent(FGTS(), dim=3)
    for name, slope in zip([*names, "new"], [0.5, 2.0, -1.0, 0.0, 1.0], strict=True):
        if slope:
            first, second = abs(slope) * pair[:, None]
            expected.import_votes(first, second, ["first" if slope > 0.0 else "second"])
        learn_votes(lane, check_votes(3, pair[:1], pair[1:], ["first"], None, None, [name]))
    ours, theirs = lane.state.history.statistics, expected._state.lane.state.history.statistics
    for name in ("contrasts", "totals", "losses"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), err_msg=name)
    assert len(lane.crowd) == 5


def test_forgetting_a_voter_is_never_having_heard_of_them() -> None:
    """The same questions, with the same pairs, are asked of both: one skips the devil's, the other forgets them."""
    told = agent_of()
    asked = play(told, 140)
    assert told.forget(voter="devil") == 20
    untold = agent_of()
    for number, duel in enumerate(asked):
        # As shown then: what this agent would show now is another pair, for it knows less.
        untold._memory.ask_again(untold._actions(FEATURES), untold._memory.kind.from_parts(parts_of(told, number)))
        if NAMES[number % len(NAMES)] == "devil":
            untold.skip(number)
        else:
            answer = told._memory.answer_to(number)
            assert answer is not None
            winner = duel.first if answer == (0,) else duel.second
            untold.learn(number, winner, voter=NAMES[number % len(NAMES)], time=float(number))
    assert saved_state(told) == saved_state(untold)
    assert "devil" not in told.voters().reliability.names


def parts_of(agent: Agent, number: int) -> Any:
    return agent._memory.kept_log().asked[number].parts


def test_a_journal_and_a_file_go_on_bit_for_bit(tmp_path: Path) -> None:
    whole = agent_of()
    play(whole, 150)
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        agent = agent_of(journal=journal, snapshot_every=60)
        play(agent, 150)
        assert saved_state(agent) == saved_state(whole)
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        again = agent_of(journal=journal)
        assert saved_state(again) == saved_state(whole)
        assert again.choose(FEATURES) == whole.choose(FEATURES)
        with pytest.raises(InvalidInputError, match="reliability True; got False"):
            Agent(FGTS(), dim=3, seed=2, journal=journal)
        assert again.forget(voter="coin") == whole.forget(voter="coin")
        assert saved_state(again) == saved_state(whole)
    whole.save(tmp_path / "agent.zip")
    loaded = Agent.load(tmp_path / "agent.zip")
    assert saved_state(loaded) == saved_state(whole)
    assert loaded.voters().reliability.names == whole.voters().reliability.names


def test_another_policy_learns_the_votes_of_the_same_voters() -> None:
    agent, other = agent_of(), agent_of(policy=MaxInP())
    play(agent, 70)
    agent.change_policy(MaxInP())
    assert agent.rounds == 70
    before = agent.voters().reliability
    assert before.names == tuple(NAMES)
    assert type(agent.policy) is type(other.policy)


def test_the_fit_of_a_crowd_is_that_of_the_same_votes_in_a_table() -> None:
    rng, crowd = np.random.default_rng(3), Crowd(dim=4, precision=0.25)
    rows: dict[str, list[Any]] = {"shown": [], "chosen": [], "voters": []}
    for _ in range(400):
        a, b = rng.choice(4, size=2, replace=False)
        outcome, voter = int(rng.choice([-1, 0, 1], p=[0.3, 0.1, 0.6])) * (1 if a < b else -1), str(rng.integers(5))
        crowd.add(np.eye(4)[a] - np.eye(4)[b], outcome, voter, side=1)
        rows["shown"].append((a, b))
        rows["chosen"].append({1: 0, -1: 1, 0: -1}[outcome])
        rows["voters"].append(voter)
    columns: dict[str, Any] = {key: np.array(cells) for key, cells in rows.items()}
    table = Comparisons(name="t", items=tuple("abcd"), order_known=True, **columns)
    # `fit_votes` holds position to the deviation of utilities, 2, and the crowd to 1: with 400 votes that is little.
    exact, found = fit_votes(table, reliability=True), crowd.votes().believe(0.95)
    slopes = dict(zip(exact.reliability.names, exact.reliability.mean, strict=True))
    for name, slope in zip(found.reliability.names, found.reliability.mean, strict=True):
        assert slope == pytest.approx(slopes[name], abs=0.01)
    assert found.position.mean[0] == pytest.approx(exact.position.mean[0], abs=0.01)
    np.testing.assert_allclose(crowd.votes().fit().coefficients[:4], exact.fit.coefficients[:4], atol=0.01)
    drawn: FloatArray = crowd.draw(20_000, rng)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(np.diag(exact.fit.covariance)[:4]), rtol=0.05)


def test_before_the_first_vote_it_is_the_prior_and_nobody_is_known() -> None:
    agent = agent_of()
    assert agent.voters().reliability.names == ()
    assert agent.predict(FEATURES).is_prior
    agent.import_votes(FEATURES[:1], FEATURES[1:2], ["tie"], weights=[3], voters=["ann"])
    assert agent.voters().votes.tolist() == [3]
    assert agent.voters().position.names == ()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": RUCB()}, "linear in the features"),
        ({"policy": FGTS(discount=0.99)}, "discount=1"),
        ({"policy": FGTS(prior=UniformBall(2.0))}, "normal prior"),
        ({"keep_votes": False}, "keep_votes=False"),
    ],
)
def test_what_cannot_tell_voters_apart_says_so(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        agent_of(**settings)
    with pytest.raises(InvalidInputError, match="reliability=True"):
        Agent(FGTS(), dim=3).voters()
