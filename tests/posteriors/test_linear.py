"""The potential is the paper's sum, its gradient is its gradient, and its symmetries hold."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.history.history import History
from duelist.posteriors.linear import LinearPotential, empty_likelihood, tilt_from
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from tests.support.builders import history_of, random_rounds
from tests.support.oracles import Floats, Round, finite_difference, full_potential, many_potentials

PRIORS: list[Prior] = [Gaussian(0.8), UniformBall(2.5), GaussianBall(1.5, 2.5)]


def potential_of(history: History, prior: Prior, *, eta: float, mu: float) -> LinearPotential:
    statistics = history.statistics
    lanes = history.lanes
    return LinearPotential.of(prior, statistics, eta=np.full(lanes, eta), mu=np.full(lanes, mu) if mu else None)


def some_rounds(seed: int, dim: int, sizes: Sequence[int] = (2, 4, 5)) -> list[Round]:
    rng = np.random.default_rng(seed)
    return random_rounds(rng, 12, [rng.normal(size=(k, dim)) for k in sizes])


def inside(rng: np.random.Generator, dim: int, prior: Prior) -> Floats:
    """A point well inside the ball, so that differences do not cross its wall."""
    theta = rng.normal(size=dim)
    return np.asarray(theta * min(1.0, 0.9 * prior.radius / float(np.linalg.norm(theta))))


@pytest.mark.slow
@given(
    seed=st.integers(0, 999),
    dim=st.integers(1, 5),
    eta=st.sampled_from([0.0, 0.25, 1.0]),
    mu=st.sampled_from([0.0, 0.05, 2.0]),
    prior=st.sampled_from(PRIORS),
)
def test_values_are_the_papers_sum_and_gradients_match_finite_differences(
    seed: int, dim: int, eta: float, mu: float, prior: Prior
) -> None:
    rounds = some_rounds(seed, dim)
    potential = potential_of(history_of([rounds]), prior, eta=eta, mu=mu)
    theta = inside(np.random.default_rng(seed), dim, prior)
    both = np.tile(theta, (1, 2, 1))
    values, gradients = potential.value(both)[0], potential.gradient(both)[0]
    for draw in (1, 2):

        def oracle(at: Floats, draw: int = draw) -> float:
            return full_potential(at, rounds, draw=draw, eta=eta, mu=mu, precision=prior.precision, radius=prior.radius)

        assert values[draw - 1] == pytest.approx(oracle(theta), rel=1e-10, abs=1e-10)
        # The Feel-Good maximum has kinks; a step of 1e-7 straddles one with negligible chance, and the seeds are fixed.
        np.testing.assert_allclose(gradients[draw - 1], finite_difference(oracle, theta, 1e-7), rtol=1e-5, atol=1e-5)


def test_outside_the_ball_the_density_is_zero() -> None:
    potential = potential_of(history_of([some_rounds(0, 2)]), UniformBall(1.0), eta=1.0, mu=0.1)
    values = potential.value(np.array([[[1.0, 0.01], [0.6, 0.6]]]))
    assert values[0, 0] == math.inf
    assert math.isfinite(values[0, 1])


@pytest.mark.parametrize("logit", [-700.0, 700.0])
def test_values_and_gradients_stay_finite_for_logits_of_seven_hundred(logit: float) -> None:
    rounds = [Round(np.array([[1.0], [0.0]]), 0, 1, 1), Round(np.array([[1.0], [0.0]]), 0, 1, -1)]
    potential = potential_of(history_of([rounds]), Gaussian(), eta=1.0, mu=0.1)
    theta = np.full((1, 2, 1), logit)
    expected = [full_potential(theta[0, 0], rounds, draw=j, mu=0.1) for j in (1, 2)]
    np.testing.assert_allclose(potential.value(theta)[0], expected, rtol=1e-12)
    # One win and one loss at a certain logit: a slope of one against it, beside the prior's and the tilt's.
    tilts = [-2 * 0.1 * (1.0 if logit > 0 else 0.0), -2 * 0.1 * (0.0 if logit > 0 else -1.0)]
    for chain, tilt in enumerate(tilts):
        assert potential.gradient(theta)[0, chain, 0] == pytest.approx(logit + math.copysign(1.0, logit) + tilt, rel=1e-12)


@pytest.mark.parametrize("prior", PRIORS)
def test_without_feel_good_the_two_posteriors_coincide(prior: Prior) -> None:
    history = history_of([some_rounds(seed, 3, (4, 4)) for seed in range(4)])
    theta = np.random.default_rng(0).normal(size=(4, 1, 3))
    theta *= 0.5 / np.linalg.norm(theta, axis=2, keepdims=True)
    both = np.repeat(theta, 2, axis=1)
    plain = potential_of(history, prior, eta=1.0, mu=0.0)
    np.testing.assert_array_equal(plain.value(both)[:, 0], plain.value(both)[:, 1])
    np.testing.assert_array_equal(plain.gradient(both)[:, 0], plain.gradient(both)[:, 1])
    tilted = potential_of(history, prior, eta=1.0, mu=0.5)
    assert (tilted.value(both)[:, 0] != tilted.value(both)[:, 1]).all()


def swapped(rounds: Sequence[Round]) -> list[Round]:
    """The same duels with the two candidates in each other's place and the outcome said the other way round."""
    return [Round(r.arms, r.second, r.first, -r.outcome) for r in rounds]


@given(seed=st.integers(0, 999), dim=st.integers(1, 4))
def test_swapping_the_pair_and_flipping_the_outcome_leaves_the_likelihood_and_exchanges_the_draws(seed: int, dim: int) -> None:
    rounds = some_rounds(seed, dim)
    one, other = history_of([rounds]), history_of([swapped(rounds)])
    theta = np.tile(np.random.default_rng(seed).normal(size=dim), (1, 2, 1))
    for mu in (0.0, 0.4):
        left = potential_of(one, Gaussian(), eta=1.0, mu=mu)
        right = potential_of(other, Gaussian(), eta=1.0, mu=mu)
        np.testing.assert_allclose(left.value(theta), right.value(theta)[:, ::-1], rtol=1e-12)
        np.testing.assert_allclose(left.gradient(theta), right.gradient(theta)[:, ::-1], rtol=1e-9, atol=1e-12)


def test_the_feel_good_term_favours_parameters_that_beat_the_adversary() -> None:
    # The second arm was the adversary of draw 1: draw 1 is pulled towards the first arm, draw 2 towards the second.
    arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    history = history_of([[Round(arms, 0, 1, 1)]])
    flat, tilted = (potential_of(history, Gaussian(), eta=1.0, mu=mu) for mu in (0.0, 0.5))
    towards_first = np.tile([1.0, 0.0], (1, 2, 1))
    np.testing.assert_allclose(tilted.value(towards_first) - flat.value(towards_first), [[-0.5, 0.0]])


def test_each_lane_has_its_own_temper_and_weight() -> None:
    rounds = some_rounds(3, 2)
    statistics = history_of([rounds, rounds]).statistics
    eta, mu = np.array([1.0, 0.25]), np.array([0.0, 0.7])
    potential = LinearPotential.of(Gaussian(), statistics, eta=eta, mu=mu)
    theta = np.array([0.3, -0.8])
    expected = [[full_potential(theta, rounds, draw=j, eta=eta[n], mu=mu[n]) for j in (1, 2)] for n in range(2)]
    np.testing.assert_allclose(potential.value(np.tile(theta, (2, 2, 1))), expected, rtol=1e-12)


def test_before_any_duel_the_potential_is_the_priors() -> None:
    potential = LinearPotential(Gaussian(0.5), empty_likelihood(1, 2), chains=2)
    theta = np.array([[[1.0, 2.0], [0.0, 0.0]]])
    np.testing.assert_allclose(potential.value(theta), [[0.5 * 4.0 * 5.0, 0.0]])
    np.testing.assert_allclose(potential.gradient(theta), 4.0 * theta)


class Flat:
    """A prior that says nothing at all."""

    precision = 0.0
    radius = math.inf

    def sample(self, generator: np.random.Generator, dim: int) -> Floats:
        return generator.standard_normal(dim)


def test_a_flat_prior_without_a_ball_is_refused() -> None:
    with pytest.raises(ImproperPosteriorError, match="ball"):
        LinearPotential(Flat(), empty_likelihood(1, 2), chains=2)


def test_a_scale_so_large_that_its_precision_is_zero_is_refused() -> None:
    with pytest.raises(ImproperPosteriorError, match="ball"):
        LinearPotential(Gaussian(1e200), empty_likelihood(1, 2), chains=2)


def test_feel_good_without_the_past_action_sets_is_refused() -> None:
    history = history_of([some_rounds(0, 2)], keep_sets=False)
    with pytest.raises(InvalidInputError, match="keep_sets"):
        tilt_from(history.statistics, np.ones(1))


@pytest.mark.parametrize("shape", [(2, 2, 2), (1, 3, 2), (1, 2, 3), (1, 2)])
def test_a_theta_of_another_shape_is_refused_rather_than_read_beyond_its_end(shape: tuple[int, ...]) -> None:
    potential = potential_of(history_of([some_rounds(0, 2)]), Gaussian(), eta=1.0, mu=0.1)
    with pytest.raises(InvalidInputError, match=r"theta must be \(1, 2, 2\)"):
        potential.value(np.zeros(shape))


def test_a_term_of_another_shape_is_refused_rather_than_read_beyond_its_end() -> None:
    statistics = history_of([some_rounds(0, 2)]).statistics
    with pytest.raises(InvalidInputError, match="chains"):
        LinearPotential.of(Gaussian(), statistics, eta=np.ones(1), mu=np.ones(1), chains=3)
    with pytest.raises(InvalidInputError, match="lane"):
        LinearPotential.of(Gaussian(), statistics, eta=np.ones(2))


def test_the_two_oracles_agree() -> None:
    rounds = some_rounds(1, 2)
    thetas = np.random.default_rng(0).normal(size=(20, 2))
    for draw in (1, 2):
        at_once = many_potentials(thetas, rounds, draw=draw, eta=0.5, mu=0.3, precision=2.0, radius=1.5)
        one_by_one = [full_potential(t, rounds, draw=draw, eta=0.5, mu=0.3, precision=2.0, radius=1.5) for t in thetas]
        np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)
