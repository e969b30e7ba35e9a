"""NonlinearFGTS: its potential against the formula, its walk against the plain one, its errors, and that it learns.

Skipped without JAX, which is an extra; the suite of the extra is run where it is installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
from duelist.history.duels import duels_between
from duelist.kernels.philox import RandomSource
from duelist.policies.algorithms.nonlinear.nonlinear_fgts import NonlinearFGTS, NonlinearFGTSState
from duelist.posteriors.priors import GaussianBall, UniformBall
from duelist.posteriors.rewards import RewardTerms, curvature_of, potential_of
from duelist.rewards.base import CustomReward, RewardBoundError, RewardNotFiniteError
from duelist.rewards.models import LastLayer, Quadratic, RadialBasis, TwoLayerNetwork
from duelist.samplers.generic_mala import run_mala
from duelist.samplers.jax_mala import RewardMALA
from tests.support.oracles import Floats, finite_difference

jax = pytest.importorskip("jax", reason="nonlinear rewards need the extra: pip install 'duelist[jax]'")

ARMS = np.random.default_rng(5).standard_normal((2, 6, 2))
REWARDS: list[Any] = [
    Quadratic(),
    TwoLayerNetwork(hidden=3),
    RadialBasis([[0.0, 0.0], [1.0, -1.0], [0.5, 1.0]]),
    LastLayer(lambda features: jax.numpy.tanh(features * 2.0), width=2),
]


def after_some_duels(policy: NonlinearFGTS, rounds: int = 30) -> tuple[NonlinearFGTSState, Streams]:
    """The state after duels between random arms with random outcomes, ties among them, in two lanes."""
    rng, streams = np.random.default_rng(1), Streams(0, [0, 1])
    state, actions = policy.start(Problem(dim=2, lanes=2, horizon=100), streams), FiniteActions(ARMS)
    for _ in range(rounds):
        first, second = rng.integers(6, size=(2, 2))
        state = policy.learn(state, actions, duels_between(actions, first, second), rng.choice([-1, 0, 1], size=2))
    return state, streams


def written_out(reward: Any, theta: Floats, state: NonlinearFGTSState, lane: int, chain: int, mu: float) -> float:
    """The potential as the paper writes it, round by round, in NumPy."""
    values = np.asarray(reward(theta, ARMS[lane]))
    total = 0.5 * float(theta @ theta)
    for t in range(state.table.rounds):
        first, second = int(state.table.first[lane, t]), int(state.table.second[lane, t])
        outcome = state.table.outcomes[lane, t]
        answers = (1.0, -1.0) if outcome == 0.0 else (outcome,)  # a tie is half a win each way
        total += float(np.mean([np.logaddexp(0.0, -y * (values[first] - values[second])) for y in answers]))
        total -= mu * (values.max() - values[second if chain == 0 else first])
    return total


def lane_of(terms: RewardTerms, lane: int) -> RewardTerms:
    return RewardTerms(*(column[lane] for column in terms))


class InNumPy:
    """The potential of all lanes and chains as `run_mala` asks for it."""

    def __init__(self, reward: Any, terms: RewardTerms) -> None:
        self._evaluate, self._terms = jax.value_and_grad(potential_of(reward)), terms

    def value_and_gradient(self, theta: Floats) -> tuple[Floats, Floats]:
        values, gradients = np.empty(theta.shape[:2]), np.empty(theta.shape)
        for lane, chain in np.ndindex(*theta.shape[:2]):
            with jax.enable_x64(True):
                value, gradient = self._evaluate(theta[lane, chain], chain, lane_of(self._terms, lane))
            values[lane, chain], gradients[lane, chain] = value, gradient
        return values, gradients


@pytest.mark.slow
@pytest.mark.parametrize("reward", REWARDS, ids=lambda reward: type(reward).__name__)
def test_the_potential_is_the_papers_and_its_gradient_agrees_with_finite_differences(reward: Any) -> None:
    policy = NonlinearFGTS(reward=reward, mu=0.3)
    state, _ = after_some_duels(policy)
    potential = InNumPy(reward, policy.terms(state))
    theta = np.random.default_rng(2).standard_normal((2, 2, reward.parameters(2)))
    values, gradients = potential.value_and_gradient(theta)
    for lane, chain in np.ndindex(2, 2):

        def plain(at: Floats, lane: int = lane, chain: int = chain) -> float:
            with jax.enable_x64(True):  # the last layer's own network is written in JAX
                return written_out(reward, at, state, lane, chain, mu=0.3)

        assert values[lane, chain] == pytest.approx(plain(theta[lane, chain]), rel=1e-12)
        slopes = finite_difference(plain, theta[lane, chain], step=1e-5)
        np.testing.assert_allclose(gradients[lane, chain], slopes, rtol=1e-6, atol=1e-6)


def test_with_a_linear_reward_it_is_the_potential_of_fgts() -> None:
    linear = CustomReward(lambda theta, features: features @ theta, n_parameters=2)
    policy, plain = NonlinearFGTS(reward=linear, mu=0.2), duelist.FGTS(mu=0.2)
    state, streams = after_some_duels(policy)
    other = plain.start(Problem(dim=2, lanes=2, horizon=100), streams)
    rng, actions = np.random.default_rng(1), FiniteActions(ARMS)
    for _ in range(30):
        first, second = rng.integers(6, size=(2, 2))
        other = plain.learn(other, actions, duels_between(actions, first, second), rng.choice([-1, 0, 1], size=2))
    theta = rng.standard_normal((2, 2, 2))
    values, gradients = InNumPy(linear, policy.terms(state)).value_and_gradient(theta)
    np.testing.assert_allclose(values, plain.potential(other).value(theta), rtol=1e-12)
    np.testing.assert_allclose(gradients, plain.potential(other).gradient(theta), rtol=1e-11)


@pytest.mark.slow
def test_the_compiled_walk_takes_the_path_of_the_plain_one() -> None:
    reward = Quadratic()
    policy = NonlinearFGTS(reward=reward, mu=0.1, prior=GaussianBall(1.0, 4.0))
    state, streams = after_some_duels(policy)
    terms, sampler = policy.terms(state), RewardMALA(steps=6)
    moved = sampler.advance(reward, terms, state.chains, streams, 3, rounds=30, announce=lambda _: None)
    plain = run_mala(
        InNumPy(reward, terms),
        state.chains.position,
        state.chains.log_step,
        moved.whitener,
        RandomSource(streams.keys("reward mala"), 3, 0),
        steps=6,
    )
    assert (plain.position != state.chains.position).any(axis=2).all()
    np.testing.assert_allclose(moved.position, plain.position, rtol=1e-9)
    np.testing.assert_allclose(moved.info.accepted, plain.acceptance, rtol=1e-9)


@pytest.mark.slow
def test_the_curvature_of_a_linear_reward_is_the_hessian_of_the_likelihood_and_the_prior() -> None:
    linear = CustomReward(lambda theta, features: features @ theta, n_parameters=2)
    policy = NonlinearFGTS(reward=linear)
    state, _ = after_some_duels(policy)
    theta = np.array([0.3, -0.4])
    with jax.enable_x64(True):
        found = np.asarray(curvature_of(linear)(theta, lane_of(policy.terms(state), 1)))
    expected = np.eye(2)
    for t in range(30):
        z = ARMS[1][state.table.first[1, t]] - ARMS[1][state.table.second[1, t]]
        win = 1.0 / (1.0 + np.exp(-z @ theta))
        expected += win * (1.0 - win) * np.outer(z, z)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_duels_whatever_the_number_of_lanes() -> None:
    policy, env = NonlinearFGTS(reward=Quadratic()), QuadraticDuels(dim=2, arms=6)
    together = duelist.simulate(policy, env, rounds=40, trials=2, seed=3, workers=1, progress=False)
    alone = duelist.simulate(policy, env, rounds=40, trials=[1], seed=3, workers=1, progress=False)
    np.testing.assert_array_equal(together.first[1], alone.first[0])
    np.testing.assert_array_equal(together.second[1], alone.second[0])


@pytest.mark.slow
def test_a_reward_that_returns_nan_is_a_named_error_and_the_state_still_plays() -> None:
    broken = CustomReward(lambda theta, features: features @ theta + jax.numpy.log(theta[0] + 1.0), n_parameters=2)
    policy = NonlinearFGTS(reward=broken)
    state, streams = after_some_duels(policy)
    before = state.chains.position.copy()
    state = state._replace(chains=state.chains._replace(position=np.full((2, 2, 2), -3.0)))
    with pytest.raises(RewardNotFiniteError, match="Nothing was changed"):
        policy.choose(state, FiniteActions(ARMS), streams)
    assert (state.chains.position == -3.0).all()
    assert state.table.rounds == 30
    assert before.shape == state.chains.position.shape


def test_a_bound_is_checked_against_the_draws_and_not_assumed() -> None:
    streams = Streams(0, [0])
    for policy, kept in [
        (NonlinearFGTS(reward=Quadratic(bound=0.01)), False),
        (NonlinearFGTS(reward=Quadratic(bound=100.0), prior=UniformBall(1.0)), True),
    ]:
        state = policy.start(Problem(dim=2), streams)
        if kept:
            policy.choose(state, FiniteActions(ARMS[0]), streams)
        else:
            with pytest.raises(RewardBoundError, match=r"\|r\| <= 0.01"):
                policy.choose(state, FiniteActions(ARMS[0]), streams)


@pytest.mark.slow
def test_live_it_never_shows_an_arm_against_itself() -> None:
    policy, streams = NonlinearFGTS(reward=Quadratic()), Streams(0, [0])
    state, actions = policy.start(Problem(dim=2, live=True), streams), FiniteActions(ARMS[0])
    for _ in range(30):
        duels, state = policy.choose(state, actions, streams)
        assert duels.first[0] != duels.second[0]
        # The arm with the larger first coordinate wins: the draws soon agree on the best.
        state = policy.learn(state, actions, duels, np.where(duels.contrast[:, 0] > 0, 1, -1))


@pytest.mark.slow
def test_what_is_compiled_is_announced_with_the_time_it_took() -> None:
    messages: list[str] = []
    policy = NonlinearFGTS(reward=TwoLayerNetwork(hidden=2, scale=1.234), announce=messages.append)
    duelist.simulate(policy, NetworkDuels(dim=2, arms=4), rounds=12, trials=1, workers=1, progress=False)
    assert messages[0] == "compiling the sampler for 8 parameters ..."
    assert [m.split(" in ")[0] for m in messages if m.startswith("compiled")] == [
        "compiled the sampler",
        "compiled the curvature",
    ]


def test_bad_hyper_parameters_are_refused() -> None:
    for bad in ({"eta": 0.0}, {"alpha": -1.0}, {"mu": -1.0}, {"horizon": 0}, {"same_arm": "never"}, {"eta": "practice"}):
        with pytest.raises(InvalidInputError):
            NonlinearFGTS(reward=Quadratic(), **bad)
    with pytest.raises(InvalidInputError, match="CustomReward"):
        NonlinearFGTS(reward=lambda _theta, _features: 0.0)  # type: ignore[arg-type]


def test_a_flat_prior_without_a_ball_is_refused() -> None:
    class Flat:
        precision, radius = 0.0, float("inf")

        def sample(self, generator: np.random.Generator, dim: int) -> Floats:
            return generator.standard_normal(dim)

    with pytest.raises(ImproperPosteriorError):
        NonlinearFGTS(reward=Quadratic(), prior=Flat())


@pytest.mark.slow
def test_on_a_quadratic_truth_it_ends_with_at_most_half_the_regret_of_linear_fgts() -> None:
    env = QuadraticDuels()
    linear, nonlinear = (
        duelist.simulate(policy, env, rounds=600, trials=8, seed=0, workers=1, progress=False).final_regret
        for policy in (duelist.FGTS(), NonlinearFGTS(reward=Quadratic()))
    )
    assert nonlinear.mean() <= 0.5 * linear.mean()
