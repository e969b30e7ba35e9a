"""The peaks of a posterior with a Feel-Good tilt, and jumps between them, over all lanes.

The potential is convex but for the tilt, minus a maximum of linear functions. On the cone where one of them is the largest the
tilt is linear, so the posterior is log-concave there: a *piece*. Every peak is the mode of its own piece, and it is found by
alternating two steps that both lower the potential: Newton's method with the tilt held at its slope, and the slope at what was
found. Jumps propose from Student densities at the peaks, weighted by what Laplace's method says each holds, and are accepted by
the rule of Metropolis and Hastings, so they cross between peaks without changing the law.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, invert_lower, lower_times, lower_transposed_times
from duelist.kernels.linalg.vectors import copy_into, copy_rows_into
from duelist.kernels.logistic import add_loss_hessian, counts_of_lane
from duelist.kernels.philox import RandomSource, fill_normals, open_stream, uniform
from duelist.kernels.potential import LinearTerms, add_feel_good, scratch_for, value_and_gradient
from duelist.typing import BoolArray, FloatArray, IntArray

TAIL = 6  # degrees of freedom of the Student densities: heavier than any piece, which is log-concave
_TOLERANCE = 1e-4  # on the Newton decrement: a peak to a hundredth of its width is a good enough proposal
_NEWTON = 40
_ALTERNATIONS = 40
_HARDLY = 0.1  # squared distance, in widths, that a peak may move without a new curvature
_SAME = 0.25  # squared distance, in widths, below which two peaks are one
# Under a quadratic likelihood, peaks r widths apart have a barrier of r^2 / 8 nats at most: 16 where it is worth a jump.
SHORT = 4.0  # squared distance below which no search is made, with room for a likelihood that flattens
# Over such distances barriers are certain. And the likelihood flattens: in one of 90 runs at alpha 10 the heaviest peak of all
# promised little (see `_promise`), so half of what is asked for elsewhere is enough there.
_FAR = 100.0  # squared distance, in widths
_ALONG = 8  # points between two peaks at which the barrier is measured
_LOST = 40.0  # nats below the largest from which a term of a sum changes no digit of it
_NEGLIGIBLE = 8.0  # nats below the heaviest peak from which a peak is left out: it holds one draw in three thousand


class Peaks(NamedTuple):
    """Peaks of every lane and chain; the first n_peaks are in use."""

    centre: FloatArray  # (lanes, chains, most, dim)
    whitener: FloatArray  # (lanes, chains, most, dim, dim) inverse Cholesky factor of the curvature
    log_weight: FloatArray  # (lanes, chains, most) logarithm of what each holds, without a common constant
    energy: FloatArray  # (lanes, chains, most) the potential there
    n_peaks: IntArray  # (lanes, chains)


class SearchRule(NamedTuple):
    """Which peaks a search keeps.

    Starts that promise less than `least_promise` (see `_promise`) are left out, and peaks are left out where no barrier of more
    than `barrier` nats parts one from the main one: chains reach those by themselves. With a promise of 0 all are kept.
    """

    least_promise: float
    barrier: float


class Workspace(NamedTuple):
    """What the search for a peak writes into; nothing in it outlives a call."""

    theta: FloatArray  # (dim,)
    slope: FloatArray  # (dim,) of the tilt, as it is held while Newton's method runs
    gradient: FloatArray  # (dim,)
    direction: FloatArray  # (dim,)
    trial: FloatArray  # (dim,)
    hessian: FloatArray  # (dim, dim)
    factor: FloatArray  # (dim, dim)
    whitener: FloatArray  # (dim, dim)
    rows: FloatArray  # (2, n)
    # What is known at `theta` of the potential without the tilt: nothing is worked out twice at one point.
    base_gradient: FloatArray  # (dim,)
    base_value: FloatArray  # (1,)
    known: BoolArray  # (2,) whether the base and its gradient, and whether factor and whitener, are those at `theta`


@maker
def _workspace(dim: int, terms: LinearTerms) -> Workspace:
    return Workspace(
        np.empty(dim),
        np.empty(dim),
        np.empty(dim),
        np.empty(dim),
        np.empty(dim),
        np.empty((dim, dim)),
        np.empty((dim, dim)),
        np.empty((dim, dim)),
        scratch_for(terms),
        np.empty(dim),
        np.empty(1),
        np.zeros(2, dtype=np.bool_),
    )


@inner
def _whiten(theta: FloatArray, lane: int, base: LinearTerms, work: Workspace) -> bool:
    """Fill the whitener with the inverse Cholesky factor of the curvature at theta, the tilt having none."""
    dim = theta.shape[0]
    hessian = work.hessian
    # A ball has no curvature; that of the uniform law on it stands in, as in `duelist.samplers.curvature`.
    ridge = base.precision[lane] + (dim + 2) / (base.radius * base.radius)
    for i in range(dim):
        for j in range(dim):
            hessian[i, j] = ridge if i == j else 0.0
    quadratic = base.quadratic.hessian
    for i in range(quadratic.shape[1]):
        for j in range(quadratic.shape[1]):
            hessian[i, j] += quadratic[lane, i, j]
    n = base.likelihood.n_rows[lane]
    if n > 0:
        add_loss_hessian(hessian, theta, counts_of_lane(base.likelihood, lane), work.rows[0, :n], work.rows[1, :n])
    if not cholesky_into(work.factor, hessian):
        return False
    invert_lower(work.whitener, work.factor)
    return True


@inner
def _know_base(lane: int, chain: int, base: LinearTerms, work: Workspace) -> None:
    """Work out the potential without the tilt at `work.theta`, unless it is known there."""
    if not work.known[0]:
        work.base_value[0] = value_and_gradient(work.base_gradient, work.theta, lane, chain, base, work.rows)
        work.known[0] = True


@inner
def _hold(theta: FloatArray, work: Workspace) -> float:
    """The potential at theta with the tilt held linear, from the base that is known there; the gradient is left in `work`."""
    value: float = work.base_value[0]
    for i in range(theta.shape[0]):
        value += work.slope[i] * theta[i]
        work.gradient[i] = work.base_gradient[i] + work.slope[i]
    return value


@inner
def _descend(lane: int, chain: int, base: LinearTerms, steps: int, work: Workspace) -> bool:
    """Minimise the potential with the tilt held linear, by Newton's method from `work.theta`; the whitener is left there."""
    theta, gradient, direction, trial = work.theta, work.gradient, work.direction, work.trial
    dim = theta.shape[0]
    for _ in range(steps):
        _know_base(lane, chain, base, work)
        value = _hold(theta, work)
        if not work.known[1]:
            work.known[1] = _whiten(theta, lane, base, work)
        if not work.known[1] or not math.isfinite(value):
            return False
        lower_times(trial, work.whitener, gradient)
        lower_transposed_times(direction, work.whitener, trial)
        decrement = 0.0
        for i in range(dim):
            decrement += gradient[i] * direction[i]
        if not decrement >= _TOLERANCE:
            return bool(decrement == decrement)
        step = 1.0
        while step > 1e-6:
            for i in range(dim):
                trial[i] = theta[i] - step * direction[i]
            work.base_value[0] = value_and_gradient(work.base_gradient, trial, lane, chain, base, work.rows)
            found = _hold(trial, work)
            if found <= value - 1e-4 * step * decrement + 1e-12 * abs(value):
                break
            step *= 0.5
        if step <= 1e-6:
            work.known[0] = False  # what is known is known of the trial
            return True  # the wall of a ball: no step inside it goes down
        copy_into(theta, trial)
        work.known[1] = False
    return True


@inner
def _hold_tilt(lane: int, chain: int, terms: LinearTerms, work: Workspace) -> float:
    """Hold the tilt's slope at `work.theta`. Returns by how much the slope changed, in widths of the last whitener."""
    work.gradient.fill(0.0)
    add_feel_good(work.gradient, work.theta, lane, chain, terms.tilt, work.rows[0])
    for i in range(work.theta.shape[0]):
        work.trial[i] = work.gradient[i] - work.slope[i]
        work.slope[i] = work.gradient[i]
    lower_times(work.direction, work.whitener, work.trial)
    change = 0.0
    for i in range(work.theta.shape[0]):
        change += work.direction[i] * work.direction[i]
    return change


@inner
def _energy(lane: int, chain: int, terms: LinearTerms, base: LinearTerms, work: Workspace) -> float:
    """The potential at `work.theta`, and its gradient in `work`, from the base that is known there."""
    _know_base(lane, chain, base, work)
    copy_into(work.gradient, work.base_gradient)
    if work.base_value[0] == math.inf:
        return math.inf  # outside the ball
    value: float = work.base_value[0]
    return value + add_feel_good(work.gradient, work.theta, lane, chain, terms.tilt, work.rows[0])


@inner
def _put_peak(lane: int, chain: int, k: int, energy: float, work: Workspace, peaks: Peaks) -> None:
    """Write the peak in the workspace, of this potential, as number k."""
    copy_into(peaks.centre[lane, chain, k], work.theta)
    copy_rows_into(peaks.whitener[lane, chain, k], work.whitener)
    log_det = 0.0
    for i in range(work.theta.shape[0]):
        log_det += math.log(work.whitener[i, i])
    peaks.energy[lane, chain, k] = energy
    peaks.log_weight[lane, chain, k] = log_det - energy


@inner
def _distance(work: Workspace, centre: FloatArray) -> float:
    """Squared distance of `work.theta` from a peak in the widths there: |L^T x|^2, L being the last Cholesky factor."""
    dim = centre.shape[0]
    squared = 0.0
    for j in range(dim):
        entry = 0.0
        for i in range(j, dim):
            entry += work.factor[i, j] * (work.theta[i] - centre[i])
        squared += entry * entry
    return squared


@inner
def _add_peak(lane: int, chain: int, terms: LinearTerms, base: LinearTerms, work: Workspace, peaks: Peaks) -> None:
    """Add the peak in the workspace, unless it is known; if there is no room, the highest of all gives way."""
    n = peaks.n_peaks[lane, chain]
    full = n == peaks.centre.shape[2]
    place, highest = n, -math.inf
    for k in range(n):
        if _distance(work, peaks.centre[lane, chain, k]) < _SAME:
            return
        if full and peaks.energy[lane, chain, k] > highest:
            place, highest = k, peaks.energy[lane, chain, k]
    energy = _energy(lane, chain, terms, base, work)
    if not full:
        peaks.n_peaks[lane, chain] = n + 1
    elif energy >= highest:
        return
    _put_peak(lane, chain, place, energy, work, peaks)


@inner
def _differs(one: FloatArray, two: FloatArray) -> bool:
    differs = False
    for i in range(one.shape[0]):
        differs = differs or one[i] != two[i]
    return differs


@inner
def _climb(lane: int, chain: int, terms: LinearTerms, base: LinearTerms, known: FloatArray, work: Workspace) -> bool:
    """Find the peak that the slope held in the workspace leads to, from `work.theta`; False if the slope becomes `known`."""
    for _ in range(_ALTERNATIONS):
        if not _descend(lane, chain, base, _NEWTON, work):
            return False
        if _hold_tilt(lane, chain, terms, work) < _TOLERANCE:
            return True
        if not _differs(work.slope, known):
            return False
    return True


@inner
def _promise(slope: FloatArray, main: FloatArray, main_slope: FloatArray, main_whitener: FloatArray, work: Workspace) -> float:
    """How far a Newton step with this slope would go from the main peak, as a share of the way to where the slope holds.

    With d the difference of the slopes, the step moves <d, theta> by |W d|^2, and the slope is the steeper one from 0 on.
    """
    gap, reach = 0.0, 0.0
    for i in range(slope.shape[0]):
        work.trial[i] = main_slope[i] - slope[i]
        gap -= work.trial[i] * main[i]
    lower_times(work.direction, main_whitener, work.trial)
    for i in range(slope.shape[0]):
        reach += work.direction[i] * work.direction[i]
    if reach == 0.0:
        return 0.0
    return math.inf if gap <= 0.0 else reach / gap


@inner
def _reach(slopes: FloatArray, whitener: FloatArray, work: Workspace) -> float:
    """The largest squared distance, in widths, between the peaks of two slopes, one of them held in the workspace."""
    furthest = 0.0
    for s in range(slopes.shape[0]):
        for i in range(work.slope.shape[0]):
            work.trial[i] = slopes[s, i] - work.slope[i]
        lower_times(work.direction, whitener, work.trial)
        squared = 0.0
        for i in range(work.slope.shape[0]):
            squared += work.direction[i] * work.direction[i]
        furthest = squared if squared > furthest else furthest
    return furthest


@inner
def _barrier(lane: int, chain: int, one: int, two: int, terms: LinearTerms, work: Workspace, peaks: Peaks) -> float:
    """How far the straight way between two peaks climbs above the higher of them: no less than the lowest pass."""
    highest = -math.inf
    for step in range(1, _ALONG):
        share = step / _ALONG
        for i in range(work.theta.shape[0]):
            work.trial[i] = share * peaks.centre[lane, chain, one, i] + (1.0 - share) * peaks.centre[lane, chain, two, i]
        value = value_and_gradient(work.gradient, work.trial, lane, chain, terms, work.rows)
        highest = value if value > highest else highest
    one_energy, two_energy = peaks.energy[lane, chain, one], peaks.energy[lane, chain, two]
    start: float = one_energy if one_energy > two_energy else two_energy
    return highest - start


@inner
def _keep_heavy(lane: int, chain: int, terms: LinearTerms, work: Workspace, peaks: Peaks) -> None:
    """Drop peaks that hold nothing and will not before the data grow by a twentieth; the main one and the heaviest stay.

    The tilt is what was played minus the maxima, and both grow by about a twentieth until then; twice that is allowed for, and
    that they no longer cancel, as where the arm of the peak was played so far. Two peaks stay at least, so that a chain which
    stands in a peak that came to hold nothing is still offered jumps out of it.
    """
    tilt = terms.tilt
    if tilt is None:
        return
    n, kept, best = peaks.n_peaks[lane, chain], 1, 1
    heaviest = peaks.log_weight[lane, chain, 0]
    for k in range(1, n):
        if peaks.log_weight[lane, chain, k] > peaks.log_weight[lane, chain, best]:
            best = k
        if peaks.log_weight[lane, chain, k] > heaviest:
            heaviest = peaks.log_weight[lane, chain, k]
    for k in range(1, n):
        centre = peaks.centre[lane, chain, k]
        maxima = -add_feel_good(work.gradient, centre, lane, chain, tilt, work.rows[0])
        played = 0.0
        for i in range(centre.shape[0]):
            played += tilt.mu[lane] * tilt.adversary[lane, chain, i] * centre[i]
        maxima += played
        least = heaviest - _NEGLIGIBLE - 0.1 * (abs(maxima) + abs(played))
        if k == best or peaks.log_weight[lane, chain, k] >= least:
            copy_into(peaks.centre[lane, chain, kept], centre)
            copy_rows_into(peaks.whitener[lane, chain, kept], peaks.whitener[lane, chain, k])
            peaks.log_weight[lane, chain, kept] = peaks.log_weight[lane, chain, k]
            peaks.energy[lane, chain, kept] = peaks.energy[lane, chain, k]
            kept += 1
    peaks.n_peaks[lane, chain] = kept


@inner
def _isolated(lane: int, chain: int, terms: LinearTerms, barrier: float, work: Workspace, peaks: Peaks) -> bool:
    """Whether a barrier that chains do not climb parts a peak from the main one."""
    isolated = False
    for k in range(1, peaks.n_peaks[lane, chain]):
        isolated = isolated or _barrier(lane, chain, k, 0, terms, work, peaks) > barrier
    return isolated


@entry
def search_lanes(
    mode: FloatArray,
    whitener: FloatArray,
    slopes: FloatArray,
    terms: LinearTerms,
    base: LinearTerms,
    due: BoolArray,
    rule: SearchRule,
    peaks: Peaks,
) -> None:
    """Find the peaks of every chain in the lanes that are due, the one nearest to `mode` first.

    Args:
        mode: (lanes, dim) of prior and likelihood.
        whitener: (lanes, dim, dim) inverse Cholesky factor of their curvature there.
        slopes: (lanes, chains, n_starts, dim) the search starts once with the tilt held at each.
        terms: the posterior.
        base: the same with a tilt of no weight: of the same type, so that nothing is compiled twice.
        due: (lanes,) where to search.
        rule: which to keep.
        peaks: filled.
    """
    lanes, dim = mode.shape
    work = _workspace(dim, terms)
    main, main_slope, main_gradient, main_value = np.empty(dim), np.empty(dim), np.empty(dim), 0.0
    main_whitener, main_factor, main_known = np.empty((dim, dim)), np.empty((dim, dim)), False
    for lane in range(lanes):
        if not due[lane]:
            continue
        for chain in range(slopes.shape[1]):
            peaks.n_peaks[lane, chain] = 0
            copy_into(work.theta, mode[lane])
            work.known.fill(False)
            work.whitener.fill(0.0)
            main_slope.fill(math.inf)
            _hold_tilt(lane, chain, terms, work)
            reach = _reach(slopes[lane, chain], whitener[lane], work)
            if rule.least_promise > 0.0 and reach < SHORT:
                peaks.n_peaks[lane, chain] = 1
                continue
            enough = rule.least_promise if reach < _FAR else 0.5 * rule.least_promise
            if not _climb(lane, chain, terms, base, main_slope, work):
                continue
            _add_peak(lane, chain, terms, base, work, peaks)
            copy_into(main, work.theta)
            copy_into(main_slope, work.slope)
            copy_into(main_gradient, work.base_gradient)
            copy_rows_into(main_whitener, work.whitener)
            copy_rows_into(main_factor, work.factor)
            main_value, main_known = work.base_value[0], work.known[1]
            for s in range(slopes.shape[2]):
                promise = _promise(slopes[lane, chain, s], main, main_slope, main_whitener, work)
                if promise == 0.0 or promise < enough:
                    continue
                copy_into(work.slope, slopes[lane, chain, s])
                copy_into(work.theta, main)
                # Every start leaves from the main peak, where all but the slope is known.
                copy_into(work.base_gradient, main_gradient)
                work.base_value[0], work.known[0] = main_value, True
                work.known[1] = main_known
                if main_known:
                    copy_rows_into(work.whitener, main_whitener)
                    copy_rows_into(work.factor, main_factor)
                if _climb(lane, chain, terms, base, main_slope, work):
                    _add_peak(lane, chain, terms, base, work, peaks)
            if rule.least_promise > 0.0:
                _keep_heavy(lane, chain, terms, work, peaks)
                if reach < _FAR and not _isolated(lane, chain, terms, rule.barrier, work, peaks):
                    peaks.n_peaks[lane, chain] = 1


@entry
def follow_lanes(terms: LinearTerms, base: LinearTerms, due: BoolArray, peaks: Peaks) -> None:
    """Move known peaks of the lanes that are due to where they are now.

    A peak that hardly moved takes one Newton step with the curvature that it has, and the height that the step promises, at the
    price of one gradient. One that moved further gets a new curvature.
    """
    lanes, chains, _, dim = peaks.centre.shape
    work = _workspace(dim, terms)
    for lane in range(lanes):
        if not due[lane]:
            continue
        for chain in range(chains):
            for k in range(peaks.n_peaks[lane, chain]):
                centre, whitener = peaks.centre[lane, chain, k], peaks.whitener[lane, chain, k]
                copy_into(work.theta, centre)
                work.known.fill(False)
                energy = _energy(lane, chain, terms, base, work)
                lower_times(work.trial, whitener, work.gradient)
                lower_transposed_times(work.direction, whitener, work.trial)
                moved = 0.0
                for i in range(dim):
                    moved += work.trial[i] * work.trial[i]
                if moved < _HARDLY:
                    for i in range(dim):
                        centre[i] -= work.direction[i]
                    energy -= 0.5 * moved
                    peaks.log_weight[lane, chain, k] += peaks.energy[lane, chain, k] - energy
                    peaks.energy[lane, chain, k] = energy
                else:
                    copy_rows_into(work.whitener, whitener)
                    _hold_tilt(lane, chain, terms, work)
                    if _descend(lane, chain, base, 2, work):
                        _put_peak(lane, chain, k, _energy(lane, chain, terms, base, work), work, peaks)


@entry
def slopes_at_lanes(points: FloatArray, terms: LinearTerms, slopes: FloatArray) -> None:
    """Fill slopes (lanes, chains, n, dim) with the tilt's slope at points (lanes, n, dim)."""
    slopes.fill(0.0)
    utilities = scratch_for(terms)[0]
    for lane in range(slopes.shape[0]):
        for chain in range(slopes.shape[1]):
            for s in range(slopes.shape[2]):
                add_feel_good(slopes[lane, chain, s], points[lane, s], lane, chain, terms.tilt, utilities)


@inner
def _log_proposal(theta: FloatArray, lane: int, chain: int, peaks: Peaks, work: FloatArray) -> float:
    """Logarithm of the density that jumps propose from; work is (dim,) scratch."""
    dim = theta.shape[0]
    highest, total = -math.inf, 0.0
    for k in range(peaks.n_peaks[lane, chain]):
        # What a peak holds over its volume is its height. The density needs |L^T (theta - centre)|^2, and the whitener W is the
        # inverse of L: x = W^T y is solved for y from the last entry on.
        whitener, height, squared = peaks.whitener[lane, chain, k], -peaks.energy[lane, chain, k], 0.0
        enough = TAIL * math.expm1((height - highest + _LOST) / (0.5 * (dim + TAIL)))
        for i in range(dim - 1, -1, -1):
            rest = theta[i] - peaks.centre[lane, chain, k, i]
            for j in range(i + 1, dim):
                rest -= whitener[j, i] * work[j]
            work[i] = rest / whitener[i, i]
            squared += work[i] * work[i]
            if squared > enough:
                break
        if squared > enough:
            continue
        term = height - 0.5 * (dim + TAIL) * math.log1p(squared / TAIL)
        if term > highest:
            total = total * math.exp(highest - term) + 1.0
            highest = term
        else:
            total += math.exp(term - highest)
    return highest + math.log(total)


@inner
def _pick(weights: FloatArray, n: int, u: float) -> int:
    """An index in proportion to exp(weights), from one uniform."""
    highest, total = -math.inf, 0.0
    for k in range(n):
        highest = weights[k] if weights[k] > highest else highest
    for k in range(n):
        total += math.exp(weights[k] - highest)
    left = u * total
    for k in range(n - 1):
        left -= math.exp(weights[k] - highest)
        if left <= 0.0:
            return k
    return n - 1


@entry
def jump_lanes(
    position: FloatArray, terms: LinearTerms, source: RandomSource, tries: IntArray, peaks: Peaks, accepted: FloatArray
) -> None:
    """Propose tries (lanes,) jumps to every chain with more than one peak; accepted (lanes, chains) counts those taken.

    Where there is one peak, or no try, `accepted` is NaN.
    """
    lanes, chains, dim = position.shape
    scratch, work = scratch_for(terms), np.empty(dim)
    gradient, proposal, noise, move = np.empty(dim), np.empty(dim), np.empty(dim + TAIL), np.empty(dim)
    for lane in range(lanes):
        for chain in range(chains):
            n = peaks.n_peaks[lane, chain]
            if n < 2 or tries[lane] == 0:
                accepted[lane, chain] = math.nan
                continue
            accepted[lane, chain] = 0.0
            theta = position[lane, chain]
            stream = open_stream(source.keys[lane], source.round_, source.first_substream + chain)
            current = -value_and_gradient(gradient, theta, lane, chain, terms, scratch)
            current -= _log_proposal(theta, lane, chain, peaks, work)
            for _ in range(tries[lane]):
                k = _pick(peaks.log_weight[lane, chain], n, uniform(stream))
                stream.place[0], u = fill_normals(noise, stream.key, stream.place[0], stream.round_, stream.substream)
                tail = 0.0
                for i in range(TAIL):
                    tail += noise[dim + i] * noise[dim + i]
                stretch = math.sqrt(TAIL / tail)
                lower_transposed_times(move, peaks.whitener[lane, chain, k], noise[:dim])
                for i in range(dim):
                    proposal[i] = peaks.centre[lane, chain, k, i] + stretch * move[i]
                found = -value_and_gradient(gradient, proposal, lane, chain, terms, scratch)
                if not found > -math.inf:
                    continue
                found -= _log_proposal(proposal, lane, chain, peaks, work)
                if math.log(u) < found - current:
                    copy_into(theta, proposal)
                    current = found
                    accepted[lane, chain] += 1.0
