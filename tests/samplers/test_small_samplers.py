"""What single samplers promise beyond the conformance table: names, widths, one pass and bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.duels import duels_between
from duelist.history.history import History
from duelist.history.last_duel import LastDuel
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.samplers.base import Sampler
from duelist.samplers.gaussian import Laplace, Online
from duelist.samplers.langevin import SGLDCV, Langevin, UnadjustedLangevin
from duelist.samplers.registry import sampler_named
from duelist.typing import FloatArray
from tests.support.builders import history_of, random_rounds


def some_history(lanes: int = 2, rounds: int = 60, dim: int = 3) -> History:
    rng = np.random.default_rng(7)
    sets = [rng.standard_normal((5, dim)) for _ in range(4)]
    return history_of([random_rounds(rng, rounds, sets) for _ in range(lanes)])


def potential_of(
    history: History, *, mu: float = 0.05, prior: Gaussian | GaussianBall | UniformBall | None = None
) -> LinearPotential:
    statistics = history.statistics
    return LinearPotential.of(
        prior or Gaussian(), statistics, eta=np.ones(history.lanes), mu=np.full(history.lanes, mu), observations=history.rounds
    )


def draws_of(sampler: Sampler, potential: LinearPotential, n: int, trials: list[int] | None = None) -> FloatArray:
    """(n, lanes, chains, dim) draws, one `advance` apart, after 30 for warming up."""
    streams = Streams(0, trials or list(range(potential.lanes)))
    chains = sampler.start(potential.prior, streams, chains=2, dim=potential.dim)
    kept = []
    for call in range(n + 30):
        chains = sampler.advance(potential, chains, streams, call)
        kept.append(chains.position)
    return np.array(kept[30:])


def test_plain_sgld_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidInputError, match=r"noise of a batch.*sgld_cv"):
        FGTS(sampler="sgld")


def test_an_unknown_sampler_says_which_is_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'laplace'"):
        sampler_named("laplas")


def test_unadjusted_langevin_is_too_wide_by_the_amount_that_its_docstring_says() -> None:
    """On a standard normal the sd is 1 / sqrt(1 - h^2/4): 1.155 at h = 1. Five standard errors of the estimate are 0.03."""
    potential = LinearPotential(Gaussian(), empty_likelihood(50, 5), chains=2)
    draws = draws_of(UnadjustedLangevin(steps=5, step_size=1.0), potential, 100)
    assert draws.std() == pytest.approx(1.155, abs=0.03)


def test_laplace_draws_are_the_gaussian_at_the_mode() -> None:
    potential = potential_of(some_history(lanes=1), mu=1e-300)
    draws = draws_of(Laplace(), potential, 4000)[:, 0, 0]
    assert np.abs(potential.gradient(np.tile(draws.mean(axis=0), (1, 2, 1)))).max() < 1.0
    centred = draws - draws.mean(axis=0)
    step, at = 1e-4, draws.mean(axis=0)
    hessian = np.array(
        [
            (
                potential.gradient(np.tile(at + step * e, (1, 2, 1)))[0, 0]
                - potential.gradient(np.tile(at - step * e, (1, 2, 1)))[0, 0]
            )
            / (2 * step)
            for e in np.eye(3)
        ]
    )
    np.testing.assert_allclose(centred.T @ centred / len(centred) @ hessian, np.eye(3), atol=0.15)


@pytest.mark.slow
def test_control_variates_agree_with_full_gradients_at_the_same_step() -> None:
    """Second-order control variates leave so little noise that a batch of 16 and all 60 contrasts give the same width."""
    potential = potential_of(some_history(lanes=20, rounds=80))
    batches = draws_of(SGLDCV(batch=16, step_size=0.5), potential, 200)
    full = draws_of(UnadjustedLangevin(step_size=0.5), potential, 200)
    ratio = batches.std(axis=0).mean() / full.std(axis=0).mean()
    assert ratio == pytest.approx(1.0, abs=0.05)


def test_the_online_sampler_keeps_one_duel_and_o_dim_squared_numbers_whatever_the_rounds() -> None:
    env, policy, streams = LinearDuels(dim=4, arms=6, fresh_arms=True), FGTS(sampler="online"), Streams(0, [0])
    instance = env.instance(streams)
    state = policy.start(Problem(dim=4, lanes=1, horizon=200), streams)
    sizes = []
    for t in range(200):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
        sizes.append(
            sum(part.nbytes for part in state.history.to_arrays().values())
            + sum(np.asarray(part).nbytes for part in state.chains)
        )
    assert len(set(sizes[1:])) == 1


def test_the_online_sampler_gives_the_same_belief_duel_by_duel_and_in_one_pass() -> None:
    rng = np.random.default_rng(3)
    env, streams = LinearDuels(dim=3, arms=5, fresh_arms=True), Streams(1, [0, 1])
    instance = env.instance(streams)
    last, full = LastDuel.start(lanes=2, dim=3), History.start(lanes=2, dim=3, keep_sets=True)
    sampler = Online()
    chains = sampler.start(Gaussian(), streams, chains=2, dim=3)
    for t in range(40):
        actions = instance.actions(t)
        duels = duels_between(actions, rng.integers(5, size=2), rng.integers(5, size=2))
        outcomes = instance.outcomes(t, duels)
        last, full = last.append(actions, duels, outcomes), full.append(actions, duels, outcomes)
        step = LinearPotential.of(Gaussian(), last.statistics, eta=np.ones(2), observations=t + 1)
        chains = sampler.advance(step, chains, streams, t)
    whole = LinearPotential.of(Gaussian(), full.statistics, eta=np.ones(2), observations=40)
    at_once = sampler.advance(whole, sampler.start(Gaussian(), streams, chains=2, dim=3), streams, 39)
    np.testing.assert_allclose(chains.mean, at_once.mean, rtol=1e-9)
    np.testing.assert_allclose(chains.precision, at_once.precision, rtol=1e-9)


def test_the_online_sampler_refuses_to_miss_a_duel() -> None:
    env, streams = LinearDuels(dim=3, arms=5), Streams(1, [0])
    actions = env.instance(streams).actions(0)
    duels = duels_between(actions, np.array([0]), np.array([1]))
    last = LastDuel.start(lanes=1, dim=3)
    for _ in range(3):
        last = last.append(actions, duels, np.array([1]))
    potential = LinearPotential.of(Gaussian(), last.statistics, eta=np.ones(1), observations=3)
    sampler = Online()
    with pytest.raises(InvalidInputError, match="after every duel"):
        sampler.advance(potential, sampler.start(Gaussian(), streams, chains=2, dim=3), streams, 0)


@pytest.mark.parametrize(
    "make",
    [lambda: UnadjustedLangevin(step_size=2.0), lambda: SGLDCV(batch=0), lambda: Laplace(tries=0), lambda: Langevin(decay=0.0)],
)
def test_settings_that_make_no_sense_are_refused(make: object) -> None:
    with pytest.raises(InvalidInputError):
        make()  # type: ignore[operator]
