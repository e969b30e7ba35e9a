"""The potential of a posterior over answered slates, for linear utilities.

U_j(theta) = precision / 2 |theta|^2 + eta sum_i -log P(answer_i | theta)
             - mu sum_i ( max_{a in A_i} <theta, phi(a)> - <theta, mean of the candidates of the other draws> )

Where the tie parameter nu of Davidson's model is learnt, log nu is one more coordinate after theta, with the term
(log nu - log median)^2 / (2 spread^2) of its prior, and the answers' probabilities depend on both.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.history.slates import SlateTable
from duelist.kernels.slates import (
    BOTH_BAD,
    DAVIDSON,
    LEARNT_DAVIDSON,
    NO_TIES,
    RAO_KUPPER,
    SlateTerms,
    slate_curvature,
    slate_potential,
)
from duelist.posteriors.priors import Prior
from duelist.preferences.ties import BothBad, Davidson, LearntDavidson, RaoKupper
from duelist.typing import FloatArray

TieModel = Davidson | LearntDavidson | RaoKupper | BothBad


_NEWTON_STEPS, _HALVINGS = 30, 20
_SMALLEST_DECREMENT = 1e-12  # of a Newton step: twice what it could still gain


class SlatePotential:
    """-log density up to a constant, for all lanes and draws.

    Args:
        table: answered slates.
        prior: on theta.
        eta: (lanes,) temper of the likelihood.
        mu: (lanes,) Feel-Good weight.
        ties: the model of ties; with None a tie counts as a win of each candidate, of weight 1 / q.

    Attributes:
        width: coordinates of a draw: dim, and one more where log nu is learnt.
    """

    def __init__(
        self, table: SlateTable, prior: Prior, *, eta: FloatArray, mu: FloatArray, ties: TieModel | None = None
    ) -> None:
        self.width = table.features.shape[3] + isinstance(ties, LearntDavidson)
        self._terms = SlateTerms(
            features=table.features,
            placed=table.placed,
            sizes=table.sizes,
            rounds=table.rounds,
            model=_model_number(ties),
            parameter=_model_parameter(ties),
            tie_precision=1.0 / ties.spread**2 if isinstance(ties, LearntDavidson) else 0.0,
            sets=table.sets,
            repeats=table.repeats,
            adversary=table.adversary,
            eta=eta,
            mu=mu,
            precision=float(prior.precision),
            radius=float(prior.radius),
        )

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (lanes, chains) and gradients at theta (lanes, chains, width); where mu > 0, a chain per draw of the slate."""
        lanes, choices, _ = self._terms.adversary.shape
        chains = choices if self._terms.mu.any() else theta.shape[1]
        if theta.shape != (lanes, chains, self.width):
            raise InvalidInputError(
                f"theta must be (lanes, choices, width) = {(lanes, choices, self.width)}; got {theta.shape}."
            )
        values, gradients = np.empty(theta.shape[:2]), np.empty(theta.shape)
        slate_potential(np.ascontiguousarray(theta), self._terms, values, gradients)
        return values, gradients

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Hessian (lanes, width, width) of prior and ranking losses at theta (lanes, width)."""
        lanes, width = theta.shape
        # A ball alone curves nothing: its width stands in.
        base = max(self._terms.precision, 1.0 / self._terms.radius**2)
        diagonal = np.full(width, base)
        if self._terms.tie_precision:
            diagonal[-1] = self._terms.tie_precision
        curvature = np.repeat(np.diag(diagonal)[None], lanes, axis=0)
        slate_curvature(np.ascontiguousarray(theta), self._terms, curvature)
        return curvature

    def mode(self, start: FloatArray) -> FloatArray:
        """The minimum (lanes, width) where mu is 0: Newton steps from start (lanes, width), each halved until it descends."""
        theta = start.copy()
        value, gradient = self._at(theta)
        for _ in range(_NEWTON_STEPS):
            step = np.linalg.solve(self.curvature(theta), gradient[..., None])[..., 0]
            if (np.einsum("li,li->l", step, gradient) < _SMALLEST_DECREMENT).all():
                break
            length = np.ones(len(theta))
            for _ in range(_HALVINGS):
                moved = theta - length[:, None] * step
                new_value, new_gradient = self._at(moved)
                worse = ~(new_value <= value)
                if not worse.any():
                    break
                length[worse] *= 0.5
            theta = np.where(worse[:, None], theta, moved)
            value, gradient = np.where(worse, value, new_value), np.where(worse[:, None], gradient, new_gradient)
        return theta

    def _at(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value (lanes,) and gradient (lanes, width) at theta (lanes, width)."""
        values, gradients = self.value_and_gradient(theta[:, None])
        return values[:, 0], gradients[:, 0]


def _model_number(ties: TieModel | None) -> int:
    """The number that kernels know a model of ties by."""
    kinds: dict[type, int] = {
        Davidson: DAVIDSON,
        LearntDavidson: LEARNT_DAVIDSON,
        RaoKupper: RAO_KUPPER,
        BothBad: BOTH_BAD,
        type(None): NO_TIES,
    }
    if type(ties) not in kinds:
        raise InvalidInputError(f"ties must be Davidson, LearntDavidson, RaoKupper or BothBad, or None; got {ties!r}.")
    return kinds[type(ties)]


def _model_parameter(ties: TieModel | None) -> float:
    match ties:
        case Davidson(nu=parameter) | RaoKupper(kappa=parameter) | BothBad(utility=parameter):
            return float(parameter)
        case LearntDavidson(median=median):
            return math.log(median)
    return 0.0
