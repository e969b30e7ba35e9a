"""The gradient without the value is the gradient with it."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.history.statistics import Statistics
from duelist.kernels.potential import LinearTerms, gradient_alone, scratch_for
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from duelist.typing import FloatArray
from tests.support.kernels import uncached_kernel


@uncached_kernel
def gradients_alone(theta: FloatArray, terms: LinearTerms, gradients: FloatArray) -> None:
    scratch = scratch_for(terms)
    for lane in range(theta.shape[0]):
        for chain in range(theta.shape[1]):
            gradient_alone(gradients[lane, chain], theta[lane, chain], lane, chain, terms, scratch)


@pytest.mark.slow
def test_gradient_alone_is_the_gradient_of_the_potential_with_and_without_the_tilt() -> None:
    generator = np.random.default_rng(0)
    lanes, dim, n = 2, 5, 9
    totals = generator.integers(1, 5, (lanes, n)).astype(float)
    statistics = Statistics(
        generator.standard_normal((lanes, dim, n)),
        totals,
        np.floor(totals * generator.random((lanes, n))),
        np.array([n, 4]),
        generator.standard_normal((lanes, 3, dim, 6)),
        np.array([2.0, 1.0, 5.0]),
        generator.standard_normal((lanes, 2, dim)),
    )
    potential = LinearPotential.of(Gaussian(), statistics, eta=np.array([1.0, 0.25]), mu=np.array([0.3, 0.0]))
    theta = generator.standard_normal((lanes, 2, dim))
    gradients = np.empty_like(theta)
    gradients_alone(theta, potential.compiled_terms, gradients)
    np.testing.assert_allclose(gradients, potential.gradient(theta), rtol=1e-12)
