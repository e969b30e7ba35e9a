"""FGTS for slates of q >= 2 candidates and Plackett-Luce answers: the winner, a ranking of all or of the best few, or a tie.

With q = 2 it plays duels, and is a policy for pairs like any other; what it has then and FGTS has not are models of ties.

Each round draws theta_1 ... theta_q independently from

    -log p_j(theta) = sum_i [ -eta log P(answer_i | theta)
                              - mu ( max_{a in A_i} <theta, phi(a)> - mean_{k != j} <theta, phi(a_i^k)> ) ] - log p_0(theta)

and shows the best arm of each. With q = 2 this is FGTS on duels. With `LearntDavidson`, a draw is (theta_j, log nu_j), jointly.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, describes the Plackett-Luce model and
treats duels alone; docs/policies/listwisefgts.md lists what was decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.slates import Answer, Slates, SlateTable, slates_of
from duelist.kernels.philox import RandomSource
from duelist.policies.base import Policy
from duelist.policies.parts.feel_good import FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.same_arm import DRAWS, SameArm, check_same_arm, require_finite, resolve_same_arm, separate_slates
from duelist.policies.parts.slate_answers import read_answers, shown_slates
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.slates import SlatePotential, TieModel
from duelist.preferences.ties import BothBad, LearntDavidson, RaoKupper
from duelist.samplers.adaptation import first_step, whiten
from duelist.samplers.generic_mala import GenericMALA, GenericMALAState, run_mala
from duelist.typing import FloatArray, IntArray

FEEDBACK = ("winner", "ranking")
# Draws of the posterior for people: so many chains from the normal approximation at the mode, and steps of each before the
# first draw and between two. Beyond so many answers the approximation itself is drawn from, as FGTS does.
_CHAINS, _BURN_IN, _THINNING = 32, 15, 3
_EXACT_ANSWERS = 2048


def _upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 was flat, and knew no live use."""
    return nest(settings=FeelGoodSettings)(version, {**fields, "live": False})


@stored("listwise-fgts-state", version=2, upgrade=_upgrade)
class ListwiseFGTSState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        table: every answered slate.
        chains: the sampler's chains, one per candidate of the slate; where nu is learnt, its logarithm is their last entry.
        asked: slates asked for so far; it names the next random numbers.
        settings: temper and Feel-Good weight, one number per lane.
    """

    table: SlateTable
    chains: GenericMALAState
    asked: int
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class ListwiseFGTS(Policy[ListwiseFGTSState]):
    """Feel-Good Thompson sampling over slates, or over pairs with a model of ties.

    Args:
        choices: q, candidates per slate. With 2 it plays pairs.
        feedback: "winner" learns from the first of an answer alone; "ranking" from all that it ranks.
        ties: what a tie says: `LearntDavidson()` learns how readily people tie, `Davidson(nu)` knows it; for pairs also
            `RaoKupper` or `BothBad`. None counts a tie as 1/q of a win of each, as FGTS does.
        eta: temper of the likelihood.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha.
        horizon: rounds to be played. None takes the simulation's, and otherwise the number learnt so far.
        prior: on theta.
        sampler: the chains' steps per round.
        same_arm: what happens when draws agree on an arm: "allow" shows it twice, "runner-up" the later draw's next best.
            "auto" allows it in simulation, as the paper does, and not where people see the slate.

    Example:
        >>> import duelist
        >>> run = duelist.simulate(ListwiseFGTS(choices=3), duelist.LinearDuels(dim=3, arms=8), rounds=20, trials=2, seed=0)
        >>> run.regret.shape, run.chosen.shape
        ((2, 20), (2, 20, 3))
    """

    choices: int = 4
    feedback: str = "winner"
    ties: TieModel | None = None
    eta: PerLane = 1.0
    alpha: PerLane = 0.1
    mu: PerLane | None = None
    horizon: int | None = None
    prior: Prior = field(default_factory=Gaussian)
    sampler: GenericMALA = field(default_factory=GenericMALA)
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        whole_number("choices", self.choices, at_least=2)
        one_of("feedback", self.feedback, FEEDBACK)
        check_same_arm(self.same_arm, DRAWS)
        if isinstance(self.ties, RaoKupper | BothBad) and self.choices != 2:
            raise InvalidInputError(
                f"{type(self.ties).__name__} is a model of duels, choices=2; got choices={self.choices}. Davidson and "
                f"LearntDavidson know ties of several."
            )
        if not isinstance(self.sampler, GenericMALA):
            raise InvalidInputError(
                f"sampler must be a GenericMALA, the one that samples answers to slates; got {self.sampler!r}. "
                f"Set its steps: GenericMALA(steps=20)."
            )
        check_feel_good(self.eta, self.alpha, self.mu, self.horizon)

    def start(self, problem: Problem, streams: Streams) -> ListwiseFGTSState:
        """No answers yet, and chains at draws from the prior."""
        chains = self.sampler.start(self.prior, streams, chains=self.choices, dim=problem.dim)
        return ListwiseFGTSState(
            table=SlateTable.start(lanes=problem.lanes, choices=self.choices, dim=problem.dim),
            chains=_with_log_nu(chains, self.ties, streams) if isinstance(self.ties, LearntDavidson) else chains,
            asked=0,
            settings=feel_good_settings(problem, eta=self.eta, alpha=self.alpha, mu=self.mu, horizon=self.horizon),
        )

    def potential(self, state: ListwiseFGTSState) -> SlatePotential:
        """The potential of all draws given what was learnt."""
        settings = state.settings
        mu = settings.mu(state.table.rounds)
        return SlatePotential(state.table, self.prior, eta=settings.eta, mu=mu, ties=self.ties)

    def choose(self, state: ListwiseFGTSState, actions: ActionSet, streams: Streams) -> tuple[Any, ListwiseFGTSState]:
        """Draw theta_1 ... theta_q and show the best arm of each: `Slates`, or `Duels` where q = 2."""
        finite = require_finite(self, actions)
        potential = self.potential(state)
        chains = self.sampler.advance(potential, state.chains, streams, state.asked, answers=state.table.rounds)
        theta = chains.position[:, :, : finite.dim]
        rows = finite.best(theta).row
        if resolve_same_arm(self.same_arm, DRAWS, live=state.settings.live) is not SameArm.ALLOW:
            rows = separate_slates(finite, theta, rows)
        slates = slates_of(finite, rows)
        shown = Duels(rows[:, 0].copy(), rows[:, 1].copy(), slates.features) if self.choices == 2 else slates
        return shown, state._replace(chains=chains, asked=state.asked + 1)

    def learn(
        self, state: ListwiseFGTSState, actions: ActionSet, shown: Slates | Duels, answers: Sequence[Answer] | IntArray
    ) -> ListwiseFGTSState:
        """Take in an answer per lane: places in the slate, best first, or "tie"; of a pair also +1, -1 or 0, as of any duel.

        What was shown may be a pair whatever the number of choices: votes from elsewhere often are.
        """
        finite = require_finite(self, actions)
        slates = shown_slates(finite, shown)
        orders, placed = read_answers(answers, slates.rows.shape, most=1 if self.feedback == "winner" else None)
        return state._replace(table=state.table.append(finite, slates, orders, placed))

    def drawn_utilities(self, state: ListwiseFGTSState, features: FloatArray) -> FloatArray:
        """Utilities under theta_1 ... theta_q."""
        return state.chains.position[:, :, : features.shape[2]] @ features.transpose(0, 2, 1)

    def estimated_utilities(self, state: ListwiseFGTSState, actions: FiniteActions) -> FloatArray:
        """Utilities at the mode of the likelihood and the prior."""
        potential = self._belief(state)
        mode = potential.mode(np.zeros((actions.lanes, potential.width)))
        return actions.utilities(mode[:, : actions.dim])

    def posterior_draws(self, state: ListwiseFGTSState, streams: Streams, n_draws: int) -> FloatArray:
        """(lanes, n_draws, dim) draws given all answers, from the prior, without the Feel-Good term and the temper."""
        return self._draws(state, streams, n_draws)[:, :, : state.table.features.shape[3]]

    def tie_posterior(self, state: ListwiseFGTSState, streams: Streams, n_draws: int = 1024) -> FloatArray:
        """(lanes, n_draws) draws of nu given all answers, where it is learnt.

        Example:
            >>> from duelist.actions import FiniteActions
            >>> policy, streams = ListwiseFGTS(choices=2, ties=LearntDavidson()), Streams(0, [0])
            >>> state = policy.start(Problem(dim=1), streams)
            >>> for _ in range(60):
            ...     pair, state = policy.choose(state, FiniteActions([[0.5], [0.0]]), streams)
            ...     state = policy.learn(state, FiniteActions([[0.5], [0.0]]), pair, ["tie"])
            >>> bool(np.quantile(policy.tie_posterior(state, streams), 0.05) > 2.0)  # people who always tie
            True
        """
        if not isinstance(self.ties, LearntDavidson):
            raise InvalidInputError(f"nu is learnt with ties=LearntDavidson() only; got ties={self.ties!r}.")
        return np.asarray(np.exp(self._draws(state, streams, n_draws)[:, :, -1]))

    def _belief(self, state: ListwiseFGTSState) -> SlatePotential:
        """The posterior that people are told of: prior and likelihood alone."""
        ones = np.ones(len(state.table.features))
        return SlatePotential(state.table, self.prior, eta=ones, mu=0.0 * ones, ties=self.ties)

    def _draws(self, state: ListwiseFGTSState, streams: Streams, n_draws: int) -> FloatArray:
        """(lanes, n_draws, width) draws: by MALA from the normal approximation at the mode, or of that where answers abound."""
        potential, lanes = self._belief(state), len(state.table.features)
        mode = potential.mode(np.zeros((lanes, potential.width)))
        whitener = whiten(potential.curvature(mode))
        exact = state.table.rounds <= _EXACT_ANSWERS
        generators = [streams.generator("belief", lane, state.table.rounds) for lane in range(lanes)]
        noise = np.array([one.standard_normal((_CHAINS if exact else n_draws, potential.width)) for one in generators])
        start = mode[:, None] + noise @ whitener
        outside = np.linalg.norm(start[:, :, : state.table.features.shape[3]], axis=2) > self.prior.radius
        start[outside] = np.broadcast_to(mode[:, None], start.shape)[outside]
        if not exact:
            return np.asarray(start)
        kept = -(-n_draws // _CHAINS)
        run = run_mala(
            potential,
            start,
            np.full((lanes, _CHAINS), np.log(first_step(potential.width))),
            whitener,
            RandomSource(streams.keys("belief"), state.table.rounds, 0),
            steps=_BURN_IN + kept * _THINNING,
            keep=(_THINNING, kept + _BURN_IN // _THINNING),
        )
        path = run.path[:, :, -kept:].transpose(0, 2, 1, 3).reshape(lanes, -1, potential.width)
        return np.asarray(path[:, :n_draws])

    def believed_prior(self) -> Prior:
        """The prior on theta."""
        return self.prior

    def weighs_offsets(self) -> bool:
        """Draws play the best arm by utility and offset."""
        return True

    def follows_sets(self) -> bool:
        """Chains move with what was learnt, whatever is on offer."""
        return False

    def report(self, state: ListwiseFGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing, and nu of the present draws where it is learnt; `tie_posterior` has its whole law."""
        numbers = self.sampler.report(state.chains)
        if isinstance(self.ties, LearntDavidson):
            numbers["tie_nu"] = np.exp(state.chains.position[:, :, -1].mean(axis=1))
        return numbers


def _with_log_nu(chains: GenericMALAState, ties: LearntDavidson, streams: Streams) -> GenericMALAState:
    """The chains with a draw of log nu after each draw of theta."""
    lanes, draws, dim = chains.position.shape
    noise = np.array([streams.generator("prior log nu", lane).standard_normal((draws, 1)) for lane in range(lanes)])
    whitener = np.zeros((lanes, dim + 1, dim + 1))
    whitener[:, :dim, :dim], whitener[:, dim, dim] = chains.whitener, ties.spread
    position = np.concatenate([chains.position, np.log(ties.median) + ties.spread * noise], axis=2)
    return chains._replace(position=position, whitener=whitener)
