"""Every registered sampler through one table of promises. A new sampler adds a row and must keep them all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from duelist.core.errors import DuelistError
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.samplers.base import Sampler, prior_draws, trace
from duelist.samplers.langevin import SGLDCV, Langevin, UnadjustedLangevin
from duelist.samplers.mala import MALA
from duelist.samplers.polya_gamma import PolyaGamma
from duelist.samplers.registry import SAMPLERS, sampler_named
from duelist.typing import FloatArray
from tests.support.builders import history_of, random_rounds
from tests.support.oracles import Floats, Round, many_potentials, moments_on_grid

LANES, DIM = 5, 3
AnyPrior = Gaussian | UniformBall | GaussianBall


@dataclass(frozen=True)
class Row:
    """A sampler and what may be asked of it.

    Attributes:
        name: in the registry.
        integrated: for an exact sampler, the settings that are compared with numerical integration, and its draws per chain.
        easy_draws: draws per chain of cases that it mixes well on, where as many are not needed for the same precision.
        biased: for another, settings whose bias the same comparison must see.
        keeps_prior: whether it draws from a Gaussian prior before the first duel, with no error.
    """

    name: str
    integrated: tuple[Sampler, int] | None = None
    biased: Sampler | None = None
    keeps_prior: bool = True
    easy_draws: int = 0


ROWS = [
    Row("mala", integrated=(MALA(steps=1), 4000)),
    Row("polya_gamma", integrated=(PolyaGamma(steps=1), 2600), easy_draws=1000),
    Row("paper", biased=Langevin(steps=20, step_size=0.05, decay=1.0), keeps_prior=False),
    Row("langevin", biased=UnadjustedLangevin(step_size=1.2), keeps_prior=False),
    Row("sgld_cv", biased=SGLDCV(step_size=1.2), keeps_prior=False),
    Row("laplace", biased=sampler_named("laplace")),
    Row("online", biased=sampler_named("online")),
]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def test_every_registered_sampler_has_a_row() -> None:
    assert [row.name for row in ROWS] == list(SAMPLERS)


@cache
def lane_rounds(lane: int) -> list[Round]:
    rng = np.random.default_rng([7, lane])
    # One set per lane: a history counts the combinations of sets that its lanes were offered, and sums in that order.
    return random_rounds(rng, 60, [rng.standard_normal((5, DIM))])


def potential_of(lanes: list[int], prior: AnyPrior | None = None) -> LinearPotential:
    """The posterior of those lanes, with a Feel-Good tilt."""
    history, n = history_of([lane_rounds(lane) for lane in lanes]), len(lanes)
    eta, mu = np.ones(n), np.full(n, 0.05)
    return LinearPotential.of(prior or Gaussian(), history.statistics, eta=eta, mu=mu, observations=history.rounds)


def advanced(sampler: Sampler, lanes: list[int], calls: int = 4) -> Any:
    """The state of those lanes after some calls."""
    potential, streams = potential_of(lanes), Streams(1, lanes)
    state = sampler.start(potential.prior, streams, chains=2, dim=DIM)
    for call in range(calls):
        state = sampler.advance(potential, state, streams, call)
    return state


@every_row
def test_it_says_whether_it_is_exact_and_in_its_docstring_if_it_is_not(row: Row) -> None:
    sampler = sampler_named(row.name)
    assert sampler.exact == (row.integrated is not None) == (row.biased is None)
    words = (type(sampler).__doc__ or "").lower()
    assert sampler.exact != any(word in words for word in ("biased", "approximate"))


@every_row
def test_a_lane_gives_the_same_numbers_alone_in_a_block_and_in_another_order(row: Row) -> None:
    sampler = sampler_named(row.name)
    block, order = advanced(sampler, list(range(LANES))), [3, 0, 4, 2, 1]
    np.testing.assert_array_equal(advanced(sampler, order).position, block.position[order])
    for lane in (0, LANES - 1):
        alone = advanced(sampler, [lane])
        np.testing.assert_array_equal(alone.position[0], block.position[lane])
        for name, values in sampler.report(alone).items():
            np.testing.assert_array_equal(values[0], sampler.report(block)[name][lane])


@every_row
def test_the_same_call_gives_the_same_draws_and_leaves_its_input_and_another_call_gives_others(row: Row) -> None:
    sampler, potential, streams = sampler_named(row.name), potential_of([0, 1]), Streams(1, [0, 1])
    state = advanced(sampler, [0, 1], calls=1)
    before = state.position.copy()
    once, twice = (sampler.advance(potential, state, streams, 1) for _ in range(2))
    np.testing.assert_array_equal(once.position, twice.position)
    np.testing.assert_array_equal(state.position, before)
    positions = {sampler.advance(potential, state, streams, r, a).position.tobytes() for r in range(3) for a in range(3)}
    assert len(positions) == 9


@every_row
def test_reports_are_one_finite_number_per_lane(row: Row) -> None:
    sampler = sampler_named(row.name)
    for values in sampler.report(advanced(sampler, list(range(LANES)))).values():
        assert values.shape == (LANES,)
        assert np.isfinite(values).all()


@every_row
def test_a_saved_state_goes_on_bit_for_bit_before_and_beyond_exact_rounds(row: Row) -> None:
    streams, policy = Streams(0, [0]), FGTS(sampler=row.name, exact_rounds=16)
    instance = LinearDuels(dim=4, arms=6, fresh_arms=True).instance(streams)
    state = policy.start(Problem(dim=4, lanes=1, horizon=60), streams)
    for t in range(41):
        actions = instance.actions(t)
        if t in (10, 40):
            asked, same = (policy.choose(s, actions, streams)[1] for s in (state, from_bytes(to_bytes(state))))
            assert to_bytes(asked) == to_bytes(same)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))


@every_row
def test_draws_stay_inside_a_ball_and_reach_its_wall(row: Row) -> None:
    potential, streams = potential_of([0, 1], UniformBall(0.4)), Streams(0, [0, 1])
    sampler = sampler_named(row.name)
    state = sampler.start(potential.prior, streams, chains=2, dim=DIM)
    _, found = trace(sampler, potential, state, streams, 0, 70)
    lengths = np.linalg.norm(found.path, axis=-1)
    assert (lengths <= 0.4).all()
    assert lengths[:, :, 30:].max() > 0.3


@every_row
def test_numbers_that_overflow_raise_a_named_error_and_never_return_nan(row: Row) -> None:
    history = history_of([random_rounds(np.random.default_rng(0), 8, [np.full((2, 3), 1e308) * [[1], [-1]]])])
    potential = LinearPotential.of(Gaussian(), history.statistics, eta=np.ones(1), mu=np.full(1, 0.05), observations=8)
    sampler, streams = sampler_named(row.name), Streams(0, [0])
    state = sampler.start(Gaussian(), streams, chains=2, dim=3)
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(DuelistError, match=r"overflow|ran away"):
        trace(sampler, potential, state, streams, 0, 35)


@every_row
def test_before_the_first_duel_it_draws_from_the_prior(row: Row) -> None:
    """Four Kolmogorov-Smirnov tests of 500 draws each: a false alarm once in a thousand seeds."""
    lanes, prior, sampler = 500, Gaussian(0.5), sampler_named(row.name)
    potential, streams = LinearPotential(prior, empty_likelihood(lanes, 2), chains=2), Streams(0, range(lanes))
    state = sampler.start(prior, streams, chains=2, dim=2)
    np.testing.assert_array_equal(state.position, prior_draws(prior, streams, chains=2, dim=2))
    for call in range(3):
        state = sampler.advance(potential, state, streams, call)
    if row.keeps_prior:
        columns = state.position.reshape(lanes, 4).T
        assert min(stats.kstest(column, stats.norm(0.0, 0.5).cdf).pvalue for column in columns) > 0.001 / 4


# In the plane, draws of 100 lanes are compared with numerical integration. The standard error of the mean, measured between
# lanes, is asserted to be below a fifth of the tolerance, so that a false alarm is a five-sigma event: less than once in a
# million for each comparison.
BLOCK, BURN_IN = 100, 60
MEAN_TOLERANCE = 0.05  # posterior standard deviations
DEVIATION_TOLERANCE = 0.03  # relative
STRONG = 0.08


@dataclass(frozen=True)
class Case:
    """A posterior in the plane: prior, Feel-Good weight, temper, and whether chains mix well on it."""

    name: str
    prior: AnyPrior
    mu: float = 0.0
    eta: float = 1.0
    easy: bool = True


CASES = [
    Case("Gaussian, plain", Gaussian(1.0)),
    Case("Gaussian, strong Feel-Good", Gaussian(1.0), STRONG),
    Case("Gaussian, strong Feel-Good, tempered", Gaussian(1.0), STRONG, 0.5, easy=False),
    Case("ball, plain", UniformBall(1.2)),
    Case("ball, strong Feel-Good", UniformBall(1.2), STRONG),
    Case("Gaussian in a ball, strong Feel-Good", GaussianBall(0.8, 1.2), STRONG),
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cache
def played_rounds() -> list[Round]:
    """Sixty duels among five arms. The two draws chose from different arms, so their adversaries differ."""
    rng = np.random.default_rng(2)
    truth = np.array([0.8, -0.6])
    arms = rng.normal(size=(5, 2))
    rounds = []
    for _ in range(60):
        first, second = int(rng.integers(0, 3)), int(rng.integers(2, 5))
        chance = 1 / (1 + math.exp(-float(truth @ (arms[first] - arms[second]))))
        rounds.append(Round(arms, first, second, 1 if rng.random() < chance else -1))
    return rounds


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation (2,) of one draw."""

    mean: Floats
    deviation: Floats


@cache
def integrate(case: Case, draw: int, points: int = 160) -> Moments:
    prior, weights = case.prior, {"eta": case.eta, "mu": case.mu}

    def potential(thetas: Floats) -> Floats:
        return many_potentials(thetas, played_rounds(), draw=draw, precision=prior.precision, radius=prior.radius, **weights)

    return Moments(*moments_on_grid(potential, reach=min(prior.radius, 12.0), points=points))


@cache
def plane_potential(case: Case) -> LinearPotential:
    statistics = history_of([played_rounds()] * BLOCK).statistics
    mu, eta = np.full(BLOCK, case.mu) if case.mu else None, np.full(BLOCK, case.eta)
    return LinearPotential.of(case.prior, statistics, eta=eta, mu=mu, observations=len(played_rounds()))


def plane_path(case: Case, warm: Sampler, sampler: Sampler, draws: int) -> FloatArray:
    """(lanes, 2, draws, 2): every lane samples the same two posteriors with its own random numbers."""
    potential, streams = plane_potential(case), Streams(0, range(BLOCK))
    state = warm.start(case.prior, streams, chains=2, dim=2)
    for round_ in range(BURN_IN):
        state = warm.advance(potential, state, streams, round_)
    return trace(sampler, potential, state, streams, BURN_IN, draws)[1].path


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.integrated], ids=lambda row: row.name)
@every_case
def test_exact_draws_match_numerical_integration(row: Row, case: Case) -> None:
    assert row.integrated is not None
    sampler, draws = row.integrated
    path = plane_path(case, sampler_named(row.name), sampler, row.easy_draws if case.easy and row.easy_draws else draws)
    assert (np.linalg.norm(path, axis=-1) <= case.prior.radius).all()
    for draw in (1, 2):
        truth = integrate(case, draw)
        drawn = path[:, draw - 1]
        error = drawn.mean(axis=1).std(axis=0, ddof=1) / math.sqrt(BLOCK) / truth.deviation
        assert error.max() < MEAN_TOLERANCE / 5
        assert np.abs((drawn.mean(axis=(0, 1)) - truth.mean) / truth.deviation).max() < MEAN_TOLERANCE
        assert np.abs(drawn.std(axis=(0, 1)) / truth.deviation - 1).max() < DEVIATION_TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("row", [row for row in ROWS if row.biased], ids=lambda row: row.name)
def test_the_bias_of_the_others_is_seen_by_the_same_comparison(row: Row) -> None:
    """Beyond twice a tolerance, where an exact sampler would be once in far more than a million runs."""
    assert row.biased is not None
    case = CASES[1]
    drawn, truth = plane_path(case, row.biased, row.biased, 100)[:, 0], integrate(case, 1)
    off_mean = np.abs((drawn.mean(axis=(0, 1)) - truth.mean) / truth.deviation).max() / MEAN_TOLERANCE
    off_width = np.abs(drawn.std(axis=(0, 1)) / truth.deviation - 1).max() / DEVIATION_TOLERANCE
    assert max(off_mean, off_width) > 2


@pytest.mark.parametrize("case", [case for case in CASES if case.mu], ids=lambda case: case.name)
def test_strong_feel_good_moves_both_means_by_a_standard_deviation_and_apart(case: Case) -> None:
    plain = integrate(Case("plain", case.prior, 0.0, case.eta), 1)
    tilted = [integrate(case, draw) for draw in (1, 2)]
    for moments in tilted:
        assert np.abs((moments.mean - plain.mean) / plain.deviation).max() > 1.0
    assert np.abs((tilted[0].mean - tilted[1].mean) / plain.deviation).max() > 0.25


@pytest.mark.slow
@pytest.mark.parametrize("case", [CASES[1], CASES[4]], ids=lambda case: case.name)
def test_a_finer_grid_says_the_same(case: Case) -> None:
    coarse, fine = integrate(case, 1), integrate(case, 1, points=320)
    assert np.abs((coarse.mean - fine.mean) / fine.deviation).max() < 0.003
    assert np.abs(coarse.deviation / fine.deviation - 1).max() < 0.003
