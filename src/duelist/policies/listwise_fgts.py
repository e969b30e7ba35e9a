"""FGTS for slates of q >= 2 candidates and Plackett-Luce answers: the winner, a ranking of all or of the best few, or a tie.

Each round draws theta_1 ... theta_q independently from

    -log p_j(theta) = sum_i [ -eta log P(answer_i | theta)
                              - mu ( max_{a in A_i} <theta, phi(a)> - mean_{k != j} <theta, phi(a_i^k)> ) ] - log p_0(theta)

and shows the best arm of each. With q = 2 this is FGTS on duels.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, describes the Plackett-Luce model and
treats duels alone; docs/policies/listwisefgts.md lists what was decided here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.slates import Answer, Slates, SlateTable, slates_of
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.slate_potential import SlatePotential, TieModel
from duelist.preferences.plackett_luce import RankingError, checked_ranking
from duelist.samplers.walking import WalkingChains, WalkingMALA

FEEDBACK = ("winner", "ranking")


class ListwiseFGTSState(NamedTuple):
    """What the policy has learnt.

    Attributes:
        table: every answered slate.
        chains: the sampler's chains, one a candidate of the slate.
        asked: slates asked for so far; it names the next random numbers.
        eta: (lanes,) temper of the likelihood.
        strength: (lanes,) mu = strength / sqrt(horizon).
        horizon: what mu is scaled by; 0 for the number of rounds learnt so far, 1 where mu was given itself.
    """

    table: SlateTable
    chains: WalkingChains
    asked: int
    eta: FloatArray
    strength: FloatArray
    horizon: int


@dataclass(frozen=True, kw_only=True)
class ListwiseFGTS:
    """Feel-Good Thompson sampling over slates.

    Args:
        choices: q, candidates a slate.
        feedback: "winner" learns from the first of an answer alone; "ranking" from all that it ranks.
        ties: for q = 2, a model of the third answer: `Davidson`, `RaoKupper` or `BothBad`; None refuses "tie".
        eta: temper of the likelihood.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha.
        horizon: rounds to be played. None takes the simulation's, and otherwise the number learnt so far.
        prior: on theta.
        sampler: the chains' steps a round.

    Example:
        >>> from duelist.environments.linear_slates import LinearSlates
        >>> from duelist.experiments.simulate_slates import simulate_slates
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
    sampler: WalkingMALA = field(default_factory=WalkingMALA)

    def __post_init__(self) -> None:
        whole_number("choices", self.choices, at_least=2)
        one_of("feedback", self.feedback, FEEDBACK)
        if self.ties is not None and self.choices != 2:
            raise InvalidInputError(f"models of ties are for duels, choices=2; got choices={self.choices}.")
        check_per_lane("eta", self.eta, above=0.0)
        check_per_lane("alpha", self.alpha, at_least=0.0)
        if self.mu is not None:
            check_per_lane("mu", self.mu, at_least=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> ListwiseFGTSState:
        """No answers yet, and chains at draws from the prior."""
        lanes, horizon = problem.lanes, self.horizon or problem.horizon or 0
        strength = per_lane("alpha", self.alpha, lanes)
        if self.mu is not None:
            strength, horizon = per_lane("mu", self.mu, lanes), 1
        return ListwiseFGTSState(
            table=SlateTable.start(lanes=lanes, choices=self.choices, dim=problem.dim),
            chains=self.sampler.start(self.prior, streams, chains=self.choices, dim=problem.dim),
            asked=0,
            eta=per_lane("eta", self.eta, lanes),
            strength=strength,
            horizon=horizon,
        )

    def potential(self, state: ListwiseFGTSState) -> SlatePotential:
        """The potential of all draws given what was learnt."""
        mu = state.strength / math.sqrt(state.horizon or max(state.table.rounds, 1))
        return SlatePotential(state.table, self.prior, eta=state.eta, mu=mu, ties=self.ties)

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
        """Take in an answer a lane: places in the slate, best first, or "tie" where there is a model of ties."""
        finite = require_finite(self, actions)
        if len(answers) != len(slates.rows):
            raise RankingError(f"answers must be one a lane ({len(slates.rows)}); got {len(answers)}.")
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
