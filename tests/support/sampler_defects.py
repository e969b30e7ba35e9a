"""Samplers and posteriors that are wrong in known ways. Every check of the suite must see the ones it is meant for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from duelist.core.streams import Streams
from duelist.kernels.potential import Tilt
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.preferences.logistic import log_loss_slope
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, refresh_curvature, unknown_curvature
from duelist.samplers.expansion import no_expansion
from duelist.samplers.langevin import Langevin, LangevinState, UnadjustedLangevin, UnadjustedState
from duelist.typing import FloatArray

TOO_LARGE_A_STEP = UnadjustedLangevin(step_size=1.2)


@dataclass(frozen=True, kw_only=True)
class LatePaperSchedule(Langevin):
    """The paper's recipe as it is after a thousand rounds, when its step is 2e-7."""

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> LangevinState:
        return super().start(prior, streams, chains=chains, dim=dim)._replace(calls=1000)


@dataclass(frozen=True, kw_only=True)
class PlainSGLD:
    """Stochastic-gradient Langevin without control variates: batches of contrasts, scaled up. Preconditioned, to be fair."""

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float = 0.5
    batch: int = 32

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> UnadjustedState:
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return UnadjustedState(position, unknown_curvature(len(streams), dim), no_expansion(len(streams), dim))

    def advance(
        self, potential: LinearPotential, chains: UnadjustedState, streams: Streams, round_: int, attempt: int = 0
    ) -> UnadjustedState:
        curvature: Curvature = refresh_curvature(chains.curvature, potential)
        terms, theta = potential.compiled_terms, chains.position[:, 0].copy()
        generator = streams.generator(f"sgld {attempt}", 0, round_)
        n = int(terms.likelihood.n_rows[0])
        for _ in range(self.steps):
            rows = generator.integers(n, size=(potential.lanes, self.batch))
            contrasts = np.take_along_axis(terms.likelihood.contrasts, rows[:, None], axis=2)
            totals, losses = (
                np.take_along_axis(counts, rows, axis=1) for counts in (terms.likelihood.totals, terms.likelihood.losses)
            )
            slopes = losses + totals * log_loss_slope(np.einsum("ldb,ld->lb", contrasts, theta))
            gradient = terms.precision[:, None] * theta + np.einsum("ldb,lb->ld", contrasts, slopes) * (n / self.batch)
            slope = np.einsum("lij,lj->li", curvature.whitener, gradient)
            noise = self.step_size * generator.standard_normal(theta.shape) - 0.5 * self.step_size**2 * slope
            theta += np.einsum("lji,lj->li", curvature.whitener, noise)
        return UnadjustedState(theta[:, None], curvature, chains.expansion)

    def report(self, chains: UnadjustedState) -> dict[str, FloatArray]:  # noqa: ARG002 - a sampler's signature
        return {}


def _with_tilt(potential: LinearPotential, tilt: Tilt) -> LinearPotential:
    return LinearPotential(
        potential.prior, potential.likelihood, tilt, chains=potential.chains, observations=potential.observations
    )


def _tilt_of(potential: LinearPotential) -> Tilt:
    assert potential.tilt is not None
    return potential.tilt


def with_the_wrong_sign(potential: LinearPotential) -> LinearPotential:
    """The Feel-Good term added to the potential instead of subtracted from it."""
    tilt = _tilt_of(potential)
    return _with_tilt(potential, tilt._replace(repeats=-tilt.repeats, adversary=-tilt.adversary))


def without_the_adversary(potential: LinearPotential) -> LinearPotential:
    """The Feel-Good term with the maximum alone, the adversary's arm forgotten."""
    tilt = _tilt_of(potential)
    return _with_tilt(potential, tilt._replace(adversary=np.zeros_like(tilt.adversary)))
