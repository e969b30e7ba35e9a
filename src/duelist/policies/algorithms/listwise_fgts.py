"""FGTS for slates of q >= 2 candidates and Plackett-Luce answers: the winner, a ranking of all or of the best few, or a tie.

Each round draws theta_1 ... theta_q independently from

    -log p_j(theta) = sum_i [ -eta log P(answer_i | theta)
                              - mu ( max_{a in A_i} <theta, phi(a)> - mean_{k != j} <theta, phi(a_i^k)> ) ] - log p_0(theta)

and shows the best arm of each. With q = 2 this is FGTS on duels.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, describes the Plackett-Luce model and
treats duels alone; docs/policies/listwisefgts.md lists what was decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.slates import Answer, Slates, SlateTable, slates_of
from duelist.policies.base import SlatePolicy
from duelist.policies.parts.feel_good import FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.same_arm import require_finite
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.slates import SlatePotential, TieModel
from duelist.preferences.plackett_luce import RankingError, checked_ranking
from duelist.samplers.generic_mala import GenericMALA, GenericMALAState
from duelist.typing import FloatArray, IntArray

FEEDBACK = ("winner", "ranking")


def _upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Version 1 was flat, and knew no live use."""
    return nest(settings=FeelGoodSettings)(version, {**fields, "live": False})


@stored("listwise-fgts-state", version=2, upgrade=_upgrade)
class ListwiseFGTSState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        table: every answered slate.
        chains: the sampler's chains, one per candidate of the slate.
        asked: slates asked for so far; it names the next random numbers.
        settings: temper and Feel-Good weight, one number per lane.
    """

    table: SlateTable
    chains: GenericMALAState
    asked: int
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class ListwiseFGTS(SlatePolicy[ListwiseFGTSState]):
    """Feel-Good Thompson sampling over slates.

    Args:
        choices: q, candidates per slate.
        feedback: "winner" learns from the first of an answer alone; "ranking" from all that it ranks.
        ties: for q = 2, a model of the third answer: `Davidson`, `RaoKupper` or `BothBad`; None refuses "tie".
        eta: temper of the likelihood.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha.
        horizon: rounds to be played. None takes the simulation's, and otherwise the number learnt so far.
        prior: on theta.
        sampler: the chains' steps per round.

    Example:
        >>> from duelist.environments import LinearSlates
        >>> from duelist.experiments import simulate_slates
        >>> run = simulate_slates(ListwiseFGTS(choices=3), LinearSlates(dim=3, arms=8), rounds=20, trials=2, seed=0)
        >>> run.regret.shape
        (2, 20)
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

    def __post_init__(self) -> None:
        whole_number("choices", self.choices, at_least=2)
        one_of("feedback", self.feedback, FEEDBACK)
        if self.ties is not None and self.choices != 2:
            raise InvalidInputError(f"models of ties are for duels, choices=2; got choices={self.choices}.")
        if not isinstance(self.sampler, GenericMALA):
            raise InvalidInputError(
                f"sampler must be a GenericMALA, the one that samples answers to slates; got {self.sampler!r}. "
                f"Set its steps: GenericMALA(steps=20)."
            )
        check_feel_good(self.eta, self.alpha, self.mu, self.horizon)

    def start(self, problem: Problem, streams: Streams) -> ListwiseFGTSState:
        """No answers yet, and chains at draws from the prior."""
        return ListwiseFGTSState(
            table=SlateTable.start(lanes=problem.lanes, choices=self.choices, dim=problem.dim),
            chains=self.sampler.start(self.prior, streams, chains=self.choices, dim=problem.dim),
            asked=0,
            settings=feel_good_settings(problem, eta=self.eta, alpha=self.alpha, mu=self.mu, horizon=self.horizon),
        )

    def potential(self, state: ListwiseFGTSState) -> SlatePotential:
        """The potential of all draws given what was learnt."""
        settings = state.settings
        mu = settings.mu(state.table.rounds)
        return SlatePotential(state.table, self.prior, eta=settings.eta, mu=mu, ties=self.ties)

    def choose(self, state: ListwiseFGTSState, actions: ActionSet, streams: Streams) -> tuple[Slates, ListwiseFGTSState]:
        """Draw theta_1 ... theta_q and show the best arm of each."""
        finite = require_finite(self, actions)
        potential = self.potential(state)
        chains = self.sampler.advance(potential, state.chains, streams, state.asked, answers=state.table.rounds)
        slates = slates_of(finite, finite.best(chains.position).row)
        return slates, state._replace(chains=chains, asked=state.asked + 1)

    def learn(
        self, state: ListwiseFGTSState, actions: ActionSet, slates: Slates, answers: Sequence[Answer]
    ) -> ListwiseFGTSState:
        """Take in an answer per lane: places in the slate, best first, or "tie" where there is a model of ties."""
        finite = require_finite(self, actions)
        if len(answers) != len(slates.rows):
            raise RankingError(f"answers must be one per lane ({len(slates.rows)}); got {len(answers)}.")
        shown = slates_of(finite, slates.rows)
        read = [self._read(answer) for answer in answers]
        orders, placed = np.array([order for order, _ in read]), np.array([n for _, n in read])
        return state._replace(table=state.table.append(finite, shown, orders, placed))

    def _read(self, answer: Answer) -> tuple[IntArray, int]:
        """All places of the slate, the ranked ones first, and how many are ranked."""
        if isinstance(answer, str):
            one_of("answer", answer, ("tie",))
            if self.ties is None:
                raise RankingError(
                    'got "tie", and this policy has no model of ties. Use ListwiseFGTS(choices=2, ties=Davidson()).'
                )
            return np.arange(self.choices), 0
        ranking = checked_ranking(answer, self.choices)
        if self.feedback == "winner":
            ranking = ranking[:1]
        return np.concatenate([ranking, np.setdiff1d(np.arange(self.choices), ranking)]), len(ranking)

    def report(self, state: ListwiseFGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing."""
        return self.sampler.report(state.chains)
