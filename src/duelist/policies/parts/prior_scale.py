"""How large theta is, learnt from the duels: a mixture over ridges, weighted by their evidence.

A Gaussian prior N(0, I / ridge) needs a scale, and a wrong one costs dearly: too wide, and early wins look decisive; too
narrow, and nothing does. The evidence of a ridge, by Laplace's approximation at its fit theta_r,

    log p(data | r) = -loss(theta_r) - r/2 |theta_r|^2 + d/2 log r - 1/2 log det H_r  (+ constant),

is compared over a grid around a base that makes the arms' utilities have variance 1, under a log-normal prior on the ridge.
The posterior is then the mixture of the Gaussians N(theta_r, H_r^-1), and the scale's own uncertainty is in it.

Beyond a stated number of distinct contrasts the likelihood is read through its second-order expansion (see
`duelist.samplers.expansion`), which all ridges share: it is centred at the fit of the ridge that weighed most when it began. A
vote then costs the same however many came before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.stored_names import Fields, stored
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.foresight import Due, Expanded, Mixture, follow_scales, refit_scales, set_weights
from duelist.policies.parts.confidence import EXACT_ROWS, duel_counts
from duelist.policies.parts.open_duels import add_information, logistic_slope, open_contrasts
from duelist.posteriors.linear import likelihood_from
from duelist.samplers.curvature import Curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, Following, follow, no_expansion, start_following
from duelist.typing import FloatArray

# Factors of the base ridge in the mixture: utilities' standard deviation from 4 down to 1/4.
FACTORS: FloatArray = np.array([4.0 ** (half / 2) for half in range(-4, 5)])
# Standard deviation of log(ridge / base): the scale is known to about a factor of two either way before there are data.
_LOG_SPREAD = math.log(4.0)
LOG_PRIOR: FloatArray = -0.5 * (np.log(FACTORS) / _LOG_SPREAD) ** 2
_GROWTH = 20  # all scales are fitted again when the duels have grown by a twentieth
_NEAR = 2  # in large dimensions those at most so many places from one that counts


def add_expansion(version: int, fields: Fields) -> Fields:  # noqa: ARG001 - there is one older version
    """Version 1 read every contrast with every vote."""
    lanes, _, dim = fields["theta"].shape
    return {**fields, **_nothing_expanded(lanes, dim)}


def _nothing_expanded(lanes: int, dim: int) -> dict[str, Any]:
    return {"centre": unknown_curvature(lanes, dim), "centre_ridge": np.ones(lanes), "expansion": no_expansion(lanes, dim)}


@stored("foresight-scales", version=2, upgrade=add_expansion)
class ScaleFits(NamedTuple):
    """A fit per scale of the prior, and how much each counts.

    Attributes:
        ridges: (lanes, ridges) scales of the prior in the mixture; 0 before the first action set.
        theta: (lanes, ridges, dim) the fit under each.
        whitener: (lanes, ridges, dim, dim) inverse Cholesky factor of the curvature at each fit.
        evidence: (lanes, ridges) log evidence of each.
        weights: (lanes, ridges) weight of each in the posterior; 0 for those that do not count at the moment.
        fitted_at: duels learnt when all scales were last fitted.
        centre: the Gaussian at which the expansion of a long history is centred.
        centre_ridge: (lanes,) the ridge of that Gaussian.
        expansion: what stands for a long history.
    """

    ridges: FloatArray
    theta: FloatArray
    whitener: FloatArray
    evidence: FloatArray
    weights: FloatArray
    fitted_at: int
    centre: Curvature
    centre_ridge: FloatArray
    expansion: Expansion

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
        **_nothing_expanded(lanes, dim),
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
    if history.rounds > EXACT_ROWS and int(history.live_statistics.n_rows.max()) > EXACT_ROWS:
        centred = scales.expansion.centred
        scales = _expand(scales, history, anew=duels != 1)
        if scales.expansion.centred >= 0 and duels == 1:
            renewed = scales.expansion.centred != centred
            return _follow(scales, history, contrast, renewed=renewed), np.zeros(len(contrast))
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


def _expand(scales: ScaleFits, history: History, *, anew: bool) -> ScaleFits:
    """The scales with an expansion of the whole history, or with more of the first pass for one."""
    statistics, known = history.live_statistics, scales.expansion
    lanes = len(scales.theta)
    centre, ridge = scales.centre, scales.centre_ridge
    if known.observations < 0 or anew:
        heaviest = np.arange(lanes), scales.weights.argmax(axis=1)
        # The fit of the vote before, at hand; where many votes came at once, where a fit begins.
        seen = -1 if anew else history.rounds - 1
        centre = Curvature(scales.theta[heaviest], scales.whitener[heaviest], seen)
        ridge, known = scales.ridges[heaviest], known._replace(observations=-1)
    duels = Following(likelihood_from(statistics, np.ones(lanes)), ridge, statistics.newest, history.rounds)
    if anew or (known.centred < 0 and int(statistics.n_rows.max()) > 2 * EXACT_ROWS):
        centre, expansion = start_following(centre, duels, expand=True)
    else:
        centre, expansion = follow(centre, known, duels)
    return scales._replace(centre=centre, centre_ridge=ridge, expansion=expansion)


def _follow(scales: ScaleFits, history: History, contrast: FloatArray, *, renewed: bool) -> ScaleFits:
    """The fits after one more duel. When the expansion is a new one, one scale after the other has its curvature anew."""
    expansion, fitted_at = scales.expansion, history.rounds if renewed else scales.fitted_at
    turn = history.rounds - fitted_at
    due = Due(everywhere=True, reach=_NEAR, follow=True, only=turn if turn < len(FACTORS) else -1)
    fitted = Mixture(scales.theta.copy(), scales.whitener.copy(), scales.weights.copy())
    evidence = scales.evidence.copy()
    expanded = Expanded(expansion.reference, expansion.slope, expansion.hessian)
    follow_scales(fitted, evidence, scales.ridges, LOG_PRIOR, contrast, expanded, due)
    return scales._replace(
        theta=fitted.theta, whitener=fitted.whitener, weights=fitted.weights, evidence=evidence, fitted_at=fitted_at
    )


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
