"""A model to simulate from: theta, then outcomes given theta, with the posterior that FGTS samples.

The Feel-Good tilt does not depend on the outcomes, so it can be read as part of the prior:

    theta ~ p_0(theta) exp( mu * sum_i ( max_a <theta, phi_i(a)> - <theta, adversary_i> ) ),   y_i given theta by the
    likelihood.

The posterior of *that* model is exactly the Feel-Good posterior, which makes simulation-based calibration possible with the
tilt on as well as off. Every lane has its own design and its own truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duelist.history.statistics import Statistics
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray

_CANDIDATES = 2000  # drawn for each theta; resampling one of them by weight is exact up to a part in hundreds


@dataclass(frozen=True, kw_only=True)
class JointModel:
    """A design for every lane.

    Args:
        lanes: independent simulations.
        dim: length of theta.
        rounds: comparisons in each.
        arms: arms in the action set of each round.
        mu: Feel-Good weight; 0 for none.
        seed: of the designs.
    """

    lanes: int
    dim: int = 3
    rounds: int = 12
    arms: int = 5
    mu: float = 0.0
    seed: int = 0

    @cached_property
    def sets(self) -> FloatArray:
        """(lanes, rounds, dim, arms) the action sets."""
        generator = np.random.default_rng([self.seed, 0])
        arms = 0.8 * generator.standard_normal((self.lanes, self.rounds, self.dim, self.arms))
        # What all arms share drops out of contrasts and of the tilt, unless a defect forgets one side of a difference.
        arms[:, :, 0] += 0.8
        return arms

    @property
    def contrasts(self) -> FloatArray:
        """(lanes, dim, rounds) the first arm of each set less the second."""
        return np.ascontiguousarray((self.sets[..., 0] - self.sets[..., 1]).transpose(0, 2, 1))

    @property
    def adversary(self) -> FloatArray:
        """(lanes, 1, dim) sum of the features of the third arms: fixed, and known before any outcome."""
        return np.ascontiguousarray(self.sets[..., 2].sum(axis=1)[:, None])

    def tilt(self, theta: FloatArray) -> FloatArray:
        """Log of the Feel-Good factor at theta (lanes, n, dim): (lanes, n)."""
        total: FloatArray = -np.einsum("lnd,ld->ln", theta, self.adversary[:, 0])
        for i in range(self.rounds):
            total += (theta @ self.sets[:, i]).max(axis=2)
        return self.mu * total

    def draw_theta(self, generator: np.random.Generator) -> FloatArray:
        """(lanes, dim) a draw from the tilted prior in every lane."""
        if self.mu == 0.0:
            return generator.standard_normal((self.lanes, self.dim))
        # Sampling-importance-resampling from a wider normal: its weights are bounded, as the tilt grows linearly only.
        wide = np.sqrt(2.0) * generator.standard_normal((self.lanes, _CANDIDATES, self.dim))
        log_weight = self.tilt(wide) - 0.25 * (wide**2).sum(axis=2)
        gumbel = generator.gumbel(size=log_weight.shape)
        return np.asarray(wide[np.arange(self.lanes), np.argmax(log_weight + gumbel, axis=1)])

    def draw_outcomes(self, theta: FloatArray, generator: np.random.Generator) -> IntArray:
        """(lanes, rounds) outcomes +1 or -1 given theta (lanes, dim)."""
        chance = win_probability(np.einsum("ldn,ld->ln", self.contrasts, theta))
        return np.where(generator.random(chance.shape) < chance, 1, -1)

    def potential(self, outcomes: IntArray) -> LinearPotential:
        """The posterior's potential, one chain per lane."""
        statistics = Statistics(
            self.contrasts,
            np.ones((self.lanes, self.rounds)),
            (outcomes < 0).astype(np.float64),
            np.full(self.lanes, self.rounds, dtype=np.int64),
            self.sets,
            np.ones(self.rounds),
            self.adversary,
        )
        eta, mu = np.ones(self.lanes), np.full(self.lanes, self.mu) if self.mu > 0.0 else None
        return LinearPotential.of(Gaussian(), statistics, eta=eta, mu=mu, chains=1, observations=self.rounds)
