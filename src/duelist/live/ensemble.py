"""Many chains, one draw each: a set of independent draws that follows a posterior as its data grow.

In coordinates theta = m + W' x, with m the mode of prior and likelihood and W'W the inverse of the curvature there, the
potential is |x|^2 / 2 + R(x), and R is small where there are many comparisons. A step is Langevin in its Crank-Nicolson form,

    x' = x - s g(x) + sqrt(1 - (1 - s)^2) xi,   xi ~ N(0, I),

g the gradient, cut to a length of 2 sqrt(dim), so that no chain in a steep tail overshoots and stands still. It is accepted
with its Metropolis-Hastings probability: MALA in another discretisation, exact, also under the wall of a ball. Where R is zero,
every step is accepted and s = 1 is a fresh draw.

From scratch the chains start at draws of the normal approximation and step until they no longer drift: so many chains show that
by themselves. After new comparisons they keep their x and get the new m and W. That moves them to where the posterior went, and
a step or two mend what is not normal about it.

All chains read the table of comparisons together: a step is two products of matrices. After a little growth only as many of
them step as it asks for, in turn. Beyond a stated number of distinct comparisons R is left out, as FGTS leaves it out: then x
is standard normal, and nothing of the table is read but the mode and the curvature.

Reference: Cotter, Roberts, Stuart & White (2013), pCNL.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.posteriors.table import TableLoss
from duelist.samplers.curvature import Curvature, curvature_of_table
from duelist.samplers.diagnostics import PoorSamplingWarning
from duelist.typing import FloatArray

_TARGET_ACCEPTANCE = 0.574  # of Langevin steps (Roberts & Rosenthal 1998)
_SMALLEST_MOVE = 0.002
_TWENTIETH = 0.05
_MUCH = 0.25  # growth from which chains step as from scratch
_STEP_FORGETS = 0.5  # of where a chain stood, in a step of s = 1: less than all, for the tails may be longer than a step
_KEPT_PER_TWENTIETH = 0.86  # of where chains stood, after the steps for a growth of a twentieth
_KEPT_FROM_SCRATCH = 0.15  # then as many steps again must show no drift
_NO_DRIFT = 2.0  # standard errors
_MOST_STEPS = 1000
_EXACT_ROWS = 2048  # distinct comparisons up to which all of them are read
_BLOCK = 2**17  # numbers that chains make of the table at a time: they fit the cache, which halves the time


@stored("ensemble")
class Ensemble(NamedTuple):
    """Chains, one draw each.

    Attributes:
        whitened: (n_draws, dim) where each stands, in coordinates in which the posterior is close to a standard normal.
        curvature: of the posterior, one lane: what makes those coordinates.
        move: s, adapted between steps: 1 forgets the place before.
        renewals: how often the chains have followed new data; it names the next random numbers.
    """

    whitened: FloatArray
    curvature: Curvature
    move: float
    renewals: int

    @property
    def theta(self) -> FloatArray:
        """(n_draws, dim) the draws."""
        return np.asarray(self.curvature.mode + self.whitened @ self.curvature.whitener[0])


class _Place(NamedTuple):
    """Where the chains stand: x (n, dim), the potential there (n,), and g (n, dim)."""

    x: FloatArray
    energy: FloatArray
    slope: FloatArray


class _Target:
    """The potential and g in whitened coordinates."""

    def __init__(self, table: TableLoss, prior: Prior, curvature: Curvature) -> None:
        self._table, self._prior, self._mode, self._whitener = table, prior, curvature.mode[0], curvature.whitener[0]
        self._block = max(_BLOCK // max(table.n_rows, 1), 8)
        self._work = np.empty((4, self._block, table.n_rows))

    def at(self, x: FloatArray) -> _Place:
        theta = self._mode + x @ self._whitener
        precision = float(self._prior.precision)
        squared = np.einsum("ni,ni->n", theta, theta)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is never moved to
            starts = range(0, len(theta), self._block)
            blocks = [self._table.value_and_gradient(theta[k : k + self._block], work=self._work) for k in starts]
            energy, gradient = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
            energy += 0.5 * precision * squared
            energy[squared > self._prior.radius**2] = np.inf
            slope = (gradient + precision * theta) @ self._whitener.T
            slope /= np.maximum(np.linalg.norm(slope, axis=1) / (2.0 * math.sqrt(x.shape[1])), 1.0)[:, None]
        return _Place(x, energy, slope)


def start_ensemble(potential: LinearPotential, *, n_draws: int, seed: int) -> Ensemble:
    """Draws from scratch: of the prior where there are no comparisons, else of the normal approximation, then many steps."""
    table = _table_of(potential)
    curvature = curvature_of_table(table, potential)
    generator = Streams(seed, [0]).generator("ensemble", 0)
    if potential.observations == 0:
        theta = np.array([potential.prior.sample(generator, potential.dim) for _ in range(n_draws)])
        return Ensemble(_whiten(theta, curvature), curvature, 1.0, 1)
    normal = Ensemble(generator.standard_normal((n_draws, potential.dim)), curvature, 1.0, 1)
    return _take_steps(table, potential, normal, generator, growth=math.inf)


def renew_ensemble(ensemble: Ensemble, potential: LinearPotential, *, news: int, seed: int) -> Ensemble:
    """The draws after `news` comparisons came or went: more steps the more there are, and no more than from scratch."""
    table = _table_of(potential)
    seen = ensemble.curvature.observations
    curvature = curvature_of_table(table, potential, start=ensemble.curvature.mode[0])
    growth = news / max(min(seen, potential.memory), 1.0)
    moved = ensemble._replace(curvature=curvature, renewals=ensemble.renewals + 1)
    generator = Streams(seed, [0]).generator("ensemble", 0, ensemble.renewals)
    return _take_steps(table, potential, moved, generator, growth=growth)


def _table_of(potential: LinearPotential) -> TableLoss:
    likelihood = potential.likelihood
    n = int(likelihood.n_rows[0])
    return TableLoss(
        likelihood.contrasts[0, :, :n], likelihood.totals[0, :n], likelihood.losses[0, :n], float(likelihood.eta[0])
    )


def _whiten(theta: FloatArray, curvature: Curvature) -> FloatArray:
    return np.asarray(np.linalg.solve(curvature.whitener[0].T, (theta - curvature.mode).T).T)


def _take_steps(
    table: TableLoss, potential: LinearPotential, ensemble: Ensemble, generator: np.random.Generator, *, growth: float
) -> Ensemble:
    """Step as far as the growth of the data asks for; after much growth, until nothing drifts."""
    keep = _KEPT_PER_TWENTIETH ** max(growth / _TWENTIETH, 1.0) if growth < _MUCH else 0.0
    if table.n_rows > _EXACT_ROWS and math.isinf(potential.prior.radius):
        noise = generator.standard_normal(ensemble.whitened.shape)
        return ensemble._replace(whitened=keep * ensemble.whitened + math.sqrt(1.0 - keep * keep) * noise)
    target = _Target(table, potential.prior, ensemble.curvature)
    if growth < _MUCH:
        return _step_some(target, potential.prior, ensemble, generator, keep)
    place = target.at(_inside(ensemble, potential.prior))
    _check_finite(place)
    walk = _Walk(target, place, ensemble.move, generator)
    walk.forget(_KEPT_FROM_SCRATCH)
    while walk.drifts_in(walk.steps):
        if walk.steps >= _MOST_STEPS:
            warnings.warn(
                f"the draws still drift after {walk.steps} steps. Later renewals go on from here; check with "
                f"duelist.sample_posterior, or use a prior that is closer to what can be.",
                PoorSamplingWarning,
                stacklevel=4,
            )
            break
    return ensemble._replace(whitened=walk.place.x, move=walk.move)


def _step_some(target: _Target, prior: Prior, ensemble: Ensemble, generator: np.random.Generator, keep: float) -> Ensemble:
    """Step with as many of the chains, the next in turn, as leave that share of where all of them stood in one step each."""
    x = _inside(ensemble, prior)
    n = len(x)
    part = min(n, math.ceil(n * (1.0 - keep) / (_STEP_FORGETS * ensemble.move * _TARGET_ACCEPTANCE)))
    turn = (np.arange(part) + (ensemble.renewals - 1) * part) % n
    place = target.at(x[turn])
    _check_finite(place)
    walk = _Walk(target, place, ensemble.move, generator)
    walk.forget(1.0 - (1.0 - keep) * n / part)
    moved = x.copy()
    moved[turn] = walk.place.x
    return ensemble._replace(whitened=moved, move=walk.move)


def _check_finite(place: _Place) -> None:
    if not np.isfinite(place.energy).all():
        raise NonFiniteError(
            "the potential is not finite where a chain stands. Features this large overflow; scale them so that "
            "|<theta, z>| stays below a few hundred."
        )


class _Walk:
    """Chains on their way."""

    def __init__(self, target: _Target, place: _Place, move: float, generator: np.random.Generator) -> None:
        self.place, self.move, self.steps = place, move, 0
        self._target, self._generator = target, generator

    def forget(self, keep: float) -> None:
        """Step until only that share of where the chains stood is left: a chain that is never moved keeps all of it."""
        kept = np.ones(len(self.place.x))
        while kept.mean() > keep and self.steps < _MOST_STEPS:
            share = 1.0 - _STEP_FORGETS * self.move
            kept[self._advance()] *= share

    def drifts_in(self, steps: int) -> bool:
        """Take so many steps, and say whether the spread or the energy of the chains was another before."""
        before = self._summaries()
        for _ in range(min(max(steps, 1), max(_MOST_STEPS - self.steps, 1))):
            self._advance()
        change = self._summaries() - before
        error = change.std(axis=1) / math.sqrt(change.shape[1])
        return bool((np.abs(change.mean(axis=1)) > _NO_DRIFT * error).any())

    def _advance(self) -> npt.NDArray[np.bool_]:
        self.place, taken, acceptance = _step(self._target, self.place, self.move, self._generator)
        self.move = min(max(self.move * math.exp(acceptance - _TARGET_ACCEPTANCE), _SMALLEST_MOVE), 1.0)
        self.steps += 1
        return taken

    def _summaries(self) -> FloatArray:
        return np.stack([np.einsum("ni,ni->n", self.place.x, self.place.x), self.place.energy])


def _step(
    target: _Target, place: _Place, move: float, generator: np.random.Generator
) -> tuple[_Place, npt.NDArray[np.bool_], float]:
    """One step of all chains, which of them moved, and the mean acceptance probability."""
    x, energy, slope = place
    width = math.sqrt(move * (2.0 - move))
    noise = generator.standard_normal(x.shape)
    proposal = target.at(x - move * slope + width * noise)
    back = (x - proposal.x + move * proposal.slope) / width
    with np.errstate(over="ignore", invalid="ignore"):
        log_ratio = energy - proposal.energy + 0.5 * (np.einsum("ni,ni->n", noise, noise) - np.einsum("ni,ni->n", back, back))
    log_ratio[~(proposal.energy < np.inf) | np.isnan(log_ratio)] = -np.inf  # outside the support, or not a number
    taken = np.log(generator.random(len(x))) < log_ratio
    column = taken[:, None]
    moved = _Place(
        np.where(column, proposal.x, x), np.where(taken, proposal.energy, energy), np.where(column, proposal.slope, slope)
    )
    return moved, taken, float(np.exp(np.minimum(log_ratio, 0.0)).mean())


def _inside(ensemble: Ensemble, prior: Prior) -> FloatArray:
    """The chains' places; those outside the prior's ball are pulled into it."""
    if math.isinf(prior.radius):
        return ensemble.whitened
    theta = ensemble.theta
    length = np.linalg.norm(theta, axis=1)
    outside = length > prior.radius
    if not outside.any():
        return ensemble.whitened
    # A hair inside, so that rounding cannot leave it outside.
    theta[outside] *= (prior.radius / length[outside] * (1.0 - 1e-9))[:, None]
    return np.where(outside[:, None], _whiten(theta, ensemble.curvature), ensemble.whitened)
