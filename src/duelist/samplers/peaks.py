"""Jumps between the peaks of a posterior with a Feel-Good tilt.

A strong tilt gives the posterior several peaks, far apart: a round in which an arm meets itself tilts it and teaches nothing.
Chains that start where they stood the round before never cross between them. So the peaks are searched for as the data
grow, and where there is more than one, each round begins with proposals that jump from peak to peak; see
`duelist.kernels.peaks`. Where there is one, nothing is done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.kernels.peaks import Peaks, follow_lanes, jump_lanes, search_lanes, slopes_at_lanes
from duelist.kernels.philox import RandomSource
from duelist.kernels.potential import LinearTerms
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.curvature import Curvature, flat_precision
from duelist.typing import FloatArray, IntArray

MOST_PEAKS = 64
TRIES = 8  # jumps proposed per round
# If the likelihood were quadratic, a peak would be as high as the main one at a promise of 2, and none below 1. In histories
# that FGTS plays, every peak that held a thousandth behind a barrier of two nats promised more than 1.6.
_PROMISE = 1.3


@stored("peaks")
class PeakState(NamedTuple):
    """The peaks that are known.

    Attributes:
        centre: (lanes, chains, most, dim) where they are; most is 0 while no lane has more than one.
        whitener: (lanes, chains, most, dim, dim) inverse Cholesky factor of the curvature there.
        log_weight: (lanes, chains, most) what each holds by Laplace's method, up to a constant.
        energy: (lanes, chains, most) the potential there.
        n_peaks: (lanes, chains) how many are in use.
        searched: number of duels at the last search; -1 for never.
        accepted: (lanes, chains) jumps taken so far.
        proposed: (lanes, chains) jumps proposed so far.
    """

    centre: FloatArray
    whitener: FloatArray
    log_weight: FloatArray
    energy: FloatArray
    n_peaks: IntArray
    searched: int
    accepted: FloatArray
    proposed: FloatArray

    @property
    def several(self) -> bool:
        """Whether any chain has more than one."""
        return bool(self.centre.shape[2] > 0)


def no_peaks(lanes: int, chains: int, dim: int) -> PeakState:
    """Nothing searched for yet."""
    counters = np.zeros((lanes, chains))
    return PeakState(*_room(lanes, chains, 0, dim), searched=-1, accepted=counters, proposed=counters)


def _room(lanes: int, chains: int, most: int, dim: int) -> Peaks:
    return Peaks(
        np.zeros((lanes, chains, most, dim)),
        np.zeros((lanes, chains, most, dim, dim)),
        np.zeros((lanes, chains, most)),
        np.zeros((lanes, chains, most)),
        np.zeros((lanes, chains), dtype=np.int64),
    )


def search_peaks(potential: LinearPotential, terms: LinearTerms, mode: FloatArray, *, least_promise: float = 0.0) -> Peaks:
    """The peaks of the posterior, at most `MOST_PEAKS` per lane and chain, the nearest to the mode (lanes, dim) first."""
    slopes = _start_slopes(terms, mode)
    found = _room(potential.lanes, potential.chains, min(slopes.shape[2] + 1, MOST_PEAKS), potential.dim)
    search_lanes(mode, slopes, terms, terms._replace(tilt=None), flat_precision(potential), least_promise, found)
    return found


def _start_slopes(terms: LinearTerms, mode: FloatArray) -> FloatArray:
    """(lanes, chains, n, dim) slopes to start from: one per arm of a single set, else those in 2 dim + 1 directions."""
    tilt = terms.tilt
    if tilt is None:
        raise InvalidInputError("a posterior without a Feel-Good tilt has one peak; there is nothing to search for.")
    lanes, chains, dim = tilt.adversary.shape
    others = tilt.ball_reach > 0.0 or tilt.spread.shape[1] or len(tilt.shape_repeats)
    if len(tilt.repeats) == 1 and not others:
        arms = tilt.sets[:, 0].transpose(0, 2, 1)
        held: FloatArray = tilt.mu[:, None, None, None] * (tilt.adversary[:, :, None] - tilt.repeats[0] * arms[:, None])
        return held
    axes = np.broadcast_to(np.vstack([np.eye(dim), -np.eye(dim)]), (lanes, 2 * dim, dim))
    points = np.concatenate([axes, -mode[:, None]], axis=1)
    slopes = np.empty((lanes, chains, points.shape[1], dim))
    slopes_at_lanes(points, terms, slopes)
    return slopes


def refresh_peaks(state: PeakState, curvature: Curvature, potential: LinearPotential, terms: LinearTerms) -> PeakState:
    """The peaks for this potential: searched for when the curvature was taken anew, else followed."""
    if terms.tilt is None or not terms.tilt.mu.any():
        return state
    # While there is one peak a search finds nothing new as a rule, so it waits for a tenth more data.
    due = state.searched + (0 if state.several else state.searched // 10)
    if state.searched < 0 or state.searched > curvature.observations or due < curvature.observations:
        found = search_peaks(potential, terms, curvature.mode, least_promise=_PROMISE)
        if not (found.n_peaks > 1).any():
            found = _room(potential.lanes, potential.chains, 0, potential.dim)
        return PeakState(*found, searched=curvature.observations, accepted=state.accepted, proposed=state.proposed)
    if not state.several:
        return state
    followed = Peaks(
        state.centre.copy(), state.whitener.copy(), state.log_weight.copy(), state.energy.copy(), state.n_peaks.copy()
    )
    follow_lanes(terms, terms._replace(tilt=None), flat_precision(potential), 2, followed)
    return PeakState(*followed, *state[5:])


def jump(
    state: PeakState, position: FloatArray, terms: LinearTerms, streams: Streams, round_: int, attempt: int = 0
) -> PeakState:
    """Jump between peaks, in place; the state counts how often."""
    if not state.several:
        return state
    accepted = np.empty(position.shape[:2])
    source = RandomSource(streams.keys("jumps"), round_, attempt * position.shape[1])
    jump_lanes(position, terms, source, TRIES, Peaks(*state[:5]), accepted)
    jumped = np.isfinite(accepted)
    return state._replace(accepted=state.accepted + np.where(jumped, accepted, 0.0), proposed=state.proposed + TRIES * jumped)


def report_peaks(state: PeakState) -> dict[str, FloatArray]:
    """Peaks of the posterior and the share of jumps between them that were taken, NaN where there was nothing to jump to."""
    with np.errstate(invalid="ignore"):
        share = state.accepted.sum(axis=1) / state.proposed.sum(axis=1)
    return {"peaks": np.maximum(state.n_peaks, 1).mean(axis=1), "jumps_accepted": share}
