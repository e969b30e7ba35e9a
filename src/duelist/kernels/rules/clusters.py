"""Fits to the votes of several users together: who belongs together in a graph, and what their votes say."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, invert_lower
from duelist.kernels.logistic import LaneCounts, fit_lane
from duelist.kernels.rules.pairs import MAX_ITERATIONS, TOLERANCE, DuelCounts
from duelist.typing import BoolArray, FloatArray, IntArray


class Users(NamedTuple):
    """What is known of every user.

    Attributes:
        thetas: (lanes, users, dim) the estimate of each alone.
        grams: (lanes, users, dim, dim) sum of z z^T.
        edges: (lanes, users, users) who is still taken to want the same.
    """

    thetas: FloatArray
    grams: FloatArray
    edges: BoolArray


class Shared(NamedTuple):
    """What a fit to a cluster fills: theta (lanes, dim), whitener (lanes, dim, dim), unconverged (lanes,)."""

    theta: FloatArray
    whitener: FloatArray
    unconverged: FloatArray


@inner
def connect(member: BoolArray, edges: BoolArray, user: int) -> None:
    """Fill member (users,) with who can be reached from the user along edges (users, users)."""
    users = member.shape[0]
    for other in range(users):
        member[other] = False
    member[user] = True
    grown = True
    while grown:
        grown = False
        for one in range(users):
            if member[one]:
                for other in range(users):
                    if edges[one, other] and not member[other]:
                        member[other] = True
                        grown = grown or other < one  # those behind are still to come in this pass


@maker
def fit_together(theta: FloatArray, hessian: FloatArray, member: BoolArray, counts: DuelCounts, lane: int, ridge: float) -> int:
    """Fit theta (dim,), from where it is, to the votes of some users of a lane; the groups of counts are (lane, user)."""
    users, dim = member.shape[0], theta.shape[0]
    n = 0
    for user in range(users):
        if member[user]:
            n += counts.n_rows[lane * users + user]
    contrasts, totals, losses = np.empty((dim, n)), np.empty(n), np.empty(n)
    begin = 0
    for user in range(users):
        group = lane * users + user
        if not member[user] or counts.n_rows[group] == 0:
            continue
        rows = counts.n_rows[group]
        end = begin + rows
        totals[begin:end] = counts.totals[group, :rows]
        losses[begin:end] = counts.losses[group, :rows]
        for i in range(dim):
            contrasts[i, begin:end] = counts.contrasts[group, i, :rows]
        begin = end
    return fit_lane(theta, hessian, LaneCounts(contrasts, totals, losses, 1.0), ridge, TOLERANCE, MAX_ITERATIONS)


@entry
def fit_users(fit: Shared, asked: IntArray, counts: DuelCounts, ridge: FloatArray) -> None:
    """Fit theta of the user who was asked, per lane, to the votes of that user alone. The whitener stays."""
    lanes, dim = fit.theta.shape
    users = counts.n_rows.shape[0] // lanes
    hessian = np.empty((dim, dim))
    for lane in range(lanes):
        member = np.zeros(users, dtype=np.bool_)
        member[asked[lane]] = True
        if fit_together(fit.theta[lane], hessian, member, counts, lane, ridge[lane]) < 0:
            fit.unconverged[lane] += 1.0


@entry
def fit_clusters(
    fit: Shared, asked: IntArray, known: Users, counts: DuelCounts, fit_ridge: FloatArray, ridge: FloatArray
) -> None:
    """Fill theta and whitener of the cluster of the user who asks, per lane.

    The fit starts from the mean of its members' own estimates, by how many contrasts each has; that of one member who alone has
    votes is the answer.
    """
    lanes, users, dim = known.thetas.shape
    hessian, factor, gram = np.empty((dim, dim)), np.empty((dim, dim)), np.empty((dim, dim))
    member = np.empty(users, dtype=np.bool_)
    for lane in range(lanes):
        connect(member, known.edges[lane], asked[lane])
        theta, voters, votes = fit.theta[lane], 0, 0.0
        for i in range(dim):
            theta[i] = 0.0
            for j in range(dim):
                gram[i, j] = ridge[lane] if i == j else 0.0
        for user in range(users):
            if not member[user]:
                continue
            rows = counts.n_rows[lane * users + user]
            voters += rows > 0
            votes += rows
            for i in range(dim):
                theta[i] += rows * known.thetas[lane, user, i]
                for j in range(dim):
                    gram[i, j] += known.grams[lane, user, i, j]
        for i in range(dim):
            theta[i] /= max(votes, 1.0)
        # The mean of one is that one but for rounding, and its fit is at hand.
        if voters > 1 and fit_together(theta, hessian, member, counts, lane, fit_ridge[lane]) < 0:
            fit.unconverged[lane] += 1.0
        if cholesky_into(factor, gram):
            invert_lower(fit.whitener[lane], factor)


@entry
def drop_edges(edges: BoolArray, asked: IntArray, thetas: FloatArray, doubt: FloatArray) -> None:
    """Cut the edges between the user who voted and those whose estimates are further apart than both doubts (lanes, users)."""
    lanes, users, dim = thetas.shape
    for lane in range(lanes):
        user = asked[lane]
        for other in range(users):
            apart = 0.0
            for i in range(dim):
                difference = thetas[lane, user, i] - thetas[lane, other, i]
                apart += difference * difference
            if apart > (doubt[lane, user] + doubt[lane, other]) ** 2:
                edges[lane, user, other] = False
                edges[lane, other, user] = False
