"""The log loss of a whole table of comparisons at several parameters at once, in NumPy.

With u = <theta, z> of a row that was shown n times and lost l times, the loss of the row is

    n log(1 + e^-u) + l u = n log(2 cosh(u / 2)) + (l - n / 2) u,   with slope   n / 2 tanh(u / 2) + (l - n / 2).

The part that is linear in u adds up to one vector for the table, so a row costs one exponential and one logarithm. A long table
is a few long vector operations, which NumPy does about as fast as a compiled loop, and there is nothing to compile first.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array, diags_array

from duelist.core.errors import InvalidInputError
from duelist.history.statistics import Statistics
from duelist.kernels.logistic import Likelihood
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.posteriors.priors import Prior
from duelist.typing import FloatArray

_MANY_ENTRIES = 1 << 19
_FULL = 8  # contrasts with more than dim / 8 entries are full


class TableLoss:
    """Tempered log loss of a table.

    Args:
        columns: (dim, n) contrasts, one per column.
        totals: (n,) how often each was shown.
        losses: (n,) how often its first candidate lost.
        eta: temper; 1 is the Bayesian likelihood.

    Example:
        >>> import numpy as np
        >>> table = TableLoss(np.array([[1.0, 2.0]]), np.array([3.0, 1.0]), np.array([1.0, 0.0]))
        >>> value, gradient = table.value_and_gradient(np.zeros((1, 1)))
        >>> round(float(value[0]), 3), gradient.tolist()
        (2.773, [[-1.5]])
    """

    def __init__(self, columns: FloatArray, totals: FloatArray, losses: FloatArray, eta: float = 1.0) -> None:
        self._columns, self._weights = columns, eta * totals
        # Items as unit vectors: products of the entries that are there, and not of dim^2.
        mostly_zero = columns.size >= _MANY_ENTRIES and np.count_nonzero(columns) * _FULL < columns.size
        self._sparse = csr_array(columns) if mostly_zero else None
        with np.errstate(over="ignore", invalid="ignore"):  # features this large show in the first value
            self._half_rows = np.ascontiguousarray(0.5 * (self._weights * columns).T)
            self._linear: FloatArray = columns @ (eta * (losses - 0.5 * totals))

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        return len(self._weights)

    def value_and_gradient(self, theta: FloatArray, *, work: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Losses (k,) and gradients (k, dim) at theta (k, dim); `work` (4, at least k, n_rows) saves asking for memory."""
        first, second, third, fourth = (None,) * 4 if work is None else work[:, : len(theta)]
        logits = np.matmul(theta, self._columns, out=first)
        size = np.abs(logits, out=second)
        rest = np.negative(size, out=third)
        np.exp(rest, out=rest)
        rest += 1.0  # 1 + e^-|u|, which cannot overflow
        size *= 0.5
        size += np.log(rest, out=fourth)  # log(2 cosh(u / 2))
        np.divide(2.0, rest, out=rest)
        rest -= 1.0  # tanh(|u| / 2)
        slopes = np.copysign(rest, logits, out=rest)
        return size @ self._weights + theta @ self._linear, slopes @ self._half_rows + self._linear

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Curvature (dim, dim) at theta (dim,)."""
        small = np.exp(-np.abs(theta @ self._columns))
        curvature = self._weights * small / (1.0 + small) ** 2
        if self._sparse is not None:
            weighted = self._sparse @ diags_array(curvature)
            return np.asarray((weighted @ self._sparse.T).todense())
        return np.asarray((curvature * self._columns) @ self._columns.T)


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
        super().__init__(prior, empty_likelihood(lanes, dim), chains=1, observations=observations)
        self._table = table

    @property
    def needs_python(self) -> bool:
        """Kernels know nothing of the table."""
        return True

    @property
    def likelihood(self) -> Likelihood:
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
