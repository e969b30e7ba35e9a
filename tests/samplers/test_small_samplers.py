"""What each sampler promises beyond the calibration suite: its name, its label, its errors and its memory."""

from __future__ import annotations

import numpy as np
import pytest

from builders import history_of, random_rounds
from duelist.core.checks import FloatArray
from duelist.core.duels import duels_between
from duelist.core.errors import DuelistError, InvalidInputError, UnknownNameError
from duelist.core.history import History
from duelist.core.lanes import Problem
from duelist.core.last_duel import LastDuel
from duelist.core.saved import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.linear_duels import LinearDuels
from duelist.experiments.simulate import simulate
from duelist.policies.fgts import FGTS
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.posteriors.terms import FeelGoodTerm, PreferenceTerm, PriorTerm
from duelist.samplers.base import Sampler
from duelist.samplers.langevin import Langevin
from duelist.samplers.laplace import Laplace
from duelist.samplers.online import Online
from duelist.samplers.registry import SAMPLERS, sampler_named
from duelist.samplers.sgld_cv import SGLDCV
from duelist.samplers.unadjusted import UnadjustedLangevin

EXACT = {"mala", "polya_gamma"}


def some_history(lanes: int = 2, rounds: int = 60, dim: int = 3) -> History:
    rng = np.random.default_rng(7)
    sets = [rng.standard_normal((5, dim)) for _ in range(4)]
    return history_of([random_rounds(rng, rounds, sets) for _ in range(lanes)])


def potential_of(
    history: History, *, mu: float = 0.05, prior: Gaussian | GaussianBall | UniformBall | None = None
) -> LinearPotential:
    statistics = history.statistics
    return LinearPotential(
        PriorTerm(prior or Gaussian()),
        PreferenceTerm(statistics, np.ones(history.lanes)),
        FeelGoodTerm.of(statistics, np.full(history.lanes, mu)),
        lanes=history.lanes,
        chains=2,
        dim=history.dim,
        observations=history.rounds,
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


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_plays_fgts_on_fixed_and_fresh_arms(name: str) -> None:
    for fresh in (False, True):
        run = simulate(FGTS(sampler=name), LinearDuels(dim=4, arms=6, fresh_arms=fresh), rounds=60, trials=3, seed=1)
        assert np.isfinite(run.regret).all()
        again = simulate(FGTS(sampler=name), LinearDuels(dim=4, arms=6, fresh_arms=fresh), rounds=60, trials=[2], seed=1)
        np.testing.assert_array_equal(run.regret[2], again.regret[0])


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_says_whether_it_is_exact(name: str) -> None:
    assert sampler_named(name).exact == (name in EXACT)


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_stay_inside_a_ball(name: str) -> None:
    potential = potential_of(some_history(), prior=UniformBall(0.4))
    draws = draws_of(sampler_named(name), potential, 40)
    assert (np.linalg.norm(draws, axis=-1) <= 0.4).all()
    assert np.linalg.norm(draws, axis=-1).max() > 0.3


@pytest.mark.parametrize("name", SAMPLERS)
def test_advancing_leaves_the_old_chains_as_they_were_and_is_repeatable(name: str) -> None:
    sampler, potential, streams = sampler_named(name), potential_of(some_history()), Streams(0, [0, 1])
    chains = sampler.start(potential.prior, streams, chains=2, dim=potential.dim)
    chains = sampler.advance(potential, chains, streams, 0)
    before = chains.position.copy()
    one, other = sampler.advance(potential, chains, streams, 1), sampler.advance(potential, chains, streams, 1)
    np.testing.assert_array_equal(chains.position, before)
    np.testing.assert_array_equal(one.position, other.position)
    redrawn = sampler.advance(potential, chains, streams, 1, 1)
    assert not np.array_equal(one.position, redrawn.position)


@pytest.mark.parametrize("name", SAMPLERS)
def test_reports_are_one_finite_number_a_lane(name: str) -> None:
    sampler, potential, streams = sampler_named(name), potential_of(some_history()), Streams(0, [0, 1])
    chains = sampler.start(potential.prior, streams, chains=2, dim=potential.dim)
    for call in range(3):
        chains = sampler.advance(potential, chains, streams, call)
    for values in sampler.report(chains).values():
        assert values.shape == (2,)
        assert np.isfinite(values).all()


@pytest.mark.parametrize("name", SAMPLERS)
def test_numbers_that_overflow_raise_a_named_error_and_never_return_nan(name: str) -> None:
    rng = np.random.default_rng(0)
    history = history_of([random_rounds(rng, 8, [np.full((2, 3), 1e308) * [[1], [-1]]])])
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(DuelistError, match=r"overflow|ran away"):
        draws_of(sampler_named(name), potential_of(history), 5)


def test_plain_sgld_is_refused_with_a_reason() -> None:
    with pytest.raises(InvalidInputError, match=r"noise of a batch.*sgld_cv"):
        FGTS(sampler="sgld")


def test_an_unknown_sampler_says_which_is_nearest() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'laplace'"):
        sampler_named("laplas")


def test_unadjusted_langevin_is_too_wide_by_the_amount_that_its_docstring_says() -> None:
    """On a standard normal the sd is 1 / sqrt(1 - h^2/4): 1.155 at h = 1. Five standard errors of the estimate are 0.03."""
    potential = LinearPotential(PriorTerm(Gaussian()), lanes=50, chains=2, dim=5)
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
        likelihood = PreferenceTerm(last.statistics, np.ones(2))
        step = LinearPotential(PriorTerm(Gaussian()), likelihood, lanes=2, chains=2, dim=3, observations=t + 1)
        chains = sampler.advance(step, chains, streams, t)
    whole = LinearPotential(
        PriorTerm(Gaussian()), PreferenceTerm(full.statistics, np.ones(2)), lanes=2, chains=2, dim=3, observations=40
    )
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
    potential = LinearPotential(
        PriorTerm(Gaussian()), PreferenceTerm(last.statistics, np.ones(1)), lanes=1, chains=2, dim=3, observations=3
    )
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


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_state_of_any_sampler_is_saved_and_goes_on_bit_for_bit_before_and_beyond_exact_rounds(name: str) -> None:
    streams, policy = Streams(0, [0]), FGTS(sampler=name, exact_rounds=16)
    instance = LinearDuels(dim=4, arms=6, fresh_arms=True).instance(streams)
    state = policy.start(Problem(dim=4, lanes=1, horizon=60), streams)
    for t in range(41):
        actions = instance.actions(t)
        if t in (10, 40):
            asked, same = (policy.choose(s, actions, streams)[1] for s in (state, from_bytes(to_bytes(state))))
            np.testing.assert_array_equal(asked.chains.position, same.chains.position)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
