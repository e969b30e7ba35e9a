"""Verdicts from a logistic model of utilities that are linear in features.

With the likelihood L_t(theta) of the votes and a prior pi, the marginal likelihood over the likelihood of the truth

    m_t / L_t(theta*),    m_t = integral of L_t d pi

is a martingale that starts at 1, whatever rule chose the pairs.

**Theorem.** C_t = { theta : L_t(theta) >= delta m_t } holds theta* at all times with probability 1 - delta at least (Ville).
So a claim that holds for every theta of C_t may be made at any time, and all such claims are right at once. The claim "i is
better than j" holds on C_t if

    log evidence = log m_t - max { log L_t(theta) : <theta, x_i - x_j> <= 0 }  >=  log 1 / delta.

The prior need not be right; it decides how many votes are needed. Two quantities are bounded, both to the safe side: log m_t
from below, by the evidence bound E_q log L_t - KL(q | pi) of the Gaussian q at the mode with the curvature there, whose
one-dimensional integrals are Gauss-Hermite sums; the maximum from above, by a fit with a ridge r and r/2 norm^2 = 0.01 added.

Conditions: the expected score of the first arm, given all before, is 1 / (1 + exp(-<theta*, z>)) in every vote, a tie being
half a win each way; |theta*| <= norm. With a wrong model (cycles, voters who differ, drift) nothing is claimed: `pair_verdict`
asks for less.

Reference: Waudby-Smith & Ramdas (2020), Confidence Sequences for Sampling without Replacement, for the prior-posterior ratio.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import InvalidInputError
from duelist.kernels.logistic import Likelihood, fit_lanes
from duelist.posteriors.stopping.goals import Goal, Verdict, verdict_from
from duelist.typing import FloatArray

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
_SLACK = 0.01  # what the ridge of a fit costs in log evidence
_TOLERANCE, _ITERATIONS = 1e-12, 200
_AT_ONCE = 32  # pairs whose fits are worked out together


class Votes(NamedTuple):
    """Counted votes: contrasts (n, dim) first minus second, wins (n,) and losses (n,) of the first; a tie is half of each."""

    contrasts: FloatArray
    wins: FloatArray
    losses: FloatArray


class LinearModel(NamedTuple):
    """Assumptions of a verdict: the prior's standard deviation per weight, and a bound on the length of theta*."""

    prior_scale: float = 1.0
    norm: float = 20.0


def linear_verdict(features: npt.ArrayLike, votes: Votes, goal: Goal, model: LinearModel | None = None) -> Verdict:
    """How far votes have come towards a goal, by a logistic model on features.

    The error probability is exact where it is decided; else it is that of the least certain pairs.

    Args:
        features: (n_arms, dim) of the arms of which something shall be said.
        votes: what was compared, these arms or others of the same features.
        goal: what one wants to know, with delta.
        model: assumptions; None for those of `LinearModel()`.

    Example:
        >>> import numpy as np
        >>> votes = Votes(np.array([[1.0], [0.5]]), np.array([60.0, 40.0]), np.array([10.0, 25.0]))
        >>> linear_verdict([[0.0], [1.0]], votes, Goal()).arms
        (1,)
    """
    arms = finite_array("features", features, "(n_arms, dim)", 2)
    goal.check_arms(len(arms))
    counted, model = _check_votes(votes, arms.shape[1]), model or LinearModel()
    scale, norm = (finite_number(name, value, above=0.0) for name, value in model._asdict().items())
    theta, hessian = _fit(counted, scale**-2)
    utilities = arms @ theta
    order = [int(i) for i in np.argsort(-utilities, kind="stable")]
    needed = np.array(goal.pairs(order))
    z = arms[needed[:, 0]] - arms[needed[:, 1]]
    z = z[(z != 0.0).any(axis=1)]  # of two equal arms either may stand for the other
    marginal = log_marginal_bound(counted, theta, hessian, scale)
    if not len(z):
        return verdict_from(goal, goal.claim(order), math.inf, 0.0)
    certainty = (z @ theta) ** 2 / np.einsum("nd,nd->n", z, np.linalg.solve(hessian, z.T).T)
    wanted, least = -math.log(goal.delta), math.inf
    ranked = z[np.argsort(certainty, kind="stable")]
    for start in range(0, len(ranked), _AT_ONCE):
        highest = max(_highest_against(counted, each, norm) for each in ranked[start : start + _AT_ONCE])
        least = min(least, marginal - highest)
        if least < wanted:
            break
    best = _log_likelihood(counted, _fit(counted, 2.0 * _SLACK / norm**2)[0])
    return verdict_from(goal, goal.claim(order), least, _votes_needed(counted, best - marginal, least, wanted))


def log_marginal_bound(votes: Votes, theta: FloatArray, hessian: FloatArray, prior_scale: float) -> float:
    """A lower bound of log m_t, by the Gaussian q at theta (dim,) with precision hessian (dim, dim).

    E_q log L - KL(q | N(0, prior_scale^2 I))
    """
    precision, dim = prior_scale**-2, len(theta)
    factor = np.linalg.cholesky(hessian)
    root = np.linalg.inv(factor)  # root^T root is the covariance of q
    means, deviations = votes.contrasts @ theta, np.linalg.norm(root @ votes.contrasts.T, axis=0)
    at = means[:, None] + deviations[:, None] * _NODES
    softplus = np.logaddexp(0.0, at) @ _WEIGHTS / math.sqrt(2.0 * math.pi)
    expected = float(votes.wins @ means - (votes.wins + votes.losses) @ softplus)
    log_determinant = -2.0 * float(np.log(np.diag(factor)).sum()) + dim * math.log(precision)
    trace = precision * (float((root**2).sum()) + float(theta @ theta))
    return expected - 0.5 * (trace - dim - log_determinant)


def _highest_against(votes: Votes, z: FloatArray, norm: float) -> float:
    """An upper bound of log L_t over all theta with <theta, z> <= 0 and |theta| <= norm."""
    ridge = 2.0 * _SLACK / norm**2
    theta, _ = _fit(votes, ridge)
    if float(z @ theta) > 0.0:
        # A concave function whose maximum lies beyond the border has its maximum within on the border, <theta, z> = 0.
        basis = np.linalg.svd(z[None])[2][1:]  # (dim - 1, dim)
        theta = _fit(votes._replace(contrasts=votes.contrasts @ basis.T), ridge)[0] @ basis if len(basis) else np.zeros(1)
    return _log_likelihood(votes, theta) - 0.5 * ridge * float(theta @ theta) + _SLACK


def _fit(votes: Votes, ridge: float) -> tuple[FloatArray, FloatArray]:
    """Minimiser (dim,) of ridge/2 |theta|^2 - log L, and the curvature there (dim, dim)."""
    contrasts = np.ascontiguousarray(votes.contrasts.T)[None]
    totals = (votes.wins + votes.losses)[None]
    theta, rows = np.zeros((1, contrasts.shape[1])), np.array([totals.shape[1]])
    hessian, iterations = np.empty((1, contrasts.shape[1], contrasts.shape[1])), np.empty(1, dtype=np.int64)
    likelihood = Likelihood(contrasts, totals, votes.losses[None], rows, np.ones(1))
    fit_lanes(theta, hessian, likelihood, np.array([ridge]), _TOLERANCE, _ITERATIONS, iterations)
    return theta[0], hessian[0]


def _log_likelihood(votes: Votes, theta: FloatArray) -> float:
    logits = votes.contrasts @ theta
    return float(votes.wins @ logits - (votes.wins + votes.losses) @ np.logaddexp(0.0, logits))


def _votes_needed(votes: Votes, cost: float, log_evidence: float, wanted: float) -> float:
    """Votes until the evidence is as wanted: the likelihood ratio grows with the votes, what the prior costs with their log."""
    number, ratio = float((votes.wins + votes.losses).sum()), log_evidence + cost
    dim = votes.contrasts.shape[1]
    if number == 0.0 or ratio <= 0.0:
        return math.inf
    if log_evidence >= wanted:
        return 0.0

    def missing(log_times: float) -> float:
        return float(ratio * math.exp(log_times) - cost - 0.5 * dim * log_times - wanted)

    return number * (math.exp(float(brentq(missing, 0.0, 30.0))) - 1.0) if missing(30.0) > 0.0 else math.inf


def _check_votes(votes: Votes, dim: int) -> Votes:
    contrasts = finite_array("votes.contrasts", votes.contrasts, "(n, dim)", 2)
    wins, losses = (finite_array(f"votes.{name}", getattr(votes, name), "(n,)", 1) for name in ("wins", "losses"))
    if contrasts.shape != (len(wins), dim) or wins.shape != losses.shape or (wins < 0.0).any() or (losses < 0.0).any():
        raise InvalidInputError(
            f"votes need contrasts (n, {dim}) like the features, and wins and losses (n,) of at least 0; got "
            f"{contrasts.shape}, {wins.shape} and {losses.shape}."
        )
    return Votes(contrasts, wins, losses)
