"""The potential of one table of comparisons, evaluated by NumPy for all chains together: nothing is compiled."""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.core.statistics import Statistics
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms
from duelist.posteriors.priors import Prior
from duelist.posteriors.terms import PriorTerm
from duelist.preferences.table_loss import TableLoss


class TablePotential(LinearPotential):
    """Prior and likelihood of one table, the same in every lane.

    Args:
        table: the log loss of the comparisons.
        prior: on theta.
        lanes: chains that move together, each in a lane of its own.
        dim: length of theta.
        observations: number of comparisons.
    """

    def __init__(self, table: TableLoss, prior: Prior, *, lanes: int, dim: int, observations: int) -> None:
        super().__init__(PriorTerm(prior), lanes=lanes, chains=1, dim=dim, observations=observations)
        self._table = table

    @property
    def outside_kernels(self) -> bool:
        """Kernels know nothing of the table."""
        return True

    @property
    def packed_but_open_sets(self) -> LinearTerms:
        """Refused: a kernel would take the prior for the whole posterior."""
        raise InvalidInputError("the potential of a table is evaluated by NumPy; kernels need a LinearPotential of its terms.")

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both at theta (lanes, 1, dim); infinite, with no meaning of the gradient, outside the prior's ball."""
        flat = theta[:, 0]
        squared = np.einsum("li,li->l", flat, flat)
        value, gradient = self._table.value_and_gradient(flat)
        value += 0.5 * self.prior.precision * squared
        gradient += self.prior.precision * flat
        value[squared > self.prior.radius**2] = np.inf
        return value[:, None], gradient[:, None]


def table_loss(statistics: Statistics, eta: float) -> TableLoss:
    """The log loss of the first lane of some statistics."""
    n = int(statistics.n_rows[0])
    columns, totals, losses = statistics.contrasts[0, :, :n], statistics.totals[0, :n], statistics.losses[0, :n]
    return TableLoss(columns, totals, losses, eta)
