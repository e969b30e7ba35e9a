"""Sample a posterior from a table of comparisons: no bandit, no rounds.

The potential is the one of FGTS.CDB, term by term, so a table of duels and their action sets checks the paper's posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.history.statistics import Statistics
from duelist.kernels.potential import Tilt
from duelist.posteriors.linear import LinearPotential, finite_tilt, likelihood_from
from duelist.posteriors.priors import Gaussian, MultivariateNormal, Prior, check_prior
from duelist.posteriors.table import TablePotential, table_loss
from duelist.samplers.base import Sampler
from duelist.samplers.chains import Run, run_chains
from duelist.samplers.curvature import Curvature, curvature_of_table
from duelist.samplers.diagnostics import PosteriorDraws, diagnose, warn_if_poor
from duelist.samplers.effects import VoteEffects, lay_out_effects
from duelist.samplers.mala import MALA
from duelist.samplers.peaks import excess_energy
from duelist.samplers.registry import sampler_named
from duelist.samplers.voters import RunSettings, sample_with_voters, split_effects, voter_names
from duelist.typing import FloatArray

_LONG_TABLE = 4_000  # rows times chains from which a step in NumPy is mostly arithmetic
_SHORT_RUN = 400_000_000  # rows times chains times steps up to which NumPy is done in a few seconds


@dataclass(frozen=True, kw_only=True)
class FeelGood:
    """The Feel-Good tilt of a table: mu * sum_i ( max_{a in A_i} <theta, phi(a)> - <theta, adversary_i> ) is added to log p.

    Args:
        mu: weight, at least 0.
        action_sets: (n, n_arms, dim) what was offered in each row of the table, or (n_arms, dim) for one set in all.
        adversaries: (n, dim) features of the arm that the other draw played, row by row.
    """

    mu: float
    action_sets: npt.ArrayLike
    adversaries: npt.ArrayLike


def sample_posterior(
    contrasts: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    *,
    prior: Prior | MultivariateNormal = Gaussian(),  # noqa: B008 - frozen
    eta: float = 1.0,
    feel_good: FeelGood | None = None,
    effects: VoteEffects | None = None,
    sampler: str | Sampler = "mala",
    chains: int = 4,
    draws: int = 1000,
    warmup: int = 200,
    max_thin: int = 32,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> PosteriorDraws:
    """Draw from the posterior of theta given a table of comparisons.

    p(theta) ~ p_0(theta) prod_i s(y_i <theta, z_i>)^eta, s the logistic sigmoid, times the Feel-Good tilt if there is one.

    Args:
        contrasts: (n, dim) features of the first candidate minus features of the second, one row per comparison.
        outcomes: (n,) +1 where the first won and -1 where it lost; or (n, 2) counts [wins, losses] of the first, and
            row i then stands for wins + losses comparisons, also in the Feel-Good term. A tie is half a win and half a loss.
        prior: `Gaussian`, `UniformBall`, `GaussianBall`, or `MultivariateNormal(mean, covariance)`, such as `as_prior()` of
            an earlier result.
        eta: temper of the likelihood; 1 is Bayes.
        feel_good: the Feel-Good tilt, or None.
        effects: what else moves the votes: the side, the style of the answers, how reliable each voter is. Their draws are in
            `effects` of the result. The prior must be normal then, and there can be no tilt.
        sampler: a name (see the registry) or a sampler object. "mala" is exact.
        chains: independent chains, each started from its own draw of a Gaussian at the mode, twice as wide as the posterior.
        draws: kept draws per chain; a sampler takes all its `steps` between two of them.
        warmup: draws that each chain makes first, and that are thrown away.
        max_thin: where chains mix slowly, as on a ball in high dimension or with a strong tilt, an exact sampler takes up to
            this many times its `steps` between two draws; 1 for never more than its `steps`.
        seed: names all random numbers.
        names: of the coordinates of theta, for tables and `to_arviz`; numbers without them.

    Warns:
        PoorSamplingWarning: when R-hat, effective sample sizes or acceptance say that the draws should not be used.

    Example:
        >>> wins = [[30, 10], [25, 15]]  # model A beat C 30 : 10, and B beat C 25 : 15
        >>> posterior = sample_posterior([[1.0, 0.0], [0.0, 1.0]], wins)
        >>> bool(posterior.mean[0] > posterior.mean[1] > 0)
        True

    Reference: the posterior of FGTS.CDB is Algorithm 1 of Li, Zhao & Gu.
    """
    if not isinstance(prior, MultivariateNormal):
        check_prior(prior)
    table = _checked_contrasts(contrasts)
    wins, losses = _checked_outcomes(outcomes, len(table))
    finite_number("eta", eta, above=0.0)
    whole_number("chains", chains, at_least=1)
    whole_number("draws", draws, at_least=8)
    whole_number("warmup", warmup, at_least=0)
    whole_number("max_thin", max_thin, at_least=1)
    engine = sampler_named(sampler) if isinstance(sampler, str) else sampler
    labels, n_own = _checked_names(names, table.shape[1]), table.shape[1]
    name = sampler if isinstance(sampler, str) else type(sampler).__name__
    if effects is not None:
        if feel_good is not None:
            raise InvalidInputError("the Feel-Good tilt knows nothing of effects; got both. Leave one of them out.")
        columns = lay_out_effects(effects, table, prior)
        table, prior, labels = columns.rows, columns.prior, (*labels, *columns.names)
        if columns.who is not None:
            settings = RunSettings(chains, draws, warmup, seed, max_thin)
            voters = sample_with_voters(columns, effects, (eta * wins, eta * losses), engine, settings)
            return split_effects(_finish(voters, (*labels, *voter_names(columns, effects)), name, engine), n_own)
    dim, observations = table.shape[1], int((wins + losses).sum())
    whitening = None
    if isinstance(prior, MultivariateNormal):
        whitening, prior = _checked_whitening(prior, dim), Gaussian()
        table = table @ whitening.factor
    statistics = _statistics(table, wins, losses)
    if whitening is not None:
        statistics = _lean(statistics, whitening.pull / eta)
    likelihood = likelihood_from(statistics, np.array([float(eta)]))
    tilt = None if feel_good is None else _checked_tilt(feel_good, wins + losses, dim, whitening)
    potential = LinearPotential(prior, likelihood, tilt, chains=1, observations=observations)
    loss = table_loss(statistics, float(eta))
    shape = curvature_of_table(loss, potential)
    if feel_good is None and _suits_numpy(engine, rows=chains * int(statistics.n_rows[0]), rounds=warmup + draws):
        potential = TablePotential(loss, prior, lanes=chains, dim=dim, observations=observations)
    run = run_chains(engine, potential, shape, chains=chains, draws=draws, warmup=warmup, seed=seed, max_thin=max_thin)
    if tilt is not None:
        excess = np.median(run.energy, axis=1).max() - _lowest(potential, shape)
        run = run._replace(diagnostics=replace(run.diagnostics, nats_above_best=float(excess)))
    if whitening is not None:
        path = run.draws @ whitening.factor.T
        found = diagnose(path, run.energy, run.diagnostics.acceptance)
        run = run._replace(draws=path, diagnostics=replace(found, nats_above_best=run.diagnostics.nats_above_best))
    finished = _finish(run, labels, name, engine)
    return finished if effects is None else split_effects(finished, n_own)


def _finish(run: Run, names: tuple[str, ...], sampler: str, engine: Sampler) -> PosteriorDraws:
    """The draws of a run, with a warning where they should not be used."""
    warn_if_poor(run.diagnostics, "Ask for more draws or a longer warm-up, or take another sampler.", stacklevel=3)
    exact = engine.exact and run.diagnostics.converged
    return PosteriorDraws(
        draws=run.draws, energy=run.energy, diagnostics=run.diagnostics, sampler=sampler, exact=exact, names=names
    )


class Whitening(NamedTuple):
    """theta = L u: what makes a Gaussian prior with a mean and a covariance standard normal.

    With covariance L L^T, -log N(theta; mean, L L^T) = |u|^2 / 2 - <u, L^-1 mean> + constant: a standard normal prior on u and
    a linear pull.

    Attributes:
        factor: (dim, dim) L.
        pull: (dim,) L^-1 mean.
    """

    factor: FloatArray
    pull: FloatArray


def _checked_whitening(prior: MultivariateNormal, dim: int) -> Whitening:
    if len(np.asarray(prior.mean)) != dim:
        raise InvalidInputError(
            f"the prior's mean must have the length of a contrast, {dim}; got {len(np.asarray(prior.mean))}."
        )
    return Whitening(prior.factor, np.linalg.solve(prior.factor, np.asarray(prior.mean)))


def _lean(statistics: Statistics, pull: FloatArray) -> Statistics:
    """The statistics with -<u, pull> in their log loss.

    A contrast that was shown n times and lost l times has the loss n log(1 + e^-u) + l u. Shown never and lost -1 times it is
    the linear term -u, which every sampler then takes for data.
    """
    strength = float(np.linalg.norm(pull))
    if strength == 0.0:
        return statistics
    return statistics._replace(
        contrasts=np.concatenate([statistics.contrasts, (pull / strength)[None, :, None]], axis=2),
        totals=np.concatenate([statistics.totals, [[0.0]]], axis=1),
        losses=np.concatenate([statistics.losses, [[-strength]]], axis=1),
        n_rows=statistics.n_rows + 1,
    )


def _checked_names(names: Sequence[str] | None, dim: int) -> tuple[str, ...]:
    found = tuple(map(str, range(dim) if names is None else names))
    if len(found) != dim or len(set(found)) != dim:
        raise InvalidInputError(
            f"names must be {dim} different ones, one per coordinate; got {len(found)}: {', '.join(found)}."
        )
    return found


def _lowest(potential: LinearPotential, shape: Curvature) -> float:
    """The potential at the heaviest peak that descents from other starts find."""
    at = shape.mode[:, None].copy()
    terms = potential.compiled_terms
    return float(potential.value(at)[0, 0] - excess_energy(terms, shape, at)[0, 0])


def _suits_numpy(engine: Sampler, *, rows: int, rounds: int) -> bool:
    """Whether the steps should be taken in NumPy, for all chains together, in place of one kernel call per chain.

    Long tables fill NumPy's vectors, so it is about as fast; and in a short run compiling would take longer than the run. The
    draws agree to rounding.
    """
    return isinstance(engine, MALA) and rows >= _LONG_TABLE and rows * rounds * engine.steps <= _SHORT_RUN


def _checked_contrasts(contrasts: npt.ArrayLike) -> FloatArray:
    table = finite_array("contrasts", contrasts, "(n, dim)", 2)
    if table.shape[1] < 1:
        raise InvalidInputError(f"contrasts must be (n, dim) with dim >= 1; got {table.shape}. Give at least one feature.")
    return table


def _checked_outcomes(outcomes: npt.ArrayLike, n: int) -> tuple[FloatArray, FloatArray]:
    """Wins and losses of the first candidate, (n,) each."""
    if np.ndim(outcomes) == 2:
        counts = finite_array("outcomes", outcomes, "(n,) or (n, 2)", 2)
        if counts.shape != (n, 2):
            raise InvalidInputError(f"outcomes must be ({n},) signs or ({n}, 2) counts for {n} contrasts; got {counts.shape}.")
        odd = (counts < 0) | (2.0 * counts != np.floor(2.0 * counts)) | (counts.sum(axis=1) % 1.0 != 0.0)[:, None]
        if odd.any():
            raise InvalidInputError(
                f"win counts must be whole numbers of at least 0, with half a win and half a loss for a tie; got "
                f"{counts[odd.any(axis=1)][0]}. Temper the likelihood with eta, not with fractions of a win."
            )
        return counts[:, 0].copy(), counts[:, 1].copy()
    signs = finite_array("outcomes", outcomes, "(n,) or (n, 2)", 1)
    if signs.shape != (n,):
        raise InvalidInputError(
            f"outcomes must be ({n},) signs or ({n}, 2) counts for {n} contrasts; got {signs.shape}. Give one per contrast."
        )
    if not (np.abs(signs) == 1.0).all():
        raise InvalidInputError(
            f"outcomes must be +1 (the first won) or -1 (it lost); got {signs[np.abs(signs) != 1.0][0]:g}. "
            f"For zeros and ones use 2 * outcome - 1; for ties give counts, (n, 2), with [0.5, 0.5] for a tie."
        )
    return (signs > 0).astype(np.float64), (signs < 0).astype(np.float64)


def _statistics(table: FloatArray, wins: FloatArray, losses: FloatArray) -> Statistics:
    """Exact compact statistics: a row and its negative, however often they occur, are one contrast."""
    n, dim = table.shape
    leading = np.take_along_axis(table, (table != 0).argmax(axis=1)[:, None], axis=1)[:, 0] if n else np.zeros(0)
    sign = np.where(leading < 0, -1.0, 1.0)
    # Adding zero turns -0.0 into 0.0, which np.unique would count as another row.
    distinct, inverse = np.unique(table * sign[:, None] + 0.0, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    totals: FloatArray = np.bincount(inverse, weights=wins + losses, minlength=len(distinct)).astype(np.float64)
    lost: FloatArray = np.bincount(inverse, weights=np.where(sign > 0, losses, wins), minlength=len(distinct)).astype(
        np.float64
    )
    nothing = np.zeros((1, 0, dim, 0)), np.zeros(0), np.zeros((1, 2, dim))
    columns = np.ascontiguousarray(distinct.T)[None]
    return Statistics(columns, totals[None], lost[None], np.array([len(distinct)], dtype=np.int64), *nothing)


def _checked_tilt(feel_good: FeelGood, counts: FloatArray, dim: int, whitening: Whitening | None) -> Tilt:
    n = len(counts)
    mu = finite_number("mu", feel_good.mu, at_least=0.0)
    adversaries = finite_array("adversaries", feel_good.adversaries, "(n, dim)", 2)
    if adversaries.shape != (n, dim):
        raise InvalidInputError(
            f"adversaries must be ({n}, {dim}), one row per comparison; got {adversaries.shape}. "
            f"Give the features of the arm that the other draw played."
        )
    shape = np.shape(feel_good.action_sets)
    if len(shape) == 2:
        sets = finite_array("action_sets", feel_good.action_sets, "(n_arms, dim)", 2)[None]
        repeats = np.array([counts.sum()])
    else:
        table = finite_array("action_sets", feel_good.action_sets, "(n_arms, dim) or (n, n_arms, dim)", 3)
        if len(table) != n:
            raise InvalidInputError(
                f"action_sets must be (n_arms, dim) or ({n}, n_arms, dim), one set per comparison; got {shape}."
            )
        flat, inverse = np.unique(table.reshape(n, -1), axis=0, return_inverse=True)
        sets = flat.reshape(len(flat), *table.shape[1:])
        repeats = np.bincount(inverse.reshape(-1), weights=counts, minlength=len(flat))
    if sets.shape[1] < 1 or sets.shape[2] != dim:
        raise InvalidInputError(f"action_sets must hold arms of dimension {dim}, at least one per set; got {shape}.")
    if whitening is not None:
        sets, adversaries = sets @ whitening.factor, adversaries @ whitening.factor
    columns = np.ascontiguousarray(sets.transpose(0, 2, 1))[None]
    return finite_tilt(columns, repeats, (counts @ adversaries)[None, None], np.array([mu]))
