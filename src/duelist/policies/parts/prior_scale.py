"""How large theta is, learnt from the duels: a mixture over ridges, weighted by their evidence.

A Gaussian prior N(0, I / ridge) needs a scale, and a wrong one costs dearly: too wide, and early wins look decisive; too
narrow, and nothing does. The evidence of a ridge, by Laplace's approximation at its fit theta_r,

    log p(data | r) = -loss(theta_r) - r/2 |theta_r|^2 + d/2 log r - 1/2 log det H_r  (+ constant),

is compared over a grid around a base that makes the arms' utilities have variance 1, under a log-normal prior on the ridge.
The posterior is then the mixture of the Gaussians N(theta_r, H_r^-1), and the scale's own uncertainty is in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.stored_names import stored
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.foresight import Due, Mixture, refit_scales, set_weights
from duelist.policies.parts.confidence import duel_counts
from duelist.policies.parts.open_duels import add_information, logistic_slope, open_contrasts
from duelist.typing import FloatArray

# Factors of the base ridge in the mixture: utilities' standard deviation from 4 down to 1/4.
FACTORS: FloatArray = np.array([4.0 ** (half / 2) for half in range(-4, 5)])
# Standard deviation of log(ridge / base): the scale is known to about a factor of two either way before there are data.
_LOG_SPREAD = math.log(4.0)
LOG_PRIOR: FloatArray = -0.5 * (np.log(FACTORS) / _LOG_SPREAD) ** 2
_GROWTH = 20  # all scales are fitted again when the duels have grown by a twentieth
_NEAR = 2  # in large dimensions those at most so many places from one that counts


@stored("foresight-scales")
class ScaleFits(NamedTuple):
    """A fit per scale of the prior, and how much each counts.

    Attributes:
        ridges: (lanes, ridges) scales of the prior in the mixture; 0 before the first action set.
        theta: (lanes, ridges, dim) the fit under each.
        whitener: (lanes, ridges, dim, dim) inverse Cholesky factor of the curvature at each fit.
        evidence: (lanes, ridges) log evidence of each.
        weights: (lanes, ridges) weight of each in the posterior; 0 for those that do not count at the moment.
        fitted_at: duels learnt when all scales were last fitted.
    """

    ridges: FloatArray
    theta: FloatArray
    whitener: FloatArray
    evidence: FloatArray
    weights: FloatArray
    fitted_at: int

    @property
    def mixture(self) -> Mixture:
        """What kernels read."""
        return Mixture(self.theta, self.whitener, self.weights)


def start_scales(lanes: int, dim: int) -> ScaleFits:
    """No fits; the ridges wait for the first arms."""
    n_ridges = len(FACTORS)
    return ScaleFits(
        ridges=np.zeros((lanes, n_ridges)),
        theta=np.zeros((lanes, n_ridges, dim)),
        whitener=np.zeros((lanes, n_ridges, dim, dim)),
        evidence=np.tile(LOG_PRIOR, (lanes, 1)),
        weights=np.zeros((lanes, n_ridges)),
        fitted_at=0,
    )


def set_ridges(scales: ScaleFits, actions: FiniteActions) -> ScaleFits:
    """The scales around the base that suits the first arms."""
    ridges = base_ridge(actions)[:, None] * FACTORS
    whitener = np.eye(actions.dim) / np.sqrt(ridges)[:, :, None, None]
    weights = np.empty_like(ridges)
    for lane in range(actions.lanes):
        set_weights(weights[lane], scales.evidence[lane])
    return scales._replace(ridges=ridges, whitener=whitener, weights=weights)


def refit(scales: ScaleFits, history: History, contrast: FloatArray, *, duels: int) -> tuple[ScaleFits, FloatArray]:
    """Fit again the scales that count, now and then all of them; also (lanes,) how many fits did not converge.

    From dim 96 on a fit follows the one before while it is one duel older, and now and then is when the curvatures are worked
    out anew, of the scales that count and those near them. As soon as there are duels enough until the next time, one scale
    after the other has its turn, so that no single duel takes much longer than the others.

    Args:
        scales: the fits so far.
        history: all duels.
        contrast: (lanes, dim) of the newest duel; a lane where it is 0 learnt nothing.
        duels: how many came since the last fit.
    """
    grown = history.rounds > scales.fitted_at + scales.fitted_at // _GROWTH
    large = contrast.shape[1] >= LARGE
    one_by_one = large and duels == 1
    reach = 0 if not grown else _NEAR if one_by_one else len(FACTORS)
    due = Due(everywhere=grown, reach=reach, follow=one_by_one and not grown, only=-1)
    if one_by_one and scales.fitted_at // _GROWTH >= len(FACTORS):
        turn = 0 if grown else history.rounds - scales.fitted_at
        due = Due(everywhere=False, reach=_NEAR, follow=True, only=turn if turn < len(FACTORS) else -1)
    fitted = Mixture(scales.theta.copy(), scales.whitener.copy(), scales.weights.copy())
    evidence, unconverged = scales.evidence.copy(), np.zeros(len(contrast))
    refit_scales(fitted, evidence, unconverged, scales.ridges, LOG_PRIOR, contrast, duel_counts(history), due)
    return scales._replace(
        theta=fitted.theta,
        whitener=fitted.whitener,
        weights=fitted.weights,
        evidence=evidence,
        fitted_at=history.rounds if grown else scales.fitted_at,
    ), unconverged


def expect_answers(mixture: Mixture, pending: Sequence[Duels]) -> Mixture:
    """The mixture with each curvature that counts as it will be when pending duels are answered, at the same fits."""
    contrasts, whitener = open_contrasts(pending), mixture.whitener.copy()
    lanes, ridges = np.nonzero(mixture.weights)
    zs = contrasts[lanes]
    slopes = logistic_slope(np.einsum("gnd,gd->gn", zs, mixture.theta[lanes, ridges]))
    whitener[lanes, ridges] = add_information(whitener[lanes, ridges], zs, slopes)
    return mixture._replace(whitener=whitener)


def base_ridge(actions: FiniteActions) -> FloatArray:
    """(lanes,) the ridge under which the arms' utilities vary with variance 1 around their mean."""
    centred = actions.features - actions.features.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=2).mean(axis=1)
    return np.asarray(np.maximum(spread, np.finfo(float).tiny))
