"""Votes of people who differ: a linear logistic model in which every voter has a slope of their own.

With x the difference of what is judged (utilities, style, groups) and b what stands beside it (the side on the screen), the
vote of voter v goes to the first candidate with probability

    s(r_v <theta, x> + <beta, b>),   theta_k ~ N(0, c_k^2),   r_v ~ N(1, tau^2).

A slope of 1 is the average voter, 0 one who votes at random, and below 0 one who means the opposite. Coefficients of groups
have a common standard deviation sigma. Slopes and coefficients are fitted together, by Newton steps, or Gauss-Newton steps
where the posterior is not convex; tau and sigma are those under which the votes are most probable (MacKay's fixed point on the
Laplace approximation); the covariance is Laplace's, with the Gauss-Newton curvature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array, diags_array

from duelist.core.errors import NotConvergedError
from duelist.preferences.logistic import log_loss, win_probability
from duelist.typing import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-9  # on the squared Newton decrement
MAX_STEPS = 200
_MAX_ROUNDS = 200  # of learning the spreads
_SETTLED = 2e-3  # relative change of a spread, below which it is learnt
# What is known of a spread before the votes: one more voter, or one more coefficient, that was 0.1 from the mean.
_PSEUDO_DEVIATION, _PSEUDO_COUNT = 0.1, 1.0
_SMALLEST, _LARGEST = 1e-3, 1e2
_CHUNK = 8192  # rows
Sparse = Any  # a sparse array of SciPy, whose types differ from one operation to the next


class VoteTable(NamedTuple):
    """Votes as rows of a linear model.

    Attributes:
        rows: (n, p) sparse, the coefficients' factors.
        judged: (p,) which of them a voter's slope multiplies.
        pooled: (p,) which of them share a spread that is learnt.
        deviation: (p,) prior standard deviations; of those that are pooled, the first guess.
        wins: (n,) how often the first candidate won, a tie one half.
        losses: (n,) how often it lost.
        voters: (n,) numbers of the voters; None where every slope is 1.
        n_voters: how many there are.
    """

    rows: Sparse
    judged: BoolArray
    pooled: BoolArray
    deviation: FloatArray
    wins: FloatArray
    losses: FloatArray
    voters: IntArray | None = None
    n_voters: int = 0


class PeopleFit(NamedTuple):
    """What the votes say.

    Attributes:
        coefficients: (p,) their mode.
        covariance: (p, p) of them, whatever the slopes.
        slopes: (n_voters,) their mode; empty without voters.
        slope_deviations: (n_voters,) posterior standard deviation of each.
        voter_spread: tau; 0 without voters.
        pooled_spread: sigma; 0 without pooled coefficients.
        steps: Newton steps in all.
    """

    coefficients: FloatArray
    covariance: FloatArray
    slopes: FloatArray
    slope_deviations: FloatArray
    voter_spread: float
    pooled_spread: float
    steps: int


class _Normal(NamedTuple):
    """Normal equations at one point: the gradient, and the Gauss-Newton curvature with the slopes eliminated."""

    gradient: FloatArray  # (p,)
    slope_gradient: FloatArray  # (n_voters,)
    curvature: FloatArray  # (p, p) before that
    factor: Any  # Cholesky factor of the (p, p) Schur complement
    mixed: Sparse  # (n_voters, p)
    slope_curvature: FloatArray  # (n_voters,)
    bend: Sparse  # (n_voters, p) what the Hessian has beside `mixed`: a slope times a coefficient is not linear

    def step(self) -> tuple[FloatArray, FloatArray]:
        """The Newton step of coefficients and slopes; the Gauss-Newton step where the Hessian is not positive definite."""
        mixed, factor = self.mixed + self.bend, self.factor
        if mixed.shape[0]:
            try:
                factor = cho_factor(self.curvature - _eliminated(mixed, self.slope_curvature), lower=True)
            except LinAlgError:
                mixed = self.mixed
        pulled = self.gradient - mixed.T @ (self.slope_gradient / self.slope_curvature)
        step = -cho_solve(factor, pulled)
        return step, -(self.slope_gradient + mixed @ step) / self.slope_curvature

    def slope_variances(self, covariance: FloatArray) -> FloatArray:
        """(n_voters,) diagonal of the slopes' block of the inverse."""
        return np.asarray(1.0 / self.slope_curvature + _quadratic(self.mixed, covariance) / self.slope_curvature**2)


class _Model:
    """The table with what every step needs again."""

    def __init__(self, table: VoteTable) -> None:
        self.table = table
        rows = csr_array(table.rows)
        self.rows: Sparse = rows
        self.n, self.p = rows.shape
        self._row_of_entry = np.repeat(np.arange(self.n), np.diff(rows.indptr))
        self._entry_judged = table.judged[rows.indices]
        self.judged_rows: Sparse = csr_array(
            (np.where(self._entry_judged, rows.data, 0.0), rows.indices, rows.indptr), rows.shape
        )
        self.totals = table.wins + table.losses
        self.voters = np.zeros(self.n, dtype=np.int64) if table.voters is None else table.voters
        self.has_voters = table.voters is not None
        membership = (np.ones(self.n), (self.voters, np.arange(self.n)))
        self.members: Sparse = csr_array(membership, shape=(table.n_voters, self.n)) if self.has_voters else None

    def logits(self, theta: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) log-odds of the first, and the part of them that slopes multiply before they do."""
        every = np.asarray(self.rows @ theta)
        if not self.has_voters:
            return every, every
        judged = np.asarray(self.judged_rows @ theta)
        return every + (slopes[self.voters] - 1.0) * judged, judged

    def value(self, theta: FloatArray, slopes: FloatArray, precision: FloatArray, slope_precision: float) -> float:
        """-log posterior, without constants."""
        logits, _ = self.logits(theta, slopes)
        loss = float((self.totals * log_loss(logits) + self.table.losses * logits).sum())
        return loss + 0.5 * float(precision @ theta**2) + 0.5 * slope_precision * float(((slopes - 1.0) ** 2).sum())

    def normal(self, theta: FloatArray, slopes: FloatArray, precision: FloatArray, slope_precision: float) -> _Normal:
        """Gradient and curvature."""
        logits, judged = self.logits(theta, slopes)
        chance = win_probability(logits)
        residual = self.totals * chance - self.table.wins
        weight = self.totals * chance * (1.0 - chance)
        rows = self.rows
        if self.has_voters:
            scale = np.where(self._entry_judged, slopes[self.voters][self._row_of_entry], 1.0)
            rows = csr_array((rows.data * scale, rows.indices, rows.indptr), shape=rows.shape)
        weighted = diags_array(weight) @ rows
        curvature = np.asarray((rows.T @ weighted).toarray()) + np.diag(precision)
        gradient = np.asarray(rows.T @ residual) + precision * theta
        if not self.has_voters:
            nothing = csr_array((0, self.p))
            factor = cho_factor(curvature, lower=True)
            return _Normal(gradient, np.zeros(0), curvature, factor, nothing, np.zeros(0), nothing)
        mixed = csr_array(self.members @ (diags_array(judged) @ weighted))
        slope_curvature = np.asarray(self.members @ (weight * judged**2)) + slope_precision
        slope_gradient = np.asarray(self.members @ (residual * judged)) + slope_precision * (slopes - 1.0)
        factor = cho_factor(curvature - _eliminated(mixed, slope_curvature), lower=True)
        bend = csr_array(self.members @ (diags_array(residual) @ self.judged_rows))
        return _Normal(gradient, slope_gradient, curvature, factor, mixed, slope_curvature, bend)


def fit_people(table: VoteTable) -> PeopleFit:
    """Fit coefficients, slopes and spreads.

    Args:
        table: the votes.

    Example:
        >>> import numpy as np
        >>> rows = np.array([[1.0], [1.0]])
        >>> yes = np.ones(1, dtype=bool)
        >>> table = VoteTable(rows, yes, ~yes, np.ones(1), np.array([30.0, 0.0]), np.array([10.0, 0.0]))
        >>> round(float(fit_people(table).coefficients[0]), 2)
        0.97
    """
    model = _Model(table)
    theta, slopes = np.zeros(model.p), np.ones(table.n_voters)
    tau = 0.3 if model.has_voters else 0.0
    pooled = bool(table.pooled.any())
    sigma = float(table.deviation[table.pooled][0]) if pooled else 0.0
    steps = 0
    for _ in range(_MAX_ROUNDS):
        precision = np.where(table.pooled, 1.0 / max(sigma, _SMALLEST) ** 2, 1.0 / table.deviation**2)
        slope_precision = 1.0 / tau**2 if model.has_voters else 0.0
        theta, slopes, normal, taken = _descend(model, theta, slopes, precision, slope_precision)
        steps += taken
        covariance = np.asarray(cho_solve(normal.factor, np.eye(model.p)))
        variances = normal.slope_variances(covariance) if model.has_voters else np.zeros(0)
        before = tau, sigma
        if model.has_voters:
            tau = _spread(slopes - 1.0, variances, tau)
        if pooled:
            sigma = _spread(theta[table.pooled], np.diag(covariance)[table.pooled], sigma)
        if all(abs(new - old) <= _SETTLED * old for new, old in zip((tau, sigma), before, strict=True)):
            break
    return PeopleFit(theta, covariance, slopes, np.sqrt(variances), tau, sigma, steps)


def _spread(deviations: FloatArray, variances: FloatArray, spread: float) -> float:
    """MacKay's fixed point: squares of what deviates, over how many of them the votes determine."""
    determined = np.maximum(1.0 - variances / spread**2, 0.0).sum()
    squared = (float(deviations @ deviations) + _PSEUDO_DEVIATION**2 * _PSEUDO_COUNT) / (float(determined) + _PSEUDO_COUNT)
    return float(np.clip(np.sqrt(squared), _SMALLEST, _LARGEST))


def _descend(
    model: _Model, theta: FloatArray, slopes: FloatArray, precision: FloatArray, slope_precision: float
) -> tuple[FloatArray, FloatArray, _Normal, int]:
    """The mode under given spreads, the equations there, and the number of steps."""
    value = model.value(theta, slopes, precision, slope_precision)
    for taken in range(MAX_STEPS):
        normal = model.normal(theta, slopes, precision, slope_precision)
        step, slope_step = normal.step()
        decrement = -float(normal.gradient @ step + normal.slope_gradient @ slope_step)
        if decrement <= TOLERANCE:
            return theta, slopes, normal, taken
        length = 1.0
        while True:
            tried = theta + length * step, slopes + length * slope_step
            reached = model.value(*tried, precision, slope_precision)
            if reached <= value - 1e-4 * length * decrement:
                break
            length *= 0.5
            if length < 1e-10:  # no further descent within rounding
                return theta, slopes, normal, taken
        (theta, slopes), value = tried, reached
    raise NotConvergedError(f"the fit of the votes did not converge in {MAX_STEPS} steps. Use a smaller prior scale.")


def predict_logits(
    rows: Sparse, judged: BoolArray, fit: PeopleFit, slopes: FloatArray, slope_deviations: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(n,) mean and standard deviation of the log-odds of votes, by the delta method.

    Args:
        rows: (n, p) factors of the coefficients.
        judged: (p,) which of them slopes multiply.
        fit: what was learnt.
        slopes: (n,) of whoever votes.
        slope_deviations: (n,) how uncertain they are; correlation of slopes and coefficients is left out.
    """
    rows = csr_array(rows)
    part = rows @ diags_array(judged.astype(np.float64))
    quality = np.asarray(part @ fit.coefficients)
    mean = np.asarray(rows @ fit.coefficients) + (slopes - 1.0) * quality
    scaled = diags_array(slopes) @ part + (rows - part)
    return mean, np.sqrt(_quadratic(scaled, fit.covariance) + (quality * slope_deviations) ** 2)


def _eliminated(mixed: Sparse, slope_curvature: FloatArray) -> FloatArray:
    """(p, p) what eliminating the slopes takes from the curvature."""
    return np.asarray((mixed.T @ (diags_array(1.0 / slope_curvature) @ mixed)).toarray())


def _quadratic(rows: Sparse, matrix: FloatArray) -> FloatArray:
    """(n,) x^T matrix x of sparse rows x, some at a time: they are dense in between."""
    parts = [rows[start : start + _CHUNK] for start in range(0, rows.shape[0], _CHUNK)]
    return np.concatenate([np.asarray((part @ matrix) * part.toarray()).sum(axis=1) for part in parts] or [np.zeros(0)])
