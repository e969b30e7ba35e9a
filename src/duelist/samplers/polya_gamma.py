"""Gibbs sampling with Polya-Gamma variables: exact, and of a construction that has nothing in common with MALA's.

Given one variable w_i ~ PG(eta n_i, <theta, z_i>) per contrast (n_i duels, l_i of them lost), theta is Gaussian with

    precision  prior + sum_i w_i z_i z_i^T,    precision x mean  = eta sum_i (n_i/2 - l_i) z_i - g,

g the gradient of the Feel-Good tilt at the mode. Where that is all, theta is drawn from it: plain Gibbs. What is not
Gaussian, the Feel-Good maximum beyond its slope, the wall of a ball, and the truncated Polya-Gamma sums (see
`duelist.kernels.polya_gamma`), enters by an elliptical slice step around the same Gaussian, which is exact, never rejects and
has nothing to tune either.

Reference: Polson, Scott & Windle (2013), Bayesian inference for logistic models using Polya-Gamma latent variables;
Murray, Adams & MacKay (2010), Elliptical slice sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.kernels.philox import RandomSource
from duelist.kernels.polya_gamma import polya_gamma_lanes
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws, random_source
from duelist.samplers.curvature import Curvature, flat_precision, refresh_curvature, unknown_curvature
from duelist.samplers.peaks import PeakState, no_peaks, report_peaks, visit_peaks
from duelist.typing import FloatArray

_BARRIER = 0.0  # nats: slice steps cross between peaks far more rarely than the steps of MALA


@stored("polya-gamma-info")
class PolyaGammaInfo(NamedTuple):
    """Counters of `PolyaGamma`.

    Attributes:
        tried: (lanes, chains) points tried so far, at least one per sweep.
        sweeps: sweeps per chain so far.
    """

    tried: FloatArray
    sweeps: int


def _upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 was flat; up to version 2 chains did not jump."""
    if version == 1:
        fields = nest(info=PolyaGammaInfo)(version, fields)
    return {**fields, "peaks": no_peaks(*fields["position"].shape)}


@stored("polya-gamma-state", version=3, upgrade=_upgrade)
class PolyaGammaState(NamedTuple):
    """State of `PolyaGamma`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        curvature: where the Feel-Good maximum is linearised.
        peaks: what chains jump between.
        info: counters.
    """

    position: FloatArray
    curvature: Curvature
    peaks: PeakState
    info: PolyaGammaInfo


@dataclass(frozen=True, kw_only=True)
class PolyaGamma:
    """Gibbs sampling with Polya-Gamma variables.

    Args:
        steps: sweeps each chain makes per round, from where it stood the round before. A sweep costs one Polya-Gamma variate
            per distinct contrast and one Cholesky factor, some thirty MALA steps; it also moves much further.
    """

    exact: ClassVar[bool] = True
    one_pass: ClassVar[bool] = False

    steps: int = 5

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> PolyaGammaState:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        info = PolyaGammaInfo(np.zeros((lanes, chains)), 0)
        return PolyaGammaState(position, unknown_curvature(lanes, dim), no_peaks(lanes, chains, dim), info)

    def advance(
        self, potential: LinearPotential, state: PolyaGammaState, streams: Streams, round_: int, attempt: int = 0
    ) -> PolyaGammaState:
        """Jump between peaks where there are several, then make `steps` sweeps with every chain."""
        terms = potential.compiled_terms
        # The mode is needed for the Feel-Good slope alone; without the tilt nothing is ever computed from it.
        curvature = refresh_curvature(state.curvature, potential) if potential.mu.any() else state.curvature
        position = state.position.copy()
        lanes, n_chains, _ = position.shape
        source, extra = random_source(streams, round_, attempt, n_chains), flat_precision(potential.prior, potential.dim)

        def jumps() -> RandomSource:
            return source._replace(keys=streams.keys("jumps"))

        renewed = curvature is not state.curvature
        peaks = visit_peaks(state.peaks, position, curvature, renewed, potential.observations, terms, jumps, _BARRIER)
        tried = np.empty((lanes, n_chains))
        bad_lane = polya_gamma_lanes(position, curvature.mode, source, self.steps, extra, terms, tried)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the Polya-Gamma sampler met a number that is not finite in lane {bad_lane}. Features this large overflow; "
                f"scale them so that |<theta, z>| stays below a few hundred."
            )
        info = PolyaGammaInfo(state.info.tried + self.steps * tried, state.info.sweeps + self.steps)
        return PolyaGammaState(position, curvature, peaks, info)

    def report(self, state: PolyaGammaState) -> dict[str, FloatArray]:
        """Share of the points tried that were taken, one number per lane; 1 for plain Gibbs."""
        acceptance = max(state.info.sweeps, 1) / np.maximum(state.info.tried.mean(axis=1), 1.0)
        return {"acceptance": acceptance, **report_peaks(state.peaks)}
