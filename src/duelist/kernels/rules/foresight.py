"""Compiled value of information: what playing a pair is worth over the rounds that are left.

With posterior mean utilities u (n,), curvature H and a pair z = x_i - x_j, playing it m more times would move all means along

    b = X H^-1 z * sqrt(m w / (1 + m w v)),   w = s'(u_i - u_j),   v = z^T H^-1 z,

so that the best arm afterwards is worth E max_k (u_k + b_k Z), Z standard normal: an integral over the upper envelope of n
lines, exact in closed form. Over a mixture of posteriors (`duelist.policies.parts.prior_scale`) gains are averaged.

Where two arms must differ, a round is worth the mean of the *two* best arms. With l the leader now, M and S the first and the
second best of the others, the two best sum up to M + max(u_l, S) >= M + u_l, and the mean of u_l does not move: the gain is at
least half that of the envelope without the leader, and equal to it unless two arms overtake the leader at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.actions import TIE, pick_arm, smallest_into, sort_into, utilities_into
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, extend_whitener, invert_lower, lower_times, lower_transposed_times
from duelist.kernels.linalg.vectors import dot
from duelist.kernels.logistic import LaneCounts, fit_lane, lose_chance, loss_and_slopes
from duelist.kernels.rules.pairs import MAX_ITERATIONS, TOLERANCE, Candidates, DuelCounts, follow_fit, measure_arms
from duelist.typing import FloatArray, IntArray

_PHI_0 = 1.0 / math.sqrt(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


@inner
def expected_excess(x: float) -> float:
    """E max(0, Z - x) of a standard normal Z, phi(x) - x Q(x)."""
    return _PHI_0 * math.exp(-0.5 * x * x) - 0.5 * x * math.erfc(x * _ROOT_HALF)


@inner
def sort_without(order: IntArray, values: FloatArray, n: int, left_out: int, spare: IntArray) -> int:
    """Fill order so that values[order] ascends over all of the n but `left_out`, -1 for none; returns how many there are."""
    sort_into(order, values, n, spare)
    if left_out < 0:
        return n
    kept = 0
    for place in range(n):
        if order[place] != left_out:
            order[kept] = order[place]
            kept += 1
    return kept


class Envelope(NamedTuple):
    """Working memory for the upper envelope of n lines."""

    slopes: FloatArray  # (n,)
    order: IntArray  # (n,) sorts the slopes
    spare: IntArray  # (n,) for sorting
    stack: IntArray  # (n,) lines of the envelope, from left to right
    cuts: FloatArray  # (n,) where each begins


@maker
def new_envelope(n: int) -> Envelope:
    """Working memory for n lines."""
    return Envelope(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n))


@inner
def envelope_gain(heights: FloatArray, lines: Envelope, n: int, scale: float) -> float:
    """E max_k (heights_k + scale slopes_k Z) - max_k heights_k, for the slopes of `lines`, which `order` sorts.

    The upper envelope is built from left to right; each corner at z contributes its change of slope times E max(0, Z - |z|).
    """
    slopes, order, stack, cuts = lines.slopes, lines.order, lines.stack, lines.cuts
    top = 0
    for position in range(n):
        k = order[position]
        cut = -math.inf
        while top > 0:
            last = stack[top - 1]
            rise = scale * (slopes[k] - slopes[last])
            if rise > 0.0:
                cut = (heights[last] - heights[k]) / rise
                if cut > cuts[top - 1]:
                    break
            elif heights[k] <= heights[last]:
                # A parallel line below adds nothing: mark it as never on top.
                cut = math.inf
                break
            top -= 1
            cut = -math.inf
        if cut < math.inf:
            stack[top] = k
            cuts[top] = cut
            top += 1
    gain = 0.0
    for corner in range(1, top):
        rise = scale * (slopes[stack[corner]] - slopes[stack[corner - 1]])
        gain += rise * expected_excess(abs(cuts[corner]))
    return gain


class Mixture(NamedTuple):
    """A mixture of posteriors over scales of the prior, per lane; of one lane without the leading axis.

    Attributes:
        theta: (lanes, ridges, dim) the fit under each ridge.
        whitener: (lanes, ridges, dim, dim) inverse Cholesky factor of the curvature at each fit.
        weights: (lanes, ridges) weight of each; 0 for those that do not count.
    """

    theta: FloatArray
    whitener: FloatArray
    weights: FloatArray


class View(NamedTuple):
    """Working memory: what a lane's mixture says of some arms."""

    utilities: FloatArray  # (ridges, n_arms)
    whitened: FloatArray  # (ridges, dim, n_arms)
    mean: FloatArray  # (n_arms,) utilities averaged over the mixture


@maker
def new_view(n_ridges: int, dim: int, n_arms: int) -> View:
    """Working memory for so many arms."""
    return View(np.empty((n_ridges, n_arms)), np.empty((n_ridges, dim, n_arms)), np.empty(n_arms))


@inner
def view_arms(view: View, columns: FloatArray, mixture: Mixture) -> None:
    """Fill the view of the arms, columns (dim, n_arms), under the ridges that count."""
    mean, weights = view.mean, mixture.weights
    mean[:] = 0.0
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            measure_arms(view.utilities[g], view.whitened[g], columns, mixture.theta[g], mixture.whitener[g])
            for k in range(mean.shape[0]):
                mean[k] += weights[g] * view.utilities[g, k]


@inner
def pick_other(mean: FloatArray, priority: FloatArray, leader: int) -> int:
    """The arm of the highest mean beside the leader; among ties the largest priority."""
    best = -math.inf
    for k in range(mean.shape[0]):
        if k != leader:
            best = max(best, mean[k])
    winner = -1
    for k in range(mean.shape[0]):
        if k != leader and mean[k] >= best - TIE * (1.0 + abs(best)) and (winner < 0 or priority[k] > priority[winner]):
            winner = k
    return winner


class Shortlist(NamedTuple):
    """Working memory: which arms are considered."""

    chosen: IntArray  # (n_arms,) the arms considered, the leader first
    scores: FloatArray  # (n_arms,) standardised distance to the arm that is to be reached
    order: IntArray  # (n_arms,) the arms of the smallest scores, in order


@inner
def shortlist_arms(
    shortlist: Shortlist, view: View, weights: FloatArray, priority: FloatArray, leader: int, last: int, reach: float, most: int
) -> int:
    """Fill `chosen` with the arms that may be worth playing, the leader first, most promising first; returns how many.

    `last` is the least of the arms that are played where nothing is to be learnt: the leader itself, or the runner-up, which
    comes second. An arm may be worth playing if its mean comes within `reach` posterior deviations of that arm's, the deviation
    being that of the mixture; at most `most` are kept.
    """
    chosen, scores, order = shortlist.chosen, shortlist.scores, shortlist.order
    mean, utilities, whitened = view.mean, view.utilities, view.whitened
    n_ridges, dim, n_arms = whitened.shape
    for k in range(n_arms):
        gap, variance = mean[last] - mean[k], 0.0
        for g in range(n_ridges):
            if weights[g] > 0.0:
                squared = (utilities[g, last] - utilities[g, k] - gap) ** 2
                for i in range(dim):
                    difference = whitened[g, i, k] - whitened[g, i, last]
                    squared += difference * difference
                variance += weights[g] * squared
        # Standardised distance: 0 for the arm itself, small for promising arms.
        # Equal ones go by priority, not by row.
        scores[k] = gap / math.sqrt(variance) + TIE * priority[k] if variance > 0.0 else math.inf
    scores[last] = -1.0
    scores[leader] = -2.0
    found = smallest_into(order, scores, most)
    n = 0
    for position in range(found):
        if scores[order[position]] <= reach:
            chosen[n] = order[position]
            n += 1
    return n


@inner
def covariances_into(covariance: FloatArray, whitened: FloatArray, weights: FloatArray, chosen: IntArray, n: int) -> None:
    """Fill covariance (ridges, n, n) of the chosen arms' utilities under every ridge that counts."""
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            for k in range(n):
                for j in range(k + 1):
                    inner = 0.0
                    for i in range(whitened.shape[1]):
                        inner += whitened[g, i, chosen[k]] * whitened[g, i, chosen[j]]
                    covariance[g, k, j], covariance[g, j, k] = inner, inner


class Belief(NamedTuple):
    """The posterior of the n arms considered, per ridge: mean utilities, their covariances, and the ridge's weight."""

    heights: FloatArray  # (ridges, n)
    covariance: FloatArray  # (ridges, n, n)
    weights: FloatArray  # (ridges,)


@inner
def gains_into(
    gains: FloatArray, batches: FloatArray, belief: Belief, i: int, j: int, n: int, left_out: int, lines: Envelope
) -> None:
    """Fill gains (batches,) with what each number of plays of the pair (i, j) adds to the best mean, averaged over ridges.

    The best of the n arms without `left_out`, -1 for none.
    """
    heights, covariance, weights, slopes = belief.heights, belief.covariance, belief.weights, lines.slopes
    gains[:] = 0.0
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            for k in range(n):
                slopes[k] = covariance[g, k, i] - covariance[g, k, j]
            kept = sort_without(lines.order, slopes, n, left_out, lines.spare)
            spread = slopes[i] - slopes[j]
            e = math.exp(-abs(heights[g, i] - heights[g, j]))
            information = e / ((1.0 + e) * (1.0 + e))
            for b in range(batches.shape[0]):
                plays = batches[b] * information
                scale = math.sqrt(plays / (1.0 + plays * spread))
                gains[b] += weights[g] * envelope_gain(heights[g], lines, kept, scale)


@inner
def gain_elsewhere(
    before: FloatArray,
    mixture: Mixture,
    view: View,
    one: int,
    other: int,
    plays: float,
    elsewhere: View,
    lines: Envelope,
    different: bool,
) -> float:
    """What so many plays of a pair add to the best mean of other arms, `before` (dim, m), averaged over ridges.

    Where arms must be `different`, to the best mean beside that of the leader. `view` is that of the pair's own arms;
    `elsewhere` and `lines` are working memory for m arms.
    """
    view_arms(elsewhere, before, mixture)
    weights = mixture.weights
    dim, m = before.shape
    total = 0.0
    left_out = int(np.argmax(elsewhere.mean)) if different else -1
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            spread = 0.0
            lines.slopes[:] = 0.0
            for i in range(dim):
                difference = view.whitened[g, i, one] - view.whitened[g, i, other]
                spread += difference * difference
                for k in range(m):
                    lines.slopes[k] += elsewhere.whitened[g, i, k] * difference
            kept = sort_without(lines.order, lines.slopes, m, left_out, lines.spare)
            e = math.exp(-abs(view.utilities[g, one] - view.utilities[g, other]))
            informative = plays * e / ((1.0 + e) * (1.0 + e))
            scale = math.sqrt(informative / (1.0 + informative * spread))
            total += weights[g] * envelope_gain(elsewhere.utilities[g], lines, kept, scale)
    return total


class Decision(NamedTuple):
    """What `foresight_lanes` fills.

    Attributes:
        first: (lanes,) row of the first arm.
        second: (lanes,) row of the second arm.
        settled: (lanes,) the leader of a lane that need not be looked at again, or -1; read, and set where nothing was worth
            its cost.
        gained: (lanes, 3) the gain per play of the pair, on these arms and on others, and 1; zeros for a leader against
            itself, and where there are no others.
    """

    first: IntArray
    second: IntArray
    settled: IntArray
    gained: FloatArray


class Rule(NamedTuple):
    """How pairs are priced.

    Attributes:
        remaining: rounds that are left.
        optimism: (lanes,) factor of the gain.
        reach: an arm this many posterior deviations below the leader is no candidate.
        most: arms that are considered in a round, at most.
        batches: numbers of plays, all below `remaining`.
        different: whether the two arms must differ.
    """

    remaining: float
    optimism: FloatArray
    reach: float
    most: int
    batches: FloatArray
    different: bool


@entry
def foresight_lanes(decision: Decision, candidates: Candidates, before: FloatArray, mixture: Mixture, rule: Rule) -> None:
    """Fill the pair of the highest net value per round, or the leader against itself where none is worth its cost.

    Where arms must differ, the leader meets the runner-up at no cost, the gain is half that on the best of the others, and all
    pairs are with the leader: it is shown anyway, so a pair without it costs more than it tells.

    before (lanes, dim, m) are other arms, on which the gain of the pair is measured too; m may be 0.
    """
    lanes, dim, n_arms = candidates.columns.shape
    batches, optimism, remaining = rule.batches, rule.optimism, rule.remaining
    first, second, settled, gained = decision.first, decision.second, decision.settled, decision.gained
    n_ridges, room = mixture.theta.shape[1], min(rule.most, n_arms)
    left_out = 0 if rule.different else -1  # the leader is the first of those considered
    view = new_view(n_ridges, dim, n_arms)
    shortlist = Shortlist(np.empty(n_arms, np.int64), np.empty(n_arms), np.empty(n_arms, np.int64))
    chosen, mean = shortlist.chosen, view.mean
    covariance, heights = np.empty((n_ridges, room, room)), np.empty((n_ridges, room))
    gains, lines = np.empty(batches.shape[0]), new_envelope(room)
    elsewhere, lines_elsewhere = new_view(n_ridges, dim, before.shape[2]), new_envelope(before.shape[2])
    gained[:] = 0.0
    for lane in range(lanes):
        if settled[lane] >= 0:
            first[lane], second[lane] = settled[lane], settled[lane]
            continue
        here = Mixture(mixture.theta[lane], mixture.whitener[lane], mixture.weights[lane])
        priority = candidates.priority[lane]
        view_arms(view, candidates.columns[lane], here)
        leader = pick_arm(mean, priority)
        last = pick_other(mean, priority, leader) if rule.different else leader
        n = shortlist_arms(shortlist, view, here.weights, priority, leader, last, rule.reach, rule.most)
        covariances_into(covariance, view.whitened, here.weights, chosen, n)
        for k in range(n):
            heights[:, k] = view.utilities[:, chosen[k]]
        belief = Belief(heights, covariance, here.weights)
        best, best_priority, one, other = 0.0, -1.0, leader, last
        best_gain, best_plays = 0.0, 1.0
        exploited = 0.5 * (mean[leader] + mean[last]) if rule.different else mean[leader]
        factor = 0.5 * optimism[lane] if rule.different else optimism[lane]
        for i in range(n):
            for j in range(min(i, 1) if rule.different else i):
                gains_into(gains, batches, belief, i, j, n, left_out, lines)
                cost = exploited - 0.5 * (mean[chosen[i]] + mean[chosen[j]])
                worth, gain, plays = -math.inf, 0.0, 1.0
                for b in range(batches.shape[0]):
                    value = factor * gains[b] * (remaining - batches[b]) / batches[b] - cost
                    if value > worth:
                        worth, gain, plays = value, gains[b], batches[b]
                tie_break = priority[chosen[i]] + priority[chosen[j]]
                slack = TIE * (1.0 + abs(best))
                if worth > best + slack or (worth > best - slack and worth > 0.0 and tie_break > best_priority):
                    best, best_priority, one, other = worth, tie_break, chosen[i], chosen[j]
                    best_gain, best_plays = gain, plays
        settled[lane] = leader if one + other == leader + last and min(one, other) == min(leader, last) else -1
        if before.shape[2] > 0 and one != other:
            gain = gain_elsewhere(before[lane], here, view, one, other, best_plays, elsewhere, lines_elsewhere, rule.different)
            gained[lane, 0], gained[lane, 1], gained[lane, 2] = best_gain / best_plays, gain / best_plays, 1.0
        gap = mean[other] - mean[one]
        if gap > TIE or (gap > -TIE and priority[other] > priority[one]):
            one, other = other, one
        first[lane], second[lane] = one, other


class Due(NamedTuple):
    """Which ridges to fit, and how.

    Attributes:
        everywhere: also in lanes that learnt nothing.
        reach: how many places from a ridge that counts others are fitted: 0 for those that count alone.
        follow: by steps with the curvature of before, for the contrast is of the one duel that came since.
        only: the one ridge that has its curvature worked out anew and whose reach counts, -1 for all: others follow.
    """

    everywhere: bool
    reach: int
    follow: bool
    only: int


_STEPS = 8  # of a fit to an expansion: two are the rule
_NEGLIGIBLE = 0.01  # a ridge of less weight is left out until all are fitted again


@entry
def set_weights(weights: FloatArray, evidence: FloatArray) -> None:
    """Fill weights (n,) with exp(evidence), normalised; negligible ones are 0."""
    highest = -math.inf
    for g in range(evidence.shape[0]):
        highest = max(highest, evidence[g])
    total = 0.0
    for g in range(evidence.shape[0]):
        weights[g] = math.exp(evidence[g] - highest)
        total += weights[g]
    kept = 0.0
    for g in range(evidence.shape[0]):
        if weights[g] < _NEGLIGIBLE * total:
            weights[g] = 0.0
        kept += weights[g]
    for g in range(evidence.shape[0]):
        weights[g] /= kept


@inner
def laplace_evidence(theta: FloatArray, pivots: FloatArray, loss: float, ridge: float, log_prior: float) -> float:
    """Log evidence of a ridge at its fit, given the diagonal (dim,) of the curvature's Cholesky factor."""
    value = log_prior - loss
    for i in range(theta.shape[0]):
        value += 0.5 * math.log(ridge) - 0.5 * ridge * theta[i] * theta[i] - math.log(pivots[i])
    return value


@inner
def counts_nearby(weights: FloatArray, g: int, reach: int) -> bool:
    """Whether a ridge counts that is at most so many places from g."""
    nearby = False
    for near in range(max(g - reach, 0), min(g + reach + 1, weights.shape[0])):
        nearby |= weights[near] != 0.0
    return nearby


@entry
def refit_scales(
    mixture: Mixture,
    evidence: FloatArray,
    unconverged: FloatArray,
    ridges: FloatArray,
    log_prior: FloatArray,
    contrast: FloatArray,
    counts: DuelCounts,
    due: Due,
) -> None:
    """Fit the ridges that are due, in the lanes that learnt something; weigh them by their evidence.

    The fits, whiteners and weights of the mixture are replaced in place, and evidence (lanes, ridges) with them. A lane whose
    arm met itself, contrast (lanes, dim) of 0, stays as it is.
    """
    lanes, n_ridges, dim = mixture.theta.shape
    weights = mixture.weights
    hessian, factor, pivots = np.empty((dim, dim)), np.empty((dim, dim)), np.empty(dim)
    for lane in range(lanes):
        n = counts.n_rows[lane]
        contrasts, totals, losses = counts.contrasts[lane], counts.totals[lane, :n], counts.losses[lane, :n]
        logits, slopes = np.empty(n), np.empty(n)
        size = 0.0
        for i in range(dim):
            size += abs(contrast[lane, i])
        if size == 0.0 and not due.everywhere:
            continue
        for g in range(n_ridges):
            follow = due.follow and g != due.only
            if not counts_nearby(weights[lane], g, 0 if follow else due.reach):
                evidence[lane, g] = -math.inf  # what it was, it was with fewer duels
                continue
            r, fitted, whitener = ridges[lane, g], mixture.theta[lane, g], mixture.whitener[lane, g]
            rows = LaneCounts(contrasts, totals, losses, 1.0)
            if follow and follow_fit(fitted, whitener, contrast[lane], rows, r):
                for i in range(dim):
                    pivots[i] = 1.0 / whitener[i, i]
            else:
                iterations = fit_lane(fitted, hessian, rows, r, TOLERANCE, MAX_ITERATIONS)
                unconverged[lane] += iterations < 0
                if not cholesky_into(factor, hessian):
                    evidence[lane, g] = -math.inf
                    continue
                invert_lower(whitener, factor)
                for i in range(dim):
                    pivots[i] = factor[i, i]
            utilities_into(logits, contrasts, fitted)
            loss = loss_and_slopes(logits, totals, losses, slopes)
            evidence[lane, g] = laplace_evidence(fitted, pivots, loss, r, log_prior[g])
        set_weights(weights[lane], evidence[lane])


class Expanded(NamedTuple):
    """A second-order expansion of the likelihood, see `duelist.samplers.expansion`."""

    reference: FloatArray  # (lanes, dim)
    slope: FloatArray  # (lanes, dim)
    hessian: FloatArray  # (lanes, dim, dim)


@inner
def _move_to_mode(
    theta: FloatArray, whitener: FloatArray, expanded: Expanded, lane: int, ridge: float, work: FloatArray
) -> float:
    """Move theta (dim,) to the minimum of the expansion and the prior; returns the expanded loss there. work is (3, dim).

    The whitener may be that of a reference of before: steps with it lead to the same minimum. With the present one it is one.
    """
    dim = theta.shape[0]
    gradient, whitened, apart = work[0], work[1], work[2]
    loss = 0.0
    for _ in range(_STEPS):
        for i in range(dim):
            apart[i] = theta[i] - expanded.reference[lane, i]
        loss = 0.0
        for i in range(dim):
            curved = dot(expanded.hessian[lane, i], apart, dim)
            gradient[i] = expanded.slope[lane, i] + curved + ridge * theta[i]
            loss += (expanded.slope[lane, i] + 0.5 * curved) * apart[i]
        lower_times(whitened, whitener, gradient)
        if dot(whitened, whitened, dim) <= TOLERANCE:
            break
        lower_transposed_times(gradient, whitener, whitened)
        for i in range(dim):
            theta[i] -= gradient[i]
    return loss


@entry
def follow_scales(
    mixture: Mixture,
    evidence: FloatArray,
    ridges: FloatArray,
    log_prior: FloatArray,
    contrast: FloatArray,
    expanded: Expanded,
    due: Due,
) -> None:
    """`refit_scales` for a long history: dim^2 operations per ridge that counts, and dim^3 for the one whose turn it is.

    The expansion has the newest duel already. Evidence is without the loss at the reference, which all ridges share.
    """
    lanes, n_ridges, dim = mixture.theta.shape
    matrix, factor, pivots = np.empty((dim, dim)), np.empty((dim, dim)), np.empty(dim)
    scaled, work = np.empty(dim), np.empty((3, dim))
    for lane in range(lanes):
        z = contrast[lane]
        lose = lose_chance(dot(z, expanded.reference[lane], dim))
        root = math.sqrt(lose * (1.0 - lose))
        for g in range(n_ridges):
            anew = g == due.only or not due.follow
            if not counts_nearby(mixture.weights[lane], g, due.reach if anew else 0):
                evidence[lane, g] = -math.inf
                continue
            r, fitted, whitener = ridges[lane, g], mixture.theta[lane, g], mixture.whitener[lane, g]
            if anew:
                for i in range(dim):
                    for j in range(dim):
                        matrix[i, j] = expanded.hessian[lane, i, j]
                    matrix[i, i] += r
                if not cholesky_into(factor, matrix):
                    evidence[lane, g] = -math.inf
                    continue
                invert_lower(whitener, factor)
            else:
                for i in range(dim):
                    scaled[i] = root * z[i]
                extend_whitener(whitener, scaled, work[0], work[1])
            for i in range(dim):
                pivots[i] = 1.0 / whitener[i, i]
            loss = _move_to_mode(fitted, whitener, expanded, lane, r, work)
            evidence[lane, g] = laplace_evidence(fitted, pivots, loss, r, log_prior[g])
        set_weights(mixture.weights[lane], evidence[lane])
