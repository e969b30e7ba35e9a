"""What is returned by an offline run: draws, and how far to trust them.

R-hat and effective sample sizes are the rank-normalised ones of Vehtari et al. (2021), computed by arviz-stats for every
coordinate and for the energy. They tell whether chains agree and how many independent draws theirs are worth. They do
*not* see a bias that all chains share: that is what the reference posteriors and the calibration suite are for.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.posteriors.priors import MultivariateNormal
from duelist.typing import FloatArray

RHAT_LIMIT = 1.01
ESS_LIMIT = 400.0
ACCEPTANCE_LIMIT = 0.1
_SHOWN = 20  # coordinates that are printed
EXCESS_LIMIT = 5.0  # nats beyond half the dimension, the share of a draw


class PoorSamplingWarning(UserWarning):
    """The draws should not be used as they are; the message says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """How well the chains mixed.

    Attributes:
        rhat: (dim,) disagreement between chains; 1 is none, above 1.01 is too much.
        ess_bulk: (dim,) independent draws that the centre is worth; below 400 is too few.
        ess_tail: (dim,) independent draws that the 5 % and 95 % quantiles are worth; below 400 is too few.
        energy_rhat: the same for the potential of the draws.
        energy_ess: bulk effective size of the potential of the draws.
        acceptance: (chains,) mean acceptance probability; 1 for a sampler without an accept step.
        nats_above_best: how far the highest chain's median potential is above the best point that descents from other starts
            find; about half the dimension where all is well. 0 without a tilt: there is one peak then, and nobody looks.
    """

    rhat: FloatArray
    ess_bulk: FloatArray
    ess_tail: FloatArray
    energy_rhat: float
    energy_ess: float
    acceptance: FloatArray
    nats_above_best: float = 0.0

    @property
    def converged(self) -> bool:
        """Whether no chain stands far above a point that descents from other starts find."""
        return self.nats_above_best <= len(self.rhat) / 2 + EXCESS_LIMIT

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat, of coordinates and energy."""
        return float(max(self.rhat.max(), self.energy_rhat))

    @property
    def smallest_ess(self) -> float:
        """The smallest effective size, of coordinates (bulk and tail) and energy."""
        return float(min(self.ess_bulk.min(), self.ess_tail.min(), self.energy_ess))

    @property
    def complaints(self) -> list[str]:
        """What is bad, each with its value and its limit; empty for a run that can be used."""
        found = []
        # Written with `not`, so that a NaN (a chain that never moved) is bad too.
        rhat = self.worst_rhat
        if not rhat <= RHAT_LIMIT:
            found.append(f"R-hat is {rhat:.3f} (limit {RHAT_LIMIT:g}): the chains do not agree")
        ess = self.smallest_ess
        if not ess >= ESS_LIMIT:
            found.append(f"the smallest effective sample size is {ess:.0f} (limit {ESS_LIMIT:g})")
        lowest = float(self.acceptance.min())
        if not lowest >= ACCEPTANCE_LIMIT:
            found.append(f"a chain accepted {lowest:.1%} of its proposals (limit {ACCEPTANCE_LIMIT:.0%})")
        if not self.converged:
            limit = len(self.rhat) / 2 + EXCESS_LIMIT
            found.append(
                f"a chain stands {self.nats_above_best:.0f} nats above a point that descent finds (limit {limit:g}): it missed "
                f"a peak of the posterior"
            )
        return found


@dataclass(frozen=True, kw_only=True)
class PosteriorDraws:
    """Draws from a posterior.

    Attributes:
        draws: (chains, draws, dim).
        energy: (chains, draws) potential of each draw, -log density up to a constant.
        diagnostics: how well the chains mixed.
        sampler: who drew them.
        exact: whether the sampler's draws have the posterior as their limit, and its chains passed the check against descents.
        names: of the coordinates; their numbers where nobody named them.
        effects: draws of what else moves the votes, where that was asked for: style, position, slopes of voters, their spread.
    """

    draws: FloatArray = field(repr=False)
    energy: FloatArray = field(repr=False)
    diagnostics: Diagnostics = field(repr=False)
    sampler: str
    exact: bool
    names: tuple[str, ...] = ()
    effects: PosteriorDraws | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", tuple(map(str, range(self.draws.shape[2]))))

    @property
    def flat(self) -> FloatArray:
        """(chains * draws, dim) the draws of all chains in one table."""
        return self.draws.reshape(-1, self.draws.shape[-1])

    @property
    def mean(self) -> FloatArray:
        """(dim,) posterior mean."""
        return np.asarray(self.flat.mean(axis=0))

    @property
    def sd(self) -> FloatArray:
        """(dim,) posterior standard deviation."""
        return np.asarray(self.flat.std(axis=0, ddof=1))

    def interval(self, level: float = 0.9) -> FloatArray:
        """(dim, 2) the central interval that holds each coordinate with probability `level`."""
        finite_number("level", level, above=0.0, at_most=1.0)
        return np.asarray(np.quantile(self.flat, [0.5 - level / 2, 0.5 + level / 2], axis=0).T)

    def as_prior(self) -> MultivariateNormal:
        """The Gaussian with the mean and covariance of these draws, to be the prior of the next table."""
        return MultivariateNormal(self.mean, np.atleast_2d(np.cov(self.flat, rowvar=False)))

    def predict(self, first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
        """Posterior probability that the first candidate wins: the mean over draws of the logistic of <theta, first - second>.

        Args:
            first: (dim,) or (n, dim) features.
            second: the same of the other candidates; one candidate may stand against many.

        Returns:
            One number, () or (n,).
        """
        contrasts = self._features("first", first) - self._features("second", second)
        return np.asarray(expit(contrasts @ self.flat.T).mean(axis=-1))

    def ranking(self, features: npt.ArrayLike) -> list[Ranked]:
        """Candidates (n, dim) by posterior mean utility, best first, each with its 90 % interval and chance to be the best."""
        utilities = self._features("features", features, ndim=2) @ self.flat.T
        best = np.bincount(utilities.argmax(axis=0), minlength=len(utilities)) / utilities.shape[1]
        low, high = np.quantile(utilities, [0.05, 0.95], axis=1)
        means = utilities.mean(axis=1)
        return [
            Ranked(int(row), float(means[row]), float(low[row]), float(high[row]), float(best[row]))
            for row in np.argsort(-means)
        ]

    def to_arviz(self) -> Any:
        """The draws as ArviZ has them: variable `theta` with the coordinate `feature`, and the energy among the statistics."""
        if importlib.util.find_spec("arviz_base") is None:
            raise MissingArvizError('to_arviz needs arviz-base, which is not installed. Run: pip install "duelist[arviz]"')
        return importlib.import_module("arviz_base").from_dict(
            {"posterior": {"theta": self.draws}, "sample_stats": {"energy": self.energy}},
            dims={"theta": ["feature"]},
            coords={"feature": list(self.names)},
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """(chains, draws, dim), for NumPy."""
        return np.array(self.draws, dtype=dtype) if copy is not False else np.asarray(self.draws, dtype=dtype)

    def __str__(self) -> str:
        found = self.diagnostics
        chains, draws, _ = self.draws.shape
        columns = (self.mean, self.sd, *self.interval(0.9).T, found.rhat, found.ess_bulk, found.ess_tail)
        cells = [["theta", "mean", "sd", "5 %", "95 %", "R-hat", "ESS bulk", "ESS tail"]]
        for name, *numbers in zip(self.names, *columns, strict=True):
            cells.append([name, *(f"{x:.3f}" for x in numbers[:5]), *(f"{x:.0f}" for x in numbers[5:])])
        hidden = len(cells) - 1 - _SHOWN
        shown = cells if hidden <= 0 else cells[: _SHOWN + 1]
        widths = [max(len(row[i]) for row in shown) for i in range(len(shown[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in shown]
        more = [f"... and {hidden} more coordinates"] if hidden > 0 else []
        trust = "; ".join(found.complaints) or "the diagnostics have nothing to complain of"
        kind = "exact" if self.exact else "approximate"
        return "\n".join([f"{chains} chains of {draws} draws by {self.sampler!r} ({kind}); {trust}", *lines, *more])

    def _features(self, name: str, features: npt.ArrayLike, ndim: int | None = None) -> FloatArray:
        array = finite_array(name, features, "(dim,) or (n, dim)", np.ndim(features) if ndim is None else ndim)
        if array.ndim not in (1, 2) or array.shape[-1] != self.draws.shape[2]:
            raise InvalidInputError(
                f"{name} must be features of length {self.draws.shape[2]}, (dim,) or (n, dim); got {array.shape}."
            )
        return array


class Ranked(NamedTuple):
    """A candidate in a ranking: its row, mean utility with a 90 % interval, and probability to be the best."""

    row: int
    mean: float
    low: float
    high: float
    probability_best: float


class MissingArvizError(DuelistError, ImportError):
    """ArviZ was asked for, and is not installed."""


def diagnose(draws: FloatArray, energy: FloatArray, acceptance: FloatArray) -> Diagnostics:
    """Diagnostics of draws (chains, draws, dim) with energy (chains, draws)."""
    # Only the NumPy part of arviz-stats, on first use: it brings scipy.signal, which takes longer to import than duelist.
    array_stats: Any = importlib.import_module("arviz_stats.base").array_stats

    columns = np.concatenate([draws, energy[..., None]], axis=2)
    # Chains that stand still have no variance: the result is NaN, which `complaints` reports in words.
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rhat = np.asarray(array_stats.rhat(columns, chain_axis=0, draw_axis=1))
        bulk = np.asarray(array_stats.ess(columns, chain_axis=0, draw_axis=1, method="bulk"))
        tail = np.asarray(array_stats.ess(columns, chain_axis=0, draw_axis=1, method="tail", prob=(0.05, 0.95)))
    return Diagnostics(
        rhat=rhat[:-1],
        ess_bulk=bulk[:-1],
        ess_tail=tail[:-1],
        energy_rhat=float(rhat[-1]),
        energy_ess=float(bulk[-1]),
        acceptance=acceptance,
    )


def warn_if_poor(diagnostics: Diagnostics, advice: str, stacklevel: int) -> None:
    """Warn when a run should not be used as it is."""
    complaints = diagnostics.complaints
    if complaints:
        warnings.warn(f"{'; '.join(complaints)}. {advice}", PoorSamplingWarning, stacklevel=stacklevel + 1)
