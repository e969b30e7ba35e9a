"""Draws where every voter has a slope: coefficients given slopes by any sampler, slopes given coefficients, and their spread.

In whitened coordinates u of the coefficients the vote of voter v has the log-odds r_v <u, J_i> + <u, B_i>: J_i is what is
judged, B_i what stands beside it. A sweep moves

1. u given the slopes: a linear model, whose contrasts are r_v J_i + B_i, by `advance` of the sampler;
2. every slope given u: one number per voter, by a Newton step with noise and an accept step;
3. the spread tau given the slopes, a random walk on log tau;
4. tau with all slopes, r_v - 1 and tau multiplied by one factor: this moves where 3. cannot, when votes say little of slopes;
5. all slopes against what they multiply, r_v / f and f u: the votes do not see that, and 1. and 2. alone hardly move so.

Every part leaves the joint posterior as it is, so the draws are as exact as the sampler of 1.

Reference: 3. and 4. are the two parametrisations of Papaspiliopoulos, Roberts & Skold (2007), taken in turn.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit

from duelist.core.streams import Streams
from duelist.kernels.logistic import Likelihood
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.people import PeopleFit, VoteTable, fit_people
from duelist.posteriors.priors import Gaussian
from duelist.preferences.logistic import log_loss
from duelist.samplers.base import Sampler
from duelist.samplers.chains import Run, may_thin, next_thin
from duelist.samplers.curvature import fit_curvature, unknown_curvature
from duelist.samplers.diagnostics import PosteriorDraws, diagnose
from duelist.samplers.effects import EffectColumns, VoteEffects
from duelist.typing import FloatArray, IntArray

_WALKS = 3  # moves per sweep of what needs no look at the votes
_FACTORS = (0.1, 0.3, 1.0)  # widths of the moves of tau with all slopes, on the log scale, one drawn for each
_EXCHANGES = (0.03, 0.1, 0.3)  # the same of the moves of slopes against coefficients


class SlopeTable(NamedTuple):
    """Votes, sorted by voter.

    Attributes:
        judged: (n, p) J, in whitened coordinates.
        beside: (n, p) B.
        totals: (n,) how often each row was voted on, tempered.
        losses: (n,) how often the first lost.
        voters: (n,) numbers of the voters, ascending.
        pull: (p,) the prior is N(pull, I).
    """

    judged: FloatArray
    beside: FloatArray
    totals: FloatArray
    losses: FloatArray
    voters: IntArray
    pull: FloatArray

    @property
    def starts(self) -> IntArray:
        """(n_voters,) the first row of each."""
        return np.searchsorted(self.voters, np.arange(int(self.voters[-1]) + 1))


class RunSettings(NamedTuple):
    """As in `sample_posterior`."""

    chains: int
    draws: int
    warmup: int
    seed: int
    max_thin: int


def sample_with_voters(
    columns: EffectColumns, effects: VoteEffects, counts: tuple[FloatArray, FloatArray], sampler: Sampler, settings: RunSettings
) -> Run:
    """Draws of all coefficients, the slopes and, where it is learnt, the spread, side by side in the order of `voter_names`.

    Args:
        columns: the design of the table.
        effects: the prior of the slopes.
        counts: wins and losses (n,) of the first, tempered.
        sampler: moves the coefficients.
        settings: of the run.
    """
    assert columns.who is not None
    # Votes of one voter on one row are counted together, and sorted by voter.
    keys, inverse = np.unique(np.column_stack([columns.who, columns.rows]), axis=0, return_inverse=True)
    wins, losses = (np.bincount(inverse.reshape(-1), column, len(keys)).astype(np.float64) for column in counts)
    who, rows, factor = keys[:, 0].astype(np.int64), keys[:, 1:], columns.prior.factor
    deviation = np.sqrt(np.diag(np.asarray(columns.prior.covariance)))
    votes = VoteTable(
        csr_array(rows), columns.judged, np.zeros_like(columns.judged), deviation, wins, losses, who, len(columns.voters)
    )
    table = SlopeTable(
        judged=np.where(columns.judged, rows, 0.0) @ factor,
        beside=np.where(columns.judged, 0.0, rows) @ factor,
        totals=wins + losses,
        losses=losses,
        voters=who,
        pull=np.linalg.solve(factor, np.asarray(columns.prior.mean)),
    )
    walk = _Walk(table, effects, sampler, Streams(settings.seed, range(settings.chains)))
    standing = walk.start(fit_people(votes))
    for _ in range(settings.warmup):
        standing = walk.sweep(standing)
    thin, helps = 1, may_thin(sampler, settings.chains * settings.draws)
    while True:
        standing, run = walk.trace(standing, settings.draws, thin)
        if not run.diagnostics.complaints or thin >= settings.max_thin or not helps:
            break
        thin = min(next_thin(thin, run.diagnostics), settings.max_thin)
    p = rows.shape[1]
    return run._replace(draws=np.concatenate([run.draws[..., :p] @ factor.T, run.draws[..., p:]], axis=2))


def voter_names(columns: EffectColumns, effects: VoteEffects) -> tuple[str, ...]:
    """What `sample_with_voters` draws after the coefficients."""
    slopes = tuple(f"slope of {voter}" for voter in columns.voters)
    return slopes if effects.spread else (*slopes, "spread")


def split_effects(found: PosteriorDraws, dim: int) -> PosteriorDraws:
    """Draws of theta, the first `dim` coordinates, with those of the effects beside them."""
    effects = _coordinates(found, slice(dim, None))
    return replace(_coordinates(found, slice(dim)), effects=effects)


def _coordinates(found: PosteriorDraws, part: slice) -> PosteriorDraws:
    own = found.diagnostics
    numbers: dict[str, Any] = {name: getattr(own, name)[part] for name in ("rhat", "ess_bulk", "ess_tail")}
    return replace(found, draws=found.draws[..., part], names=found.names[part], diagnostics=replace(own, **numbers))


class _Chains(NamedTuple):
    """Where all chains stand: `state` of the sampler, slopes (chains, n_voters) and tau (chains,)."""

    state: Any
    slopes: FloatArray
    spread: FloatArray

    @property
    def u(self) -> FloatArray:
        position: FloatArray = self.state.position
        return np.asarray(position[:, 0])


class _Walk:
    """The sweeps of all chains together: to the sampler each is a lane."""

    def __init__(self, table: SlopeTable, effects: VoteEffects, sampler: Sampler, streams: Streams) -> None:
        self._table, self._effects, self._sampler, self._streams = table, effects, sampler, streams
        self._starts, self._rounds = table.starts, 0
        # Theta and style are independent of the side under the prior, so these are coordinates of their own when whitened, too.
        self._judged = table.judged.any(axis=0)
        self._generator = streams.generator("slopes of voters", 0)
        n, p = table.judged.shape
        self._observations, lanes = round(float(table.totals.sum())), len(streams)
        # One row more is the pull of the prior's mean: never shown, and lost -1 times, it is a linear term of the loss.
        self._totals = np.repeat(np.append(table.totals, 0.0)[None], lanes, axis=0)
        self._losses = np.repeat(np.append(table.losses, -1.0)[None], lanes, axis=0)
        self._n_rows = np.full(lanes, n + 1)
        self._contrasts = np.zeros((lanes, p, n + 1))
        self._contrasts[:, :, -1] = table.pull

    def start(self, fit: PeopleFit) -> _Chains:
        """Chains around the mode, further apart than the posterior is wide, so that R-hat means something."""
        lanes, p = len(self._streams), self._table.judged.shape[1]
        noise = self._generator.standard_normal((lanes, len(fit.slopes) + 1))
        own = fit.slopes + 2.0 * fit.slope_deviations * noise[:, 1:]
        given = self._effects.spread
        spread = fit.voter_spread * np.exp(0.5 * noise[:, 0]) if given is None else np.full(lanes, given)
        state = self._sampler.start(Gaussian(), self._streams, chains=1, dim=p)
        likelihood = self._potential(np.repeat(fit.slopes[None], lanes, axis=0)).likelihood
        shape = fit_curvature(unknown_curvature(lanes, p), likelihood, np.ones(lanes), self._observations)
        away = self._generator.standard_normal((lanes, p))
        state = state._replace(position=(shape.mode + 2.0 * np.einsum("lji,lj->li", shape.whitener, away))[:, None])
        if "curvature" in state._fields:
            state = state._replace(curvature=shape)
        return _Chains(state, own, spread)

    def sweep(self, at: _Chains) -> _Chains:
        """Move everything once."""
        for _ in range(_WALKS):
            at = self._exchange_scale(at)
        state = self._sampler.advance(self._potential(at.slopes), at.state, self._streams, self._rounds)
        self._rounds += 1
        at = at._replace(state=state)
        part, offset = at.u @ self._table.judged.T, at.u @ self._table.beside.T
        at = self._move_slopes(at, part, offset)
        return at if self._effects.spread else self._scale_slopes(self._move_spread(at), part, offset)

    def trace(self, at: _Chains, draws: int, thin: int) -> tuple[_Chains, Run]:
        """So many draws, `thin` sweeps apart."""
        places = []
        for _ in range(draws):
            for _ in range(thin):
                at = self.sweep(at)
            places.append((at.u, at.slopes, at.spread, self._energy(at)))
        u, slopes, spread, energy = (np.stack(parts, axis=1) for parts in zip(*places, strict=True))
        acceptance = self._sampler.report(at.state).get("acceptance", np.ones(len(u)))
        columns = [u, slopes] if self._effects.spread else [u, slopes, spread[..., None]]
        path = np.concatenate(columns, axis=2)
        return at, Run(path, energy, diagnose(path, energy, np.asarray(acceptance)))

    def _potential(self, slopes: FloatArray) -> LinearPotential:
        table = self._table
        own = slopes[:, table.voters][:, None, :] * table.judged.T[None]
        self._contrasts[:, :, :-1] = own + table.beside.T[None]
        eta = np.ones(len(slopes))
        likelihood = Likelihood(self._contrasts, self._totals, self._losses, self._n_rows, eta)
        return LinearPotential(Gaussian(), likelihood, chains=1, observations=self._observations)

    def _loss(self, logits: FloatArray) -> FloatArray:
        """(chains, n) minus log likelihood of every row."""
        return self._table.totals * log_loss(logits) + self._table.losses * logits

    def _by_voter(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(rows, self._starts, axis=1))

    def _slope_terms(
        self, slopes: FloatArray, part: FloatArray, offset: FloatArray, spread: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Potential of every slope (chains, n_voters), its derivative, and its curvature."""
        logits = slopes[:, self._table.voters] * part + offset
        chance, precision, away = expit(logits), 1.0 / spread[:, None] ** 2, slopes - 1.0
        value = self._by_voter(self._loss(logits)) + 0.5 * precision * away**2
        residual = self._table.totals * (chance - 1.0) + self._table.losses
        derivative = self._by_voter(residual * part) + precision * away
        curvature = self._by_voter(self._table.totals * chance * (1.0 - chance) * part**2) + precision
        return value, derivative, curvature

    def _move_slopes(self, at: _Chains, part: FloatArray, offset: FloatArray) -> _Chains:
        """All slopes, each for itself: given u they are independent."""
        value, derivative, curvature = self._slope_terms(at.slopes, part, offset, at.spread)
        noise = self._generator.standard_normal(at.slopes.shape)
        proposal = at.slopes - derivative / curvature + noise / np.sqrt(curvature)
        new_value, new_derivative, new_curvature = self._slope_terms(proposal, part, offset, at.spread)
        back = (at.slopes - proposal + new_derivative / new_curvature) ** 2 * new_curvature
        log_ratio = value - new_value + 0.5 * (noise**2 - back + np.log(new_curvature / curvature))
        taken = np.log(self._generator.random(log_ratio.shape)) < log_ratio
        return at._replace(slopes=np.where(taken, proposal, at.slopes))

    def _move_spread(self, at: _Chains) -> _Chains:
        """Tau given the slopes."""
        n_voters, squares = at.slopes.shape[1], ((at.slopes - 1.0) ** 2).sum(axis=1)
        step = 2.4 / math.sqrt(2.0 * n_voters + 1.0)  # 1 / sqrt(2 n) is the width of log tau given n slopes

        def density(tau: FloatArray) -> FloatArray:
            return np.asarray((1 - n_voters) * np.log(tau) - 0.5 * squares / tau**2 + self._log_prior(tau))

        tau = at.spread
        for _ in range(_WALKS):
            proposal = tau * np.exp(step * self._generator.standard_normal(len(tau)))
            taken = np.log(self._generator.random(len(tau))) < density(proposal) - density(tau)
            tau = np.where(taken, proposal, tau)
        return at._replace(spread=tau)

    def _scale_slopes(self, at: _Chains, part: FloatArray, offset: FloatArray) -> _Chains:
        """Tau and all slopes less 1 by one factor: (r_v - 1) / tau stays, and with it the prior of the slopes."""
        voters = self._table.voters
        width = self._generator.choice(_FACTORS)
        factor = np.exp(width * self._generator.standard_normal(len(at.spread)))
        proposal, tau = 1.0 + factor[:, None] * (at.slopes - 1.0), factor * at.spread
        now, then = (self._loss(r[:, voters] * part + offset).sum(axis=1) for r in (at.slopes, proposal))
        log_ratio = now - then + self._log_prior(tau) - self._log_prior(at.spread) + np.log(factor)
        taken = np.log(self._generator.random(len(tau))) < log_ratio
        return at._replace(slopes=np.where(taken[:, None], proposal, at.slopes), spread=np.where(taken, tau, at.spread))

    def _exchange_scale(self, at: _Chains) -> _Chains:
        """Slopes by one factor, and what they multiply by its inverse, which leaves every vote as likely as it was."""
        judged, pull = self._judged, self._table.pull
        width = self._generator.choice(_EXCHANGES)
        log_factor = width * self._generator.standard_normal(len(at.spread))
        factor = np.exp(log_factor)[:, None]
        u, slopes = np.where(judged, factor * at.u, at.u), at.slopes / factor
        squares = ((at.u - pull) ** 2 - (u - pull) ** 2).sum(axis=1)
        squares += (((at.slopes - 1.0) ** 2 - (slopes - 1.0) ** 2) / at.spread[:, None] ** 2).sum(axis=1)
        log_ratio = 0.5 * squares + (judged.sum() - slopes.shape[1]) * log_factor
        taken = (np.log(self._generator.random(len(log_ratio))) < log_ratio)[:, None]
        state = at.state._replace(position=np.where(taken, u, at.u)[:, None])
        return at._replace(state=state, slopes=np.where(taken, slopes, at.slopes))

    def _log_prior(self, tau: FloatArray) -> FloatArray:
        return np.asarray(-0.5 * (tau / self._effects.spread_scale) ** 2)

    def _energy(self, at: _Chains) -> FloatArray:
        """(chains,) -log posterior of everything but a constant."""
        table, u = self._table, at.u
        logits = at.slopes[:, table.voters] * (u @ table.judged.T) + u @ table.beside.T
        own = 0.5 * (((at.slopes - 1.0) / at.spread[:, None]) ** 2).sum(axis=1) + at.slopes.shape[1] * np.log(at.spread)
        learnt = 0.0 if self._effects.spread else -self._log_prior(at.spread)
        return np.asarray(self._loss(logits).sum(axis=1) + 0.5 * ((u - table.pull) ** 2).sum(axis=1) + own + learnt)
