"""The Gaussian at the mode: independent draws at the price of a fit. Approximate.

The mode and curvature are those of prior x likelihood; the Feel-Good tilt, whose curvature is that of kinks, enters by
its slope at the mode, which moves the mean by (curvature)^-1 times it. A ball is respected by drawing again. What is
lost is the skewness of the posterior: of order 1/sqrt(duels), and large while there are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray, whole_number
from duelist.core.compiled import kernel
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import lower_times, lower_transposed_times
from duelist.core.philox import fill_normals, first_block
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms, add_feel_good, pull_into_ball, scratch_for
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, renewed, unknown_curvature


class LaplaceChains(NamedTuple):
    """Draws of `Laplace`: (lanes, chains, dim) positions, the Gaussian they came from, and how many were redrawn or pulled."""

    position: FloatArray
    curvature: Curvature
    pulled: FloatArray


@kernel
def gaussian_lanes(
    position: FloatArray,
    mode: FloatArray,
    whitener: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    tries: int,
    terms: LinearTerms,
    pulled: IntArray,
) -> int:
    """Fill `position` (lanes, chains, dim) with draws from the Gaussian at the mode, shifted by the Feel-Good slope.

    `pulled` (lanes,) counts draws that were outside the ball `tries` times and were pulled onto it. Returns -1, or the first
    lane whose draws are not finite.
    """
    lanes, chains, dim = position.shape
    utilities = scratch_for(terms)[0]
    slope, whitened, shift, noise = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        for chain in range(chains):
            slope[:] = 0.0
            add_feel_good(slope, mode[lane], lane, chain, terms.tilt, utilities)
            lower_times(whitened, whitener[lane], slope)
            block = first_block()
            inside = False
            for _ in range(tries):
                block, _uniform = fill_normals(noise, keys[lane], block, round_, first_substream + chain)
                for i in range(dim):
                    noise[i] -= whitened[i]
                lower_transposed_times(shift, whitener[lane], noise)
                squared = 0.0
                for i in range(dim):
                    position[lane, chain, i] = mode[lane, i] + shift[i]
                    squared += position[lane, chain, i] ** 2
                if squared <= terms.radius * terms.radius:
                    inside = True
                    break
            if not inside:
                pulled[lane] += 1
                if not pull_into_ball(position[lane, chain], terms.radius):
                    return lane
    return -1


def draw_gaussians(
    chains: FloatArray,
    mode: FloatArray,
    whitener: FloatArray,
    streams: Streams,
    round_: int,
    attempt: int,
    tries: int,
    terms: LinearTerms,
) -> tuple[FloatArray, IntArray]:
    """Draws of the shape of `chains` (lanes, chains, dim) from the Gaussian at the mode, and how many were pulled."""
    position = np.empty_like(chains)
    pulled = np.zeros(len(position), dtype=np.int64)
    first_substream = attempt * position.shape[1]
    bad_lane = gaussian_lanes(position, mode, whitener, streams.keys("sampler"), round_, first_substream, tries, terms, pulled)
    if bad_lane >= 0:
        raise NonFiniteError(
            f"the Gaussian of lane {bad_lane} is not finite. Features this large overflow; scale them so that |<theta, z>| "
            f"stays below a few hundred."
        )
    return position, pulled


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Draws from the Gaussian at the mode, a new independent one every round. Approximate.

    Args:
        tries: draws that may fall outside a ball before one is pulled onto it.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    tries: int = 100

    def __post_init__(self) -> None:
        whole_number("tries", self.tries, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> LaplaceChains:
        """Draws from the prior, before there is anything to fit."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return LaplaceChains(position, unknown_curvature(lanes, dim), np.zeros(lanes))

    def advance(
        self, potential: LinearPotential, chains: LaplaceChains, streams: Streams, round_: int, attempt: int = 0
    ) -> LaplaceChains:
        """Fit the mode if there are new duels, and draw."""
        curvature = chains.curvature
        if curvature.observations != potential.observations:
            curvature = renewed(curvature._replace(observations=-1), potential)
        position, pulled = draw_gaussians(
            chains.position, curvature.mode, curvature.whitener, streams, round_, attempt, self.tries, potential.packed
        )
        return LaplaceChains(position, curvature, chains.pulled + pulled)

    def report(self, chains: LaplaceChains) -> dict[str, FloatArray]:
        """Draws that had to be pulled onto the ball so far, one number a lane."""
        return {"pulled": chains.pulled}
