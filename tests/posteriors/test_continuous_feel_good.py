"""The Feel-Good term over continuous sets: exact for every set, compiled where the set has a closed form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import ActionSet, Best, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, UniformBall
from duelist.samplers.mala import MALA
from duelist.typing import FloatArray
from tests.support.continuous_sets import DIM, LANES, SETS

ETA, MU = 0.7, 0.05
Played = list[tuple[ActionSet, FloatArray, FloatArray]]


class Hidden:
    """A set whose closed form is hidden, so that only `best` can be asked."""

    def __init__(self, actions: ActionSet) -> None:
        self.actions, self.lanes, self.dim, self.digest = actions, actions.lanes, actions.dim, b"hidden" + actions.digest

    def best(self, theta: FloatArray) -> Best:
        best = self.actions.best(theta)
        return best._replace(row=np.full(best.row.shape, -1))


def _play(sets: list[ActionSet], rounds: int) -> tuple[History, Played]:
    """A history over the sets in turn, and the same rounds as a plain list."""
    rng = np.random.default_rng(1)
    history = History.start(lanes=LANES, dim=DIM, keep_sets=True)
    played: Played = []
    for t in range(rounds):
        actions = sets[t % len(sets)]
        best = actions.best(rng.standard_normal((LANES, 2, DIM)))
        outcomes = rng.choice([-1, 1], LANES)
        history = history.append(actions, Duels(best.row[:, 0], best.row[:, 1], best.features), outcomes)
        played.append((actions, best.features, outcomes))
    return history, played


def _potential(history: History) -> LinearPotential:
    statistics = history.statistics
    return LinearPotential.of(
        Gaussian(), statistics, eta=np.full(LANES, ETA), mu=np.full(LANES, MU), observations=history.rounds
    )


def _slow(played: Played, theta: FloatArray) -> FloatArray:
    """-log p_j(theta_j), (lanes, 2), round by round as the paper prints it."""
    value = 0.5 * (theta**2).sum(axis=2)
    for actions, features, outcomes in played:
        support = actions.best(theta).value
        for lane, j in np.ndindex(LANES, 2):
            z = features[lane, 0] - features[lane, 1]
            value[lane, j] += ETA * math.log1p(math.exp(-outcomes[lane] * float(z @ theta[lane, j])))
            value[lane, j] -= MU * (support[lane, j] - float(features[lane, 1 - j] @ theta[lane, j]))
    return np.asarray(value)


FINITE = FiniteActions(np.random.default_rng(9).standard_normal((LANES, 5, DIM)))
MIXED: dict[str, list[Any]] = {
    **{name: [actions] for name, actions in SETS.items()},
    "all in turn": [*SETS.values(), FINITE],
}


@pytest.mark.parametrize("name", MIXED)
def test_the_potential_is_the_papers_sum_over_rounds(name: str) -> None:
    history, played = _play(MIXED[name], 25)
    theta = np.random.default_rng(2).standard_normal((LANES, 2, DIM))
    np.testing.assert_allclose(_potential(history).value(theta), _slow(played, theta), rtol=1e-12)


@pytest.mark.parametrize("name", MIXED)
def test_the_gradient_agrees_with_finite_differences(name: str) -> None:
    history, _ = _play(MIXED[name], 25)
    potential, h = _potential(history), 1e-6
    theta = np.random.default_rng(4).standard_normal((LANES, 2, DIM))
    gradient = potential.gradient(theta)
    for i in range(DIM):
        step = h * np.eye(DIM)[i]
        slope = (potential.value(theta + step) - potential.value(theta - step)) / (2 * h)
        np.testing.assert_allclose(gradient[..., i], slope, rtol=1e-6, atol=1e-6)


def test_an_older_history_and_a_saved_one_have_the_same_potential() -> None:
    sets: list[ActionSet] = [actions for name, actions in SETS.items() if name != "own"]
    longer, _ = _play([*sets, FINITE], 40)
    shorter, _ = _play([*sets, FINITE], 17)
    theta = np.random.default_rng(2).standard_normal((LANES, 2, DIM))
    rebuilt = History(longer._log, 17)
    np.testing.assert_array_equal(_potential(rebuilt).value(theta), _potential(shorter).value(theta))
    again = from_bytes(to_bytes(longer))
    np.testing.assert_array_equal(_potential(again).value(theta), _potential(longer).value(theta))
    # And both go on counting the same sets as the same.
    for history in (rebuilt, again):
        best = sets[2].best(theta)
        appended = history.append(sets[2], Duels(best.row[:, 0], best.row[:, 1], best.features), np.ones(LANES, dtype=int))
        assert len(appended._log.offered.continuous.sets) == len(history._log.offered.continuous.sets)


@pytest.mark.parametrize("prior", [Gaussian(), UniformBall(1.5)], ids=["gaussian", "ball"])
def test_asking_sets_for_their_best_takes_the_path_of_the_compiled_sampler(prior: Any) -> None:
    open_, closed = (
        FGTS(mu=MU, prior=prior),
        FGTS(mu=MU, prior=prior),
    )
    streams = Streams(3, [0, 1])
    states = [policy.start(Problem(dim=DIM, lanes=LANES, horizon=30), streams) for policy in (open_, closed)]
    for t in range(30):
        actions = list(SETS.values())[t % 8]
        pair = []
        for which, (policy, offered) in enumerate(((open_, Hidden(actions)), (closed, actions))):
            duels, states[which] = policy.choose(states[which], offered, streams)
            pair.append(duels)
            outcomes = np.where(duels.contrast[:, 0] > 0, 1, -1)
            states[which] = policy.learn(states[which], offered, duels, outcomes)
        np.testing.assert_allclose(states[0].chains.position, states[1].chains.position, rtol=1e-8, atol=1e-10)
    assert open_.potential(states[0]).callback_sets
    assert not closed.potential(states[1]).callback_sets
    np.testing.assert_allclose(states[0].chains.log_step, states[1].chains.log_step, rtol=1e-8)


def test_a_trace_over_callback_sets_is_the_trace_over_closed_ones() -> None:
    streams, sampler = Streams(0, [0, 1]), MALA(steps=3)
    traces = []
    for actions in (SETS["ellipsoid"], Hidden(SETS["ellipsoid"])):
        potential = _potential(_play([actions], 20)[0])
        chains = sampler.start(Gaussian(), streams, chains=2, dim=DIM)
        traces.append(sampler.trace(potential, chains, streams, 1, draws=7)[1])
    np.testing.assert_allclose(traces[0].path, traces[1].path, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(traces[0].energy, traces[1].energy, rtol=1e-9)


def test_compiled_samplers_refuse_sets_that_they_cannot_ask() -> None:
    policy, streams = FGTS(mu=MU, sampler="paper"), Streams(0, [0, 1])
    state = policy.start(Problem(dim=DIM, lanes=LANES, horizon=10), streams)
    duels, state = policy.choose(state, SETS["own"], streams)
    state = policy.learn(state, SETS["own"], duels, np.array([1, -1]))
    with pytest.raises(InvalidInputError, match='sampler="mala"'):
        policy.choose(state, SETS["own"], streams)


def test_plain_thompson_sampling_needs_nothing_of_past_sets() -> None:
    policy, streams = FGTS(mu=0.0, sampler="paper"), Streams(0, [0, 1])
    state = policy.start(Problem(dim=DIM, lanes=LANES, horizon=10), streams)
    for _ in range(5):
        duels, state = policy.choose(state, SETS["own"], streams)
        state = policy.learn(state, SETS["own"], duels, np.array([1, -1]))
    assert state.history.statistics.support is None
