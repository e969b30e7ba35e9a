"""Metropolis-adjusted Langevin (MALA), preconditioned by the curvature at the mode: exact, and the default.

In coordinates phi = L^T theta, with L L^T the curvature, the posterior is close to a standard normal, and a step is

    phi' = phi - (h^2 / 2) grad U(phi) + h xi,   xi ~ N(0, I),

accepted with the Metropolis-Hastings probability of its Langevin proposal. The accept step removes the bias that plain
Langevin has at any step size, also where the potential has the kinks of the Feel-Good maximum or the wall of a ball.

Reference: Roberts & Tweedie (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, finite_number, whole_number
from duelist.core.compiled import kernel
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import copy_into, lower_times, lower_transposed_times
from duelist.core.philox import fill_normals, first_block
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms, scratch_for, value_and_gradient
from duelist.posteriors.priors import Prior
from duelist.posteriors.table_potential import TablePotential
from duelist.samplers.any_potential import mala_randomness, mala_walk, randomness_in_numpy
from duelist.samplers.base import Trace, prior_draws
from duelist.samplers.curvature import Curvature, renewed, unknown_curvature
from duelist.samplers.expansion import Expansion, no_expansion, shaped
from duelist.samplers.step_size import adapted, first_step


class MALAChains(NamedTuple):
    """Chains of `MALA`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        log_step: (lanes, chains) logarithm of h, adapted between calls and fixed within one.
        curvature: what shapes the proposals.
        expansion: what stands for a long history.
        accepted: (lanes, chains) sum of acceptance probabilities so far.
        proposed: steps a chain so far.
        calls: calls of `advance` so far.
    """

    position: FloatArray
    log_step: FloatArray
    curvature: Curvature
    expansion: Expansion
    accepted: FloatArray
    proposed: int
    calls: int


@kernel
def mala_lanes(
    position: FloatArray,
    log_step: FloatArray,
    whitener: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    steps: int,
    keep_every: int,
    terms: LinearTerms,
    acceptance: FloatArray,
    path: FloatArray,
    energy: FloatArray,
) -> int:
    """Take `steps` steps with every chain in place. Returns -1, or the first lane whose potential is not finite.

    `acceptance` (lanes, chains) is filled with the mean acceptance probability. Position and potential after every
    `keep_every`-th step go to `path` (lanes, chains, kept, dim) and `energy` (lanes, chains, kept), as far as these reach.
    """
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    gradient, new_gradient, proposal = np.empty(dim), np.empty(dim), np.empty(dim)
    slope, new_slope, noise, move = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        w = whitener[lane]
        for chain in range(chains):
            theta = position[lane, chain]
            h = math.exp(log_step[lane, chain])
            value = value_and_gradient(gradient, theta, lane, chain, terms, scratch)
            if not math.isfinite(value):
                return lane
            lower_times(slope, w, gradient)
            block = first_block()
            accepted = 0.0
            for step in range(steps):
                block, uniform = fill_normals(noise, keys[lane], block, round_, first_substream + chain)
                forward = 0.0
                for i in range(dim):
                    move[i] = h * noise[i] - 0.5 * h * h * slope[i]
                    forward += noise[i] * noise[i]
                lower_transposed_times(proposal, w, move)
                for i in range(dim):
                    proposal[i] += theta[i]
                new_value = value_and_gradient(new_gradient, proposal, lane, chain, terms, scratch)
                if new_value < math.inf:
                    lower_times(new_slope, w, new_gradient)
                    backward = 0.0
                    for i in range(dim):
                        difference = (0.5 * h * h * new_slope[i] - move[i]) / h
                        backward += difference * difference
                    log_ratio = value - new_value + 0.5 * (forward - backward)
                    accepted += math.exp(log_ratio) if log_ratio < 0.0 else 1.0
                    if math.log(uniform) < log_ratio:
                        value = new_value
                        copy_into(theta, proposal)
                        gradient, new_gradient = new_gradient, gradient
                        slope, new_slope = new_slope, slope
                kept = (step + 1) // keep_every - 1
                if (step + 1) % keep_every == 0 and kept < path.shape[2]:
                    copy_into(path[lane, chain, kept], theta)
                    energy[lane, chain, kept] = value
            acceptance[lane, chain] = accepted / steps
    return -1


@dataclass(frozen=True, kw_only=True)
class MALA:
    """Preconditioned Metropolis-adjusted Langevin.

    Args:
        steps: steps each chain takes a round, from where it stood the round before.
        step_size: starting h in whitened coordinates; None for 1.65 dim^(-1/6), which suits a Gaussian. It adapts between
            rounds towards an acceptance of 0.574.
    """

    exact: ClassVar[bool] = True
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float | None = None

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        if self.step_size is not None:
            finite_number("step_size", self.step_size, above=0.0)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> MALAChains:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        h = first_step(dim) if self.step_size is None else self.step_size
        return MALAChains(
            position=prior_draws(prior, streams, chains=chains, dim=dim),
            log_step=np.full((lanes, chains), math.log(h)),
            curvature=unknown_curvature(lanes, dim),
            expansion=no_expansion(lanes, dim),
            accepted=np.zeros((lanes, chains)),
            proposed=0,
            calls=0,
        )

    def advance(
        self, potential: LinearPotential, chains: MALAChains, streams: Streams, round_: int, attempt: int = 0
    ) -> MALAChains:
        """Take `steps` steps with every chain, then adapt the step size."""
        moved, acceptance, _ = self._move(potential, chains, streams, round_, attempt, draws=0)
        return moved._replace(log_step=adapted(chains.log_step, acceptance, chains.calls))

    def trace(
        self, potential: LinearPotential, chains: MALAChains, streams: Streams, round_: int, draws: int
    ) -> tuple[MALAChains, Trace]:
        """Draw `draws` times, `steps` steps apart. The step size stays as it is, so the chains are Markov chains."""
        moved, _, trace = self._move(potential, chains, streams, round_, 0, draws=draws)
        return moved, trace

    def _move(
        self, potential: LinearPotential, chains: MALAChains, streams: Streams, round_: int, attempt: int, *, draws: int
    ) -> tuple[MALAChains, FloatArray, Trace]:
        if potential.outside_kernels:
            return self._walk(potential, chains, streams, round_, attempt, draws=draws)
        curvature, expansion, terms = shaped(chains.curvature, chains.expansion, potential)
        position = chains.position.copy()
        lanes, n_chains, dim = position.shape
        acceptance = np.empty((lanes, n_chains))
        trace = Trace(np.empty((lanes, n_chains, draws, dim)), np.empty((lanes, n_chains, draws)))
        steps = self.steps * max(draws, 1)
        bad_lane = mala_lanes(
            position,
            chains.log_step,
            curvature.whitener,
            streams.keys("sampler"),
            round_,
            attempt * n_chains,
            steps,
            self.steps,
            terms,
            acceptance,
            trace.path,
            trace.energy,
        )
        if bad_lane >= 0:
            raise _not_finite(bad_lane)
        moved = chains._replace(curvature=curvature, expansion=expansion)
        return _after(moved, position, acceptance, steps), acceptance, trace

    def _walk(
        self, potential: LinearPotential, chains: MALAChains, streams: Streams, round_: int, attempt: int, *, draws: int
    ) -> tuple[MALAChains, FloatArray, Trace]:
        """`_move` for a potential that no kernel can evaluate."""
        chains = chains._replace(curvature=renewed(chains.curvature, potential))
        steps = self.steps * max(draws, 1)
        walk = mala_walk(
            potential,
            chains.position,
            chains.log_step,
            chains.curvature.whitener,
            streams.keys("sampler"),
            round_=round_,
            first_substream=attempt * chains.position.shape[1],
            steps=steps,
            keep_every=self.steps,
            kept=draws,
            randomness=randomness_in_numpy if isinstance(potential, TablePotential) else mala_randomness,
        )
        if not np.isfinite(walk.started_at).all():
            raise _not_finite(int(np.argmin(np.isfinite(walk.started_at).all(axis=1))))
        return _after(chains, walk.position, walk.acceptance, steps), walk.acceptance, Trace(walk.path, walk.energy)

    def report(self, chains: MALAChains) -> dict[str, FloatArray]:
        """Mean acceptance probability and step size, one a lane."""
        return {
            "acceptance": chains.accepted.mean(axis=1) / max(chains.proposed, 1),
            "step_size": np.exp(chains.log_step).mean(axis=1),
        }


def _after(chains: MALAChains, position: FloatArray, acceptance: FloatArray, steps: int) -> MALAChains:
    return chains._replace(
        position=position,
        accepted=chains.accepted + steps * acceptance,
        proposed=chains.proposed + steps,
        calls=chains.calls + 1,
    )


def _not_finite(lane: int) -> NonFiniteError:
    return NonFiniteError(
        f"the potential at the chain's position in lane {lane} is not finite. Features this large overflow; "
        f"scale them so that |<theta, z>| stays below a few hundred."
    )
