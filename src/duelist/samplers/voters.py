"""Draws where every voter has a slope: coefficients given slopes by any sampler, slopes given coefficients, and their spread.

In whitened coordinates u of the coefficients the vote of voter v has the log-odds r_v <u, J_i> + <u, B_i>: J_i is what is judged,
B_i what stands beside it. A sweep moves

1. u given the slopes: a linear model, whose contrasts are r_v J_i + B_i, by `advance` of the sampler;
2. every slope given u: one number per voter, by a Newton step with noise that is accepted by the rule of Metropolis and Hastings;
3. the spread tau given the slopes, a random walk on log tau;
4. tau with all slopes, r_v - 1 and tau multiplied by one factor: this moves where 3. cannot, when votes say little of slopes.

Every part leaves the joint posterior as it is, so the draws are as exact as the sampler of 1.

Reference: 3. and 4. are the two parametrisations of Papaspiliopoulos, Roberts & Skold (2007), taken in turn.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from duelist.core.streams import Streams
from duelist.kernels.logistic import Likelihood
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from duelist.preferences.logistic import log_loss
from duelist.samplers.base import Sampler
from duelist.samplers.chains import may_thin, next_thin
from duelist.samplers.curvature import fit_curvature, unknown_curvature
from duelist.samplers.diagnostics import Diagnostics, diagnose
from duelist.typing import FloatArray, IntArray

_WALKS = 3  # moves of tau per sweep: they read no votes
_FACTORS = (0.1, 0.3, 1.0)  # of the moves of tau with all slopes, on the log scale, one drawn for each move


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


class SlopePrior(NamedTuple):
    """The slopes' standard deviation: `spread` where it is given, else half-normal with the given scale."""

    spread: float | None
    scale: float


class SlopeRun(NamedTuple):
    """Draws of u (chains, draws, p), slopes (chains, draws, n_voters) and tau (chains, draws), and how well they mixed."""

    u: FloatArray
    slopes: FloatArray
    spread: FloatArray
    energy: FloatArray
    diagnostics: Diagnostics


class _Chains(NamedTuple):
    """Where all chains stand: `state` of the sampler, slopes (chains, n_voters) and tau (chains,)."""

    state: Any
    slopes: FloatArray
    spread: FloatArray

    @property
    def u(self) -> FloatArray:
        position: FloatArray = self.state.position
        return position[:, 0]


def sample_slopes(
    table: SlopeTable,
    prior: SlopePrior,
    start: tuple[FloatArray, FloatArray, float],
    sampler: Sampler,
    *,
    chains: int,
    draws: int,
    warmup: int,
    seed: int,
    max_thin: int,
) -> SlopeRun:
    """Draw until the diagnostics have nothing to complain of, or chains were thinned `max_thin` times as much.

    Args:
        table: the votes.
        prior: of the slopes.
        start: slopes (n_voters,) near the mode, their standard deviations, and tau: chains start around them.
        sampler: moves u.
        chains: how many.
        draws: that each keeps.
        warmup: sweeps that are thrown away.
        seed: names the random numbers.
        max_thin: sweeps between two draws, at most.
    """
    walk = _Walk(table, prior, sampler, Streams(seed, range(chains)))
    standing = walk.start(*start)
    for _ in range(warmup):
        standing = walk.sweep(standing)
    thin = 1
    while True:
        standing, run = walk.trace(standing, draws, thin)
        if not run.diagnostics.complaints or thin >= max_thin or not may_thin(sampler, chains * draws):
            return run
        thin = min(next_thin(thin, run.diagnostics), max_thin)


class _Walk:
    """The sweeps of all chains together: to the sampler each is a lane."""

    def __init__(self, table: SlopeTable, prior: SlopePrior, sampler: Sampler, streams: Streams) -> None:
        self._table, self._prior, self._sampler, self._streams = table, prior, sampler, streams
        self._starts, self._rounds = table.starts, 0
        self._generator = streams.generator("slopes of voters", 0)
        n, p = table.judged.shape
        self._observations, lanes = int(round(table.totals.sum())), len(streams)
        # One row more is the pull of the prior's mean: never shown, and lost -1 times, it is a linear term of the loss.
        self._totals = np.repeat(np.append(table.totals, 0.0)[None], lanes, axis=0)
        self._losses = np.repeat(np.append(table.losses, -1.0)[None], lanes, axis=0)
        self._n_rows = np.full(lanes, n + 1)
        self._contrasts = np.zeros((lanes, p, n + 1))
        self._contrasts[:, :, -1] = table.pull

    def start(self, slopes: FloatArray, deviations: FloatArray, spread: float) -> _Chains:
        """Chains further apart than the posterior is wide, so that R-hat means something."""
        lanes, p = len(self._streams), self._table.judged.shape[1]
        noise = self._generator.standard_normal((lanes, len(slopes) + 1))
        own = slopes + 2.0 * deviations * noise[:, 1:]
        tau = np.full(lanes, self._prior.spread) if self._prior.spread else spread * np.exp(0.5 * noise[:, 0])
        state = self._sampler.start(Gaussian(), self._streams, chains=1, dim=p)
        potential = self._potential(np.repeat(slopes[None], lanes, axis=0))
        ones = np.ones(lanes)
        shape = fit_curvature(unknown_curvature(lanes, p), potential.likelihood, ones, self._observations)
        away = self._generator.standard_normal((lanes, p))
        position = shape.mode + 2.0 * np.einsum("lji,lj->li", shape.whitener, away)
        state = state._replace(position=position[:, None])
        if "curvature" in state._fields:
            state = state._replace(curvature=shape)
        return _Chains(state, own, tau)

    def sweep(self, at: _Chains) -> _Chains:
        """Move everything once."""
        state = self._sampler.advance(self._potential(at.slopes), at.state, self._streams, self._rounds)
        self._rounds += 1
        at = at._replace(state=state)
        part, offset = at.u @ self._table.judged.T, at.u @ self._table.beside.T
        at = self._move_slopes(at, part, offset)
        return at if self._prior.spread else self._scale_slopes(self._move_spread(at), part, offset)

    def trace(self, at: _Chains, draws: int, thin: int) -> tuple[_Chains, SlopeRun]:
        """So many draws, `thin` sweeps apart."""
        places = []
        for _ in range(draws):
            for _ in range(thin):
                at = self.sweep(at)
            places.append((at.u, at.slopes, at.spread, self._energy(at)))
        u, slopes, spread, energy = (np.stack(parts, axis=1) for parts in zip(*places, strict=True))
        acceptance = self._sampler.report(at.state).get("acceptance", np.ones(len(u)))
        columns = [u, slopes] if self._prior.spread else [u, slopes, np.log(spread)[..., None]]
        found = diagnose(np.concatenate(columns, axis=2), energy, np.asarray(acceptance))
        return at, SlopeRun(u, slopes, spread, energy, found)

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
            return -(n_voters - 1) * np.log(tau) - 0.5 * squares / tau**2 + self._log_prior(tau)

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

    def _log_prior(self, tau: FloatArray) -> FloatArray:
        return -0.5 * (tau / self._prior.scale) ** 2

    def _energy(self, at: _Chains) -> FloatArray:
        """(chains,) -log posterior of everything but a constant."""
        table, u = self._table, at.u
        logits = at.slopes[:, table.voters] * (u @ table.judged.T) + u @ table.beside.T
        own = 0.5 * (((at.slopes - 1.0) / at.spread[:, None]) ** 2).sum(axis=1) + at.slopes.shape[1] * np.log(at.spread)
        learnt = 0.0 if self._prior.spread else -self._log_prior(at.spread)
        return np.asarray(self._loss(logits).sum(axis=1) + 0.5 * ((u - table.pull) ** 2).sum(axis=1) + own + learnt)
