"""Jumps between the peaks of a posterior with a Feel-Good tilt.

A strong tilt gives the posterior several peaks, far apart: a round in which an arm meets itself tilts it and teaches nothing.
Chains that start where they stood the round before never cross between them. So the peaks are searched for as the data
grow, and where there is more than one, each round begins with proposals that jump from peak to peak; see
`duelist.kernels.peaks`. Where there is one, nothing is done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.kernels.peaks import SHORT, Peaks, SearchRule, follow_lanes, jump_lanes, search_lanes, slopes_at_lanes
from duelist.kernels.philox import RandomSource
from duelist.kernels.potential import LinearTerms, Tilt, evaluate
from duelist.samplers.curvature import Curvature
from duelist.typing import BoolArray, FloatArray, IntArray

MOST_PEAKS = 64
TRIES = 8  # jumps proposed per visit
# Where the heaviest peak holds more than this share, and the tilt of this many duels moves less than this many nats, there are
# as many duels between two visits. But for the tilt what the others hold is a martingale: it seldom grows tenfold in between.
_SETTLED, _PATIENCE, _HARDLY = 0.99, 8, 0.1
_CHECKED = 8  # starts of the check where there are many sets
# If the likelihood were quadratic, a peak would be as high as the main one at a promise of 2, and there would be none below 1.
# In histories that FGTS plays, every peak that held a thousandth behind a barrier of two nats promised more than 1.6.
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
        searched: (lanes,) number of duels at the last search; -1 for never.
        next_visit: (lanes,) number of duels from which the peaks are brought up to date again.
        accepted: (lanes, chains) jumps taken so far.
        proposed: (lanes, chains) jumps proposed so far.
    """

    centre: FloatArray
    whitener: FloatArray
    log_weight: FloatArray
    energy: FloatArray
    n_peaks: IntArray
    searched: IntArray
    next_visit: IntArray
    accepted: FloatArray
    proposed: FloatArray


def no_peaks(lanes: int, chains: int, dim: int) -> PeakState:
    """Nothing searched for yet."""
    counters = np.zeros((lanes, chains))
    never = np.full(lanes, -1, dtype=np.int64)
    return PeakState(*_room(lanes, chains, 0, dim), searched=never, next_visit=never, accepted=counters, proposed=counters)


def _room(lanes: int, chains: int, most: int, dim: int) -> Peaks:
    return Peaks(
        np.zeros((lanes, chains, most, dim)),
        np.zeros((lanes, chains, most, dim, dim)),
        np.zeros((lanes, chains, most)),
        np.zeros((lanes, chains, most)),
        np.zeros((lanes, chains), dtype=np.int64),
    )


def _search(terms: LinearTerms, curvature: Curvature, due: BoolArray, slopes: FloatArray, rule: SearchRule) -> Peaks:
    lanes, chains, n_starts, dim = slopes.shape
    found = _room(lanes, chains, min(n_starts + 1, MOST_PEAKS), dim)
    search_lanes(curvature.mode, curvature.whitener, slopes, terms, _untilted(terms), due, rule, found)
    return found


def excess_energy(terms: LinearTerms, curvature: Curvature, position: FloatArray) -> FloatArray:
    """(lanes, chains) potential at the positions, above that of the heaviest peak that descents from other starts find.

    A draw is about dim / 2 above its own peak; a chain that stands in the wrong one is above by as much as that is higher. The
    descents start from every arm of a single set, else from `_CHECKED` directions, whatever the sampler knows of peaks.
    0 without a tilt: there is one peak then.
    """
    values = np.zeros(position.shape[:2])
    if terms.tilt is None:
        return values
    evaluate(position, terms, values, np.empty_like(position))
    slopes = _start_slopes(terms, curvature.mode)
    if len(terms.tilt.repeats) > 1:
        slopes = np.ascontiguousarray(slopes[:, :, :: -(-slopes.shape[2] // _CHECKED)])
    found = _search(terms, curvature, np.ones(len(values), dtype=np.bool_), slopes, SearchRule(0.0, 0.0))
    unused = np.arange(found.energy.shape[2]) >= found.n_peaks[..., None]
    heaviest = np.where(unused, -np.inf, found.log_weight).argmax(axis=2)
    return values - np.take_along_axis(found.energy, heaviest[..., None], axis=2)[..., 0]


def excess_limit(dim: int) -> float:
    """What one draw in ten thousand exceeds around a Gaussian peak: half a chi-square variable."""
    return 0.5 * float(chdtri(dim, 1e-4))


def _start_slopes(terms: LinearTerms, mode: FloatArray) -> FloatArray:
    """(lanes, chains, n, dim) slopes to start from: one per arm of a single set, else those in 2 dim + 1 directions."""
    tilt = terms.tilt
    if tilt is None:
        raise InvalidInputError("a posterior without a Feel-Good tilt has one peak; there is nothing to search for.")
    lanes, chains, dim = tilt.adversary.shape
    if _is_one_list(tilt):
        arms = tilt.sets[:, 0].transpose(0, 2, 1)
        held = tilt.mu[:, None, None, None] * (tilt.adversary[:, :, None] - tilt.repeats[0] * arms[:, None])
        return np.ascontiguousarray(held)  # another layout would be another compilation
    axes = np.broadcast_to(np.vstack([np.eye(dim), -np.eye(dim)]), (lanes, 2 * dim, dim))
    points = np.concatenate([axes, -mode[:, None]], axis=1)
    slopes = np.empty((lanes, chains, points.shape[1], dim))
    slopes_at_lanes(points, terms, slopes)
    return slopes


def visit_peaks(
    state: PeakState,
    position: FloatArray,
    curvature: Curvature,
    renewed: bool,
    observations: int,
    terms: LinearTerms,
    source: Callable[[], RandomSource],
    barrier: float,
) -> PeakState:
    """Bring the peaks up to date and propose jumps between them, moving `position` in place.

    Each lane looks after itself, so that it draws the same alone and beside others.

    Args:
        state: the peaks of the round before.
        position: (lanes, chains, dim) where the chains are.
        curvature: of this potential.
        renewed: whether it was computed anew since the round before.
        observations: number of duels behind it.
        terms: the posterior.
        source: gives the random numbers for the jumps.
        barrier: nats that the sampler's chains climb without help, in a few rounds.
    """
    if terms.tilt is None or not (renewed or state.centre.shape[2] or state.searched[0] < 0):
        return state
    # A chain that asks again before there is another answer jumps all the same, unless it has time.
    if not renewed and observations < state.next_visit.min() - 1:
        return state
    if renewed or state.searched.min() < 0:
        state = _search_again(state, curvature, observations, terms, barrier)
    visited = observations >= state.next_visit - 1
    if state.centre.shape[2] == 0 or not visited.any():
        return state
    # Under a strong tilt one duel can move a hundred nats from one peak to another.
    moved = observations >= state.next_visit
    if moved.any():
        centre, whitener, log_weight, energy = (array.copy() for array in state[:4])
        follow_lanes(terms, _untilted(terms), moved, Peaks(centre, whitener, log_weight, energy, state.n_peaks))
        state = PeakState(centre, whitener, log_weight, energy, *state[4:])
        # A lane without a search behind it waits for one, and not for a visit.
        later = np.where(moved & (state.searched >= 0), observations + _patience(state, terms), state.next_visit)
        state = state._replace(next_visit=later)
    accepted = np.empty(position.shape[:2])
    jump_lanes(position, terms, source(), np.where(visited, TRIES, 0), Peaks(*state[:5]), accepted)
    jumped = np.isfinite(accepted)
    return state._replace(accepted=state.accepted + np.where(jumped, accepted, 0.0), proposed=state.proposed + TRIES * jumped)


def _search_again(state: PeakState, curvature: Curvature, observations: int, terms: LinearTerms, barrier: float) -> PeakState:
    """Search for peaks in the lanes whose data have grown enough since the last search."""
    tilt = terms.tilt
    assert tilt is not None
    seen, searched = curvature.observations, state.searched
    # A new search comes with a new curvature. While there is one peak it finds no second as a rule, and waits for a tenth more.
    wait = np.where(state.n_peaks.max(axis=1) > 1, 0, searched // 10)
    due = (tilt.mu > 0.0) & ((searched < 0) | (searched > seen) | (searched + wait < seen))
    if due.any() and _is_one_list(tilt):
        # The first duels with a fixed set cannot tilt so far that a search would look any further.
        longest = np.linalg.norm(tilt.sets[:, 0], axis=1).max(axis=1) * np.linalg.norm(curvature.whitener, axis=(1, 2))
        due &= (2.0 * tilt.mu * observations * longest) ** 2 >= SHORT
    if not due.any():
        return state
    found = _search(terms, curvature, due, _start_slopes(terms, curvature.mode), SearchRule(_PROMISE, barrier))
    return _merge(found, state, due, seen)


def _patience(state: PeakState, terms: LinearTerms) -> IntArray:
    """(lanes,) duels until the next visit."""
    tilt = terms.tilt
    assert tilt is not None
    if not _is_one_list(tilt):
        return np.ones(len(tilt.mu), dtype=np.int64)
    used = np.arange(state.centre.shape[2]) < state.n_peaks[..., None]
    weight = np.where(used, state.log_weight, -np.inf)
    with np.errstate(invalid="ignore"):  # a lane without peaks has no heaviest, and nothing to visit
        total = np.exp(weight - weight.max(axis=2, keepdims=True)).sum(axis=2).max(axis=1)
    apart = np.where(used[..., None], state.centre - state.centre[:, :, :1], 0.0)
    furthest = np.linalg.norm(apart, axis=3).max(axis=(1, 2))
    moved = 2.0 * _PATIENCE * tilt.mu * np.linalg.norm(tilt.sets[:, 0], axis=1).max(axis=1) * furthest
    return np.where((total < 1.0 / _SETTLED) & (moved < _HARDLY), _PATIENCE, 1)


def _is_one_list(tilt: Tilt) -> bool:
    """Whether all past rounds had one and the same list of arms."""
    return len(tilt.repeats) == 1 and not (tilt.ball_reach > 0.0 or tilt.spread.shape[1] or len(tilt.shape_repeats))


def _merge(found: Peaks, state: PeakState, due: BoolArray, seen: int) -> PeakState:
    """What was found in the lanes that were due, after that many duels, and the others as they were."""
    most = state.centre.shape[2]
    n_peaks = np.where(due[:, None], found.n_peaks, state.n_peaks)
    counts = {"searched": np.where(due, seen, state.searched), "next_visit": np.where(due, seen + 1, state.next_visit)}
    if most == 0 and not (n_peaks > 1).any():
        return state._replace(n_peaks=n_peaks, **counts)
    room = int(n_peaks.max())
    kept = []
    for new, old in zip(found[:4], state[:4], strict=True):
        new[~due, :, : min(room, most)] = old[~due, :, :room]
        kept.append(np.ascontiguousarray(new[:, :, :room]))  # another layout would be another compilation
    centre, whitener, log_weight, energy = kept
    return PeakState(centre, whitener, log_weight, energy, n_peaks, accepted=state.accepted, proposed=state.proposed, **counts)


def _untilted(terms: LinearTerms) -> LinearTerms:
    """The terms with a tilt of no weight: of the same type, so that kernels need not be compiled for both."""
    assert terms.tilt is not None
    return terms._replace(tilt=terms.tilt._replace(mu=np.zeros_like(terms.tilt.mu)))


def report_peaks(state: PeakState) -> dict[str, FloatArray]:
    """Peaks of the posterior, and the share of jumps between them that were taken; 1 where there was nothing to jump to."""
    proposed = state.proposed.sum(axis=1)
    share = np.where(proposed > 0.0, state.accepted.sum(axis=1) / np.maximum(proposed, 1.0), 1.0)
    return {"peaks": np.maximum(state.n_peaks, 1).mean(axis=1), "jumps_accepted": share}
