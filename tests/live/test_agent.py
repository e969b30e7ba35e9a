"""An agent asks, learns in any order, and refuses bad input without changing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import AlreadyLearntError, DuelistError, InvalidInputError, UnknownDuelError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.live.agent import Agent
from duelist.live.duel import Duel
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.uniform import Uniform
from duelist.posteriors.priors import UniformBall
from duelist.samplers.langevin import Langevin
from tests.support.agents import ARMS, Ends, Line, bytes_of


def busy_agent() -> Agent:
    """Three duels learnt, one skipped, one pending (number 4)."""
    agent = Agent(FGTS(), dim=4, seed=3)
    for _ in range(3):
        duel = agent.choose(ARMS)
        agent.learn(duel, winner=duel.first)
    agent.skip(agent.choose(ARMS))
    agent.choose(ARMS)
    return agent


def test_a_duel_names_two_different_rows_and_their_features() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    for number in range(50):
        duel = agent.choose(ARMS)
        assert duel.id == number
        assert duel.first != duel.second
        assert (duel.features == ARMS[[duel.first, duel.second]]).all()
        agent.learn(duel, winner=0 if 0 in (duel.first, duel.second) else duel.second)


@pytest.mark.parametrize("policy", [FGTS(), FGTS(same_arm="redraw"), FGTS(sampler="paper"), Uniform()])
def test_a_person_is_never_shown_the_same_arm_twice(policy: Any) -> None:
    agent = Agent(policy, dim=1, seed=0)
    arms = [[1.0], [-1.0], [0.5]]
    for _ in range(200):
        duel = agent.choose(arms)  # one direction only: both draws agree about its sign more and more often
        assert duel.first != duel.second
        agent.learn(duel, winner=min(duel.first, duel.second))


def test_a_preferred_arm_is_shown_more_and_more() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    theta = np.array([1.0, 2.0, -1.0, 0.5])
    utilities = ARMS @ theta
    best = int(np.argmax(utilities))
    shown = []
    for _ in range(200):
        duel = agent.choose(ARMS)
        shown.append(best in (duel.first, duel.second))
        agent.learn(duel, winner=max(duel.first, duel.second, key=lambda row: utilities[row]))
    assert np.mean(shown[-50:]) > 0.9


def test_lists_arrays_and_action_sets_are_the_same_features() -> None:
    duels = [
        Agent(FGTS(), dim=4, seed=5).choose(features)
        for features in (ARMS, ARMS.tolist(), np.asfortranarray(ARMS), ARMS.astype(np.float32), FiniteActions(ARMS))
    ]
    assert len(set(duels)) == 1


def test_changing_the_array_after_asking_changes_nothing(tmp_path: Path) -> None:
    one, other = Agent(FGTS(), dim=4, seed=5), Agent(FGTS(), dim=4, seed=5)
    mine = ARMS.copy()
    duel = one.choose(mine)
    mine[:] = 0.0
    one.learn(duel, winner=duel.first)
    other.learn(other.choose(ARMS), winner=duel.first)
    assert bytes_of(one, tmp_path) == bytes_of(other, tmp_path)


def test_a_policy_sees_the_same_state_as_without_the_agent() -> None:
    """The slow and obvious way: the policy's own verbs, called by hand."""
    policy, streams, arms = FGTS(), Streams(9, [0]), FiniteActions(ARMS)
    state = policy.start(Problem(dim=4, live=True), streams)
    agent = Agent(policy, dim=4, seed=9)
    for t in range(40):
        duels, state = policy.choose(state, arms, streams)
        duel = agent.choose(ARMS)
        assert (duel.first, duel.second) == (duels.first[0], duels.second[0])
        state = policy.learn(state, arms, duels, np.array([1 if t % 3 else -1]))
        agent.learn(duel, winner="first" if t % 3 else "second")


def test_answers_may_come_late_out_of_order_or_never() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    duels = [agent.choose(ARMS) for _ in range(6)]
    for number in (4, 1, 5):
        agent.learn(duels[number], winner=duels[number].second)
    agent.skip(duels[0])
    assert agent.rounds == 3
    assert agent.pending == (duels[2], duels[3])
    assert agent.choose(ARMS).id == 6


def test_a_duel_may_be_named_by_its_number() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    duel = agent.choose(ARMS)
    agent.learn(np.int64(duel.id), winner=np.int64(duel.second))  # type: ignore[arg-type]
    assert agent.rounds == 1


def test_too_many_pending_duels_drop_the_oldest_and_say_so() -> None:
    agent = Agent(Uniform(), dim=4, seed=0, max_pending=2)
    duels = [agent.choose(ARMS) for _ in range(4)]
    assert [duel.id for duel in agent.pending] == [2, 3]
    with pytest.raises(UnknownDuelError, match="max_pending = 2"):
        agent.learn(duels[1], winner=duels[1].first)
    with pytest.raises(UnknownDuelError, match="dropped"):
        agent.skip(duels[0])
    agent.learn(duels[2], winner=duels[2].first)


def test_report_counts_and_tells_how_the_policy_is_doing() -> None:
    report = busy_agent().report()
    assert (report["asked"], report["rounds"], report["pending"]) == (5, 3, 1)
    assert 0.0 < report["acceptance"] <= 1.0


NAN, INFINITE = ARMS.copy(), ARMS.copy()
NAN[2, 1], INFINITE[0, 0] = np.nan, np.inf


@pytest.mark.parametrize(
    ("features", "says"),
    [
        (NAN, r"finite; got nan at index \(2, 1\)"),
        (INFINITE, "finite; got inf"),
        (ARMS[:1], r"n_arms >= 2 .* got \(1, 4\)"),
        (ARMS[:, :3], r"must be \(n_arms, 4\).*dimension 3"),
        (ARMS[0], r"\(n_arms, dim\); got shape \(4,\)"),
        (ARMS[None], r"\(n_arms, dim\); got shape \(1, 6, 4\)"),
        (np.empty((0, 4)), r"n_arms >= 2"),
        ([[1.0, 2.0], [3.0]], "same length"),
        ("features", "numbers"),
        (None, "features"),
        ([["a", "b"], ["c", "d"]], "numbers"),
        (ARMS + 0j, "complex"),
        (FiniteActions(np.stack([ARMS, ARMS])), r"got 2 lane\(s\)"),
    ],
)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_bad_features_get_an_error_that_teaches_and_change_nothing(features: Any, says: str, tmp_path: Path) -> None:
    agent = busy_agent()
    before = bytes_of(agent, tmp_path)
    with pytest.raises(InvalidInputError, match=says):
        agent.choose(features)
    assert bytes_of(agent, tmp_path) == before


@pytest.mark.parametrize(
    ("duel", "winner", "error", "says"),
    [
        (4, 77, InvalidInputError, r"winner must be \d or \d, the rows of duel 4.*got 77"),
        (4, -1, InvalidInputError, "got -1"),
        (4, None, InvalidInputError, "got None"),
        (4, 1.0, InvalidInputError, "got 1.0"),
        (4, True, InvalidInputError, "got True"),
        (4, "frist", InvalidInputError, "Did you mean 'first'"),
        (99, "first", UnknownDuelError, "asked duels 0 to 4; got duel 99"),
        (-1, "first", UnknownDuelError, "got duel -1"),
        ("4", "first", InvalidInputError, "got '4' of type str"),
        (True, "first", InvalidInputError, "got True"),
        (1, "first", AlreadyLearntError, r"duel 1 was learnt before \(first"),
        (1, "second", AlreadyLearntError, "counts once"),
        (3, "first", AlreadyLearntError, "skipped before"),
        (Duel(4, 90, 91, np.zeros((2, 4))), "first", UnknownDuelError, "another agent"),
    ],
)
def test_bad_answers_get_an_error_that_teaches_and_change_nothing(
    duel: Any, winner: Any, error: type[DuelistError], says: str, tmp_path: Path
) -> None:
    agent = busy_agent()
    before = bytes_of(agent, tmp_path)
    with pytest.raises(error, match=says):
        agent.learn(duel, winner)
    assert bytes_of(agent, tmp_path) == before


@pytest.mark.parametrize(("duel", "error"), [(1, AlreadyLearntError), (3, AlreadyLearntError), (5, UnknownDuelError)])
def test_skipping_what_is_not_pending_is_refused_and_changes_nothing(
    duel: int, error: type[DuelistError], tmp_path: Path
) -> None:
    agent = busy_agent()
    before = bytes_of(agent, tmp_path)
    with pytest.raises(error):
        agent.skip(duel)
    assert bytes_of(agent, tmp_path) == before


def test_an_answer_before_any_question_is_refused() -> None:
    with pytest.raises(UnknownDuelError, match="has not asked any duel"):
        Agent(Uniform(), dim=2).learn(0, "first")


def test_a_sampler_that_runs_away_leaves_the_agent_as_it_was(tmp_path: Path) -> None:
    agent = Agent(
        FGTS(sampler=Langevin(step_size=1e6)), dim=4, seed=0
    )  # ten steps multiply theta by 1e60: too much the third time
    for _ in range(2):
        agent.learn(agent.choose(ARMS), "first")
    before = bytes_of(agent, tmp_path)
    with pytest.raises(DuelistError, match="step_size"):
        agent.choose(ARMS)
    assert bytes_of(agent, tmp_path) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"dim": 0}, "dim"),
        ({"dim": 2.5}, "dim"),
        ({"dim": 3, "seed": -1}, "seed"),
        ({"dim": 3, "max_pending": 0}, "max_pending"),
        ({"dim": 3, "horizon": 0}, "horizon"),
    ],
)
def test_an_agent_with_bad_settings_is_not_made(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Agent(Uniform(), **arguments)


@pytest.mark.parametrize("policy", [FGTS, "FGTS", None])
def test_a_policy_that_is_none_is_refused(policy: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"such as FGTS\(\)"):
        Agent(policy, dim=3)


def test_threads_may_share_an_agent() -> None:
    agent = Agent(FGTS(prior=UniformBall(2.0)), dim=4, seed=0)

    def play() -> None:
        for _ in range(50):
            agent.learn(agent.choose(ARMS), "second")

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (agent.rounds, agent.report()["asked"], agent.pending) == (200, 200, ())


def test_arms_without_rows_are_told_apart_by_words() -> None:
    agent = Agent(Ends(), dim=2)
    duel = agent.choose(Line())
    assert (duel.first, duel.second) == (-1, -1)
    assert duel.features.tolist() == [[0.0, 1.0], [0.0, -1.0]]
    with pytest.raises(InvalidInputError, match='Say "left", "right", "first", "second" or "tie"'):
        agent.learn(duel, winner=-1)
    agent.learn(duel, winner="second")
    assert agent.report()["sum"] == -1.0


def test_a_tie_is_learnt_as_half_a_win_each_way_and_counts_once() -> None:
    agent = Agent(FGTS(), dim=4, seed=0)
    duel = agent.choose(ARMS)
    agent.learn(duel, winner="tie")
    statistics = agent._state.lane.state.history.statistics
    assert (agent.rounds, statistics.totals[0, 0], statistics.losses[0, 0]) == (1, 1.0, 0.5)
    with pytest.raises(AlreadyLearntError, match=r"learnt before \(a tie\)"):
        agent.learn(duel, winner="first")


@pytest.mark.slow
def test_the_posterior_behind_an_agent_with_ties_is_that_of_numerical_integration() -> None:
    agent = Agent(FGTS(mu=0.0), dim=1, seed=0)
    arms, told = [[0.7], [-0.4]], ["first", "tie", "tie", "second", "first", "tie", "first"]
    grid = np.linspace(-8.0, 8.0, 4001)
    energy = 0.5 * grid**2
    for answer in told:
        duel = agent.choose(arms)
        u = grid * (arms[duel.first][0] - arms[duel.second][0])
        won, lost = np.logaddexp(0.0, -u), np.logaddexp(0.0, u)
        energy += {"first": won, "second": lost, "tie": 0.5 * (won + lost)}[answer]
        agent.learn(duel, winner=answer)  # type: ignore[arg-type]
    weight = np.exp(-energy)
    weight /= weight.sum()
    mean = float(weight @ grid)
    spread = float(np.sqrt(weight @ (grid - mean) ** 2))
    policy, streams = agent.policy, Streams(5, [0])
    state, drawn = agent._state.lane.state, []
    for _ in range(6000):
        _, state = policy.choose(state, FiniteActions(arms), streams)
        drawn.append(state.chains.position[0, :, 0])
    # Chains move a few steps between two draws, so 12,000 of them are worth a few thousand: 4 standard errors are 0.08.
    assert np.mean(drawn) == pytest.approx(mean, abs=0.08)
    assert np.std(drawn) == pytest.approx(spread, rel=0.08)
