"""The potential of a posterior over answered slates, for linear utilities.

U_j(theta) = precision / 2 |theta|^2 + eta sum_i -log P(answer_i | theta)
             - mu sum_i ( max_{a in A_i} <theta, phi(a)> - <theta, mean of the candidates of the other draws> )
"""

from __future__ import annotations

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.history.slates import SlateTable
from duelist.kernels.slates import BOTH_BAD, DAVIDSON, NO_TIES, RAO_KUPPER, SlateTerms, slate_curvature, slate_potential
from duelist.posteriors.priors import Prior
from duelist.preferences.ties import BothBad, Davidson, RaoKupper
from duelist.typing import FloatArray

TieModel = Davidson | RaoKupper | BothBad


class SlatePotential:
    """-log density up to a constant, for all lanes and draws.

    Args:
        table: answered slates.
        prior: on theta.
        eta: (lanes,) temper of the likelihood.
        mu: (lanes,) Feel-Good weight.
        ties: the model of ties of a duel, or None where every answer ranks.
    """

    def __init__(
        self, table: SlateTable, prior: Prior, *, eta: FloatArray, mu: FloatArray, ties: TieModel | None = None
    ) -> None:
        self._terms = SlateTerms(
            features=table.features,
            placed=table.placed,
            rounds=table.rounds,
            model=_model_number(ties),
            parameter=_model_parameter(ties),
            sets=table.sets,
            repeats=table.repeats,
            adversary=table.adversary,
            eta=eta,
            mu=mu,
            precision=float(prior.precision),
            radius=float(prior.radius),
        )

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (lanes, chains) and gradients at theta (lanes, chains, dim), one chain per draw of the slate."""
        shape = self._terms.adversary.shape
        if theta.shape != shape:
            raise InvalidInputError(f"theta must be (lanes, choices, dim) = {shape}; got {theta.shape}.")
        values, gradients = np.empty(shape[:2]), np.empty(shape)
        slate_potential(np.ascontiguousarray(theta), self._terms, values, gradients)
        return values, gradients

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Hessian (lanes, dim, dim) of prior and ranking losses at theta (lanes, dim)."""
        lanes, dim = theta.shape
        # A ball alone curves nothing: its width stands in.
        base = max(self._terms.precision, 1.0 / self._terms.radius**2)
        curvature = np.repeat(base * np.eye(dim)[None], lanes, axis=0)
        slate_curvature(np.ascontiguousarray(theta), self._terms, curvature)
        return curvature


def _model_number(ties: TieModel | None) -> int:
    """The number that kernels know a model of ties by."""
    kinds = {Davidson: DAVIDSON, RaoKupper: RAO_KUPPER, BothBad: BOTH_BAD, type(None): NO_TIES}
    if type(ties) not in kinds:
        raise InvalidInputError(f"ties must be Davidson, RaoKupper or BothBad, or None; got {ties!r}.")
    return kinds[type(ties)]


def _model_parameter(ties: TieModel | None) -> float:
    match ties:
        case Davidson(nu=parameter) | RaoKupper(kappa=parameter) | BothBad(utility=parameter):
            return float(parameter)
    return 0.0
