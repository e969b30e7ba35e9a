"""Metropolis-adjusted Langevin (MALA), preconditioned by the curvature at the mode: exact, and the default.

In coordinates phi = L^T theta, with L L^T the curvature, the posterior is close to a standard normal, and a step is

    phi' = phi - (h^2 / 2) grad U(phi) + h xi,   xi ~ N(0, I),

accepted with the Metropolis-Hastings probability of its Langevin proposal. The accept step removes the bias that plain
Langevin has at any step size, also where the potential has the kinks of the Feel-Good maximum or the wall of a ball.
Where dimension and arms are not too many, chains also jump between the peaks that a strong tilt makes
(`duelist.samplers.peaks`).

Reference: Roberts & Tweedie (1996).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.kernels.langevin import ChainOutput, mala_lanes
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.philox import RandomSource, mala_randomness
from duelist.kernels.potential import LinearTerms
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.posteriors.table import TablePotential
from duelist.samplers.adaptation import adapt_step, first_step
from duelist.samplers.base import Trace, prior_draws, random_source
from duelist.samplers.curvature import Curvature, refresh_curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, no_expansion, prepare_terms
from duelist.samplers.generic_mala import randomness_in_numpy, run_mala
from duelist.samplers.peaks import PeakState, no_peaks, report_peaks, visit_peaks
from duelist.typing import FloatArray

_MOST_TO_SEARCH = 2**24  # operations of a search for peaks, roughly
_BARRIER = 2.0  # nats that chains climb by themselves, in a few steps


@stored("mala-info")
class MALAInfo(NamedTuple):
    """Counters of `MALA`.

    Attributes:
        accepted: (lanes, chains) sum of acceptance probabilities so far.
        proposed: steps per chain so far.
    """

    accepted: FloatArray
    proposed: int


def _upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 was flat; up to version 2 chains did not jump."""
    if version == 1:
        fields = nest(info=MALAInfo)(version, fields)
    return {**fields, "peaks": no_peaks(*fields["position"].shape)}


@stored("mala-state", version=3, upgrade=_upgrade)
class MALAState(NamedTuple):
    """State of `MALA`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        log_step: (lanes, chains) logarithm of h, adapted between calls and fixed within one.
        curvature: what shapes the proposals.
        expansion: what stands for a long history.
        peaks: what chains jump between.
        calls: calls of `advance` so far.
        info: counters.
    """

    position: FloatArray
    log_step: FloatArray
    curvature: Curvature
    expansion: Expansion
    peaks: PeakState
    calls: int
    info: MALAInfo


@dataclass(frozen=True, kw_only=True)
class MALA:
    """Preconditioned Metropolis-adjusted Langevin.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
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

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> MALAState:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        h = first_step(dim) if self.step_size is None else self.step_size
        return MALAState(
            position=prior_draws(prior, streams, chains=chains, dim=dim),
            log_step=np.full((lanes, chains), math.log(h)),
            curvature=unknown_curvature(lanes, dim),
            expansion=no_expansion(lanes, dim),
            peaks=no_peaks(lanes, chains, dim),
            calls=0,
            info=MALAInfo(np.zeros((lanes, chains)), 0),
        )

    def advance(
        self, potential: LinearPotential, state: MALAState, streams: Streams, round_: int, attempt: int = 0
    ) -> MALAState:
        """Jump between peaks where there are several, take `steps` steps with every chain, then adapt the step size."""
        moved, output = self._move(potential, state, streams, round_, attempt, draws=0)
        return moved._replace(log_step=adapt_step(state.log_step, output.acceptance, state.calls))

    def trace(
        self, potential: LinearPotential, state: MALAState, streams: Streams, round_: int, draws: int
    ) -> tuple[MALAState, Trace]:
        """Draw `draws` times, `steps` steps apart. The step size stays as it is, so the chains are Markov chains."""
        moved, output = self._move(potential, state, streams, round_, 0, draws=draws)
        if moved.peaks.centre.shape[2] == 0:
            return moved, Trace(output.path, output.energy)
        # Jumps come between two draws, so the draws are made one by one.
        outputs = [output]
        for draw in range(1, draws):
            moved, output = self._move(potential, moved, streams, round_ + draw, 0, draws=1)
            outputs.append(output)
        ends = [(found.path[:, :, -1:], found.energy[:, :, -1:]) for found in outputs]
        return moved, Trace(*(np.concatenate(parts, axis=2) for parts in zip(*ends, strict=True)))

    def _move(
        self, potential: LinearPotential, state: MALAState, streams: Streams, round_: int, attempt: int, *, draws: int
    ) -> tuple[MALAState, ChainOutput]:
        """Take `steps` steps, or `steps` per draw, and count them."""
        steps = self.steps * max(draws, 1)
        source = random_source(streams, round_, attempt, state.position.shape[1])
        if potential.needs_python:
            state, output = self._run_in_python(potential, state, source, steps, draws)
        else:
            curvature, expansion, terms = prepare_terms(state.curvature, state.expansion, potential)
            position, peaks = state.position.copy(), state.peaks
            if _can_search(terms):

                def jumps() -> RandomSource:
                    return source._replace(keys=streams.keys("jumps"))

                renewed = curvature is not state.curvature
                if expansion.observations == curvature.observations:  # it follows the duels, and is another one every round
                    renewed = expansion.centred != state.expansion.centred
                peaks = visit_peaks(peaks, position, curvature, renewed, potential.observations, terms, jumps, _BARRIER)
            output = self._run_compiled(terms, position, state.log_step, curvature.whitener, source, steps, draws)
            state = state._replace(position=position, curvature=curvature, expansion=expansion, peaks=peaks)
        info = MALAInfo(state.info.accepted + steps * output.acceptance, state.info.proposed + steps)
        return state._replace(calls=state.calls + 1, info=info), output

    def _run_compiled(
        self,
        terms: LinearTerms,
        position: FloatArray,
        log_step: FloatArray,
        whitener: FloatArray,
        source: RandomSource,
        steps: int,
        draws: int,
    ) -> ChainOutput:
        lanes, chains, dim = position.shape
        path, energy = np.empty((lanes, chains, draws, dim)), np.empty((lanes, chains, draws))
        output = ChainOutput(np.empty((lanes, chains)), path, energy)
        bad_lane = mala_lanes(position, log_step, whitener, source, steps, self.steps, terms, output)
        if bad_lane >= 0:
            raise _not_finite(bad_lane)
        return output

    def _run_in_python(
        self, potential: LinearPotential, state: MALAState, source: RandomSource, steps: int, draws: int
    ) -> tuple[MALAState, ChainOutput]:
        curvature = refresh_curvature(state.curvature, potential)
        run = run_mala(
            potential,
            state.position,
            state.log_step,
            curvature.whitener,
            source,
            steps=steps,
            keep=(self.steps, draws),
            randomness=randomness_in_numpy if isinstance(potential, TablePotential) else mala_randomness,
        )
        if not np.isfinite(run.started_at).all():
            raise _not_finite(int(np.argmin(np.isfinite(run.started_at).all(axis=1))))
        output = ChainOutput(run.acceptance, run.path, run.energy)
        return state._replace(position=run.position, curvature=curvature), output

    def report(self, state: MALAState) -> dict[str, FloatArray]:
        """Mean acceptance probability and step size, one number per lane."""
        return {
            "acceptance": state.info.accepted.mean(axis=1) / max(state.info.proposed, 1),
            "step_size": np.exp(state.log_step).mean(axis=1),
            **report_peaks(state.peaks),
        }


def _can_search(terms: LinearTerms) -> bool:
    """Whether a search for peaks takes milliseconds: a descent takes dim^3 operations, and there is one per start."""
    tilt, dim = terms.tilt, terms.likelihood.contrasts.shape[1]
    if tilt is None or dim >= LARGE:
        return False
    starts = tilt.sets.shape[3] if len(tilt.repeats) == 1 else 2 * dim + 1
    return bool(starts * dim**3 <= _MOST_TO_SEARCH)


def _not_finite(lane: int) -> NonFiniteError:
    return NonFiniteError(
        f"the potential at the chain's position in lane {lane} is not finite. Features this large overflow; "
        f"scale them so that |<theta, z>| stays below a few hundred."
    )
