"""The potential of a posterior over answered slates, for linear utilities.

U_j(theta) = precision / 2 |theta|^2 + eta sum_i -log P(answer_i | theta)
             - mu sum_i ( max_{a in A_i} <theta, phi(a)> - <theta, mean of the candidates of the other draws> )
"""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.core.slates import SlateTable
from duelist.posteriors.priors import Prior
from duelist.posteriors.slate_kernels import BOTH_BAD, DAVIDSON, NO_TIES, RAO_KUPPER, slate_curvature, slate_potential
from duelist.preferences.ties import BothBad, Davidson, RaoKupper

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
        self.table, self.prior, self.eta, self.mu = table, prior, eta, mu
        self._model, self._parameter = _coded(ties)

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (lanes, chains) and gradients at theta (lanes, chains, dim), one chain a draw of the slate."""
        table = self.table
        lanes, choices, dim = table.adversary.shape
        if theta.shape != (lanes, choices, dim):
            raise InvalidInputError(f"theta must be (lanes, choices, dim) = {(lanes, choices, dim)}; got {theta.shape}.")
        values, gradients = np.empty((lanes, choices)), np.empty(theta.shape)
        slate_potential(
            np.ascontiguousarray(theta),
            table.features,
            table.placed,
            table.rounds,
            self._model,
            self._parameter,
            table.sets,
            table.repeats,
            table.adversary,
            self.eta,
            self.mu,
            float(self.prior.precision),
            float(self.prior.radius),
            values,
            gradients,
        )
        return values, gradients

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Hessian (lanes, dim, dim) of prior and ranking losses at theta (lanes, dim)."""
        lanes, dim = theta.shape
        # A ball alone curves nothing: its width stands in.
        base = max(float(self.prior.precision), 1.0 / float(self.prior.radius) ** 2)
        curvature = np.repeat(base * np.eye(dim)[None], lanes, axis=0)
        table = self.table
        slate_curvature(np.ascontiguousarray(theta), table.features, table.placed, table.rounds, self.eta, curvature)
        return curvature


def _coded(ties: TieModel | None) -> tuple[int, float]:
    """The model as a kernel takes it: a number for the kind, and its parameter."""
    if ties is None:
        return NO_TIES, 0.0
    if isinstance(ties, Davidson):
        return DAVIDSON, float(ties.nu)
    if isinstance(ties, RaoKupper):
        return RAO_KUPPER, float(ties.kappa)
    if isinstance(ties, BothBad):
        return BOTH_BAD, float(ties.utility)
    raise InvalidInputError(f"ties must be Davidson, RaoKupper or BothBad, or None; got {ties!r}.")
