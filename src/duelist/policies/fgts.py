"""FGTS.CDB: Feel-Good Thompson sampling for contextual dueling bandits.

Each round draws theta_1 and theta_2 independently from

    -log p_j(theta) = sum_i [ eta * log(1 + exp(-y_i <theta, z_i>))
                              - mu * ( max_{a' in A_i} <theta, phi(x_i, a')> - <theta, phi(x_i, a_i^{3-j})> ) ]
                      - log p_0(theta),

and plays a^j = argmax over A_t of <theta_j, phi(x_t, a)>. mu = 0 is plain Thompson sampling.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import FloatArray, IntArray, finite_number, one_of, whole_number
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import InvalidInputError
from duelist.core.history import History
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.last_duel import LastDuel
from duelist.core.streams import Streams
from duelist.policies.finite import runner_up
from duelist.policies.pair_probability import favourites, normal_draws, pair_probability
from duelist.policies.same_point import REDRAWS, different_points
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior
from duelist.posteriors.terms import FeelGoodTerm, PreferenceTerm, PriorTerm
from duelist.samplers.base import Sampler
from duelist.samplers.registry import sampler_named
from duelist.theory.schedules import THEORY_ETA, theory_mu

SAME_ARM = ("auto", "allow", "redraw", "runner-up")


class FGTSState(NamedTuple):
    """What FGTS has learnt.

    Attributes:
        history: every duel learnt so far; with a one-pass sampler the newest alone.
        chains: the sampler's chains, two a lane.
        asked: pairs asked for so far; it names the next random numbers.
        eta: (lanes,) temper of the likelihood.
        strength: (lanes,) mu = strength / sqrt(horizon).
        horizon: what mu is scaled by; 0 for the number of rounds learnt so far, 1 where mu was given itself.
        live: whether a person sees the pair.
    """

    history: History | LastDuel
    chains: Any
    asked: int
    eta: FloatArray
    strength: FloatArray
    horizon: int
    live: bool


@dataclass(frozen=True, kw_only=True)
class FGTS:
    """Feel-Good Thompson sampling.

    Args:
        eta: temper of the likelihood; 1 as in the paper's experiments, or "theory" for the theorem's 1/4.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). The experiments use 0.1; 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha; or "theory" for 1 / (10 e^B sqrt(horizon)), B the prior's radius.
        horizon: rounds to be played. None takes the simulation's number of rounds, and where nobody knows it, as in live
            use, the anytime schedule mu_t = alpha / sqrt(t) on the whole history of t rounds.
        prior: `Gaussian`, `UniformBall` or `GaussianBall`; the paper does not state its own.
        sampler: "mala" (exact, the default), "polya_gamma" (exact, slower), "paper" (the paper's Langevin recipe, biased),
            "langevin" (biased), "laplace", "sgld_cv", "online" (approximate; the last keeps no history), or a sampler object.
        same_arm: when both draws pick one arm: "allow" plays it against itself (the paper), "redraw" draws theta_2 again up
            to 8 times and then takes the runner-up, "runner-up" plays theta_2's second best. "auto" allows it in simulation
            and takes the runner-up live, where nobody is shown the same thing twice. A continuous set has no runner-up:
            there "runner-up" draws again, like "redraw", and at last plays the point that theta_2 likes least.
        discount: forgetting, for tastes that drift: every vote multiplies the weight of all votes before it by this, in the
            likelihood and the Feel-Good term alike. 0.999 remembers about the last thousand votes; 1 never forgets. The
            anytime schedule then counts remembered rounds.
        exact_rounds: distinct contrasts and action sets up to which all of them are kept and read one by one, which is all
            there ever are with a fixed set of arms. With more, the likelihood is read through its second-order expansion
            around the mode and the Feel-Good maximum through a sample of the sets, so that a round costs the same however
            many came before. None stays exact at a cost that grows with every round, as does a history that forgets.

    eta, alpha and mu may also be sequences, one number a lane: a grid that advances in lock step.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.FGTS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.regret[:, -1].mean() < 150)
        True
    """

    eta: PerLane | Literal["theory"] = 1.0
    alpha: PerLane = 0.1
    mu: PerLane | Literal["theory"] | None = None
    horizon: int | None = None
    prior: Prior = field(default_factory=Gaussian)
    sampler: str | Sampler = "mala"
    same_arm: str = "auto"
    discount: float = 1.0
    exact_rounds: int | None = 2048

    def __post_init__(self) -> None:
        if isinstance(self.eta, str):
            one_of("eta", self.eta, ("theory",))
        else:
            check_per_lane("eta", self.eta, above=0.0)
        check_per_lane("alpha", self.alpha, at_least=0.0)
        if isinstance(self.mu, str):
            one_of("mu", self.mu, ("theory",))
            if not math.isfinite(self.prior.radius):
                raise InvalidInputError(
                    'mu="theory" is 1 / (10 e^B sqrt(T)) with B a bound on |theta|; the prior has none. '
                    "Use prior=UniformBall(B) or GaussianBall(scale, B)."
                )
        elif self.mu is not None:
            check_per_lane("mu", self.mu, at_least=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        one_of("same_arm", self.same_arm, SAME_ARM)
        finite_number("discount", self.discount, above=0.0, at_most=1.0)
        if self._sampler.one_pass and self.discount < 1.0:
            raise InvalidInputError(
                f"a one-pass sampler never looks back at a duel and cannot forget it; got discount {self.discount:g} with "
                f"sampler {self.sampler!r}. Use another sampler, or discount=1."
            )
        if self.exact_rounds is not None:
            whole_number("exact_rounds", self.exact_rounds, at_least=8)

    def start(self, problem: Problem, streams: Streams) -> FGTSState:
        """No duels yet, and chains at draws from the prior."""
        if problem.live and self._sampler.one_pass:
            raise InvalidInputError(
                f"a one-pass sampler takes in one answer between two questions, and live answers come late and together; got "
                f'sampler {self.sampler!r}. Use another, such as "mala" or "laplace".'
            )
        lanes = problem.lanes
        horizon = self.horizon or problem.horizon or 0
        if self.mu is None:
            strength = per_lane("alpha", self.alpha, lanes)
        elif isinstance(self.mu, str):
            strength = np.full(lanes, theory_mu(self.prior.radius, horizon=1))
        else:
            strength, horizon = per_lane("mu", self.mu, lanes), 1
        return FGTSState(
            history=self._empty_history(lanes, problem.dim, keep_sets=bool(strength.any())),
            chains=self._sampler.start(self.prior, streams, chains=2, dim=problem.dim),
            asked=0,
            eta=per_lane("eta", THEORY_ETA if isinstance(self.eta, str) else self.eta, lanes),
            strength=strength,
            horizon=horizon,
            live=problem.live,
        )

    @property
    def _exact_rounds(self) -> int | None:
        # A sample of past sets weighs them alike, and an expansion assumes that old duels stay: forgetting needs neither.
        return self.exact_rounds if self.discount == 1.0 else None

    def _empty_history(self, lanes: int, dim: int, *, keep_sets: bool) -> History | LastDuel:
        if self._sampler.one_pass:
            return LastDuel.start(lanes=lanes, dim=dim)
        return History.start(
            lanes=lanes, dim=dim, keep_sets=keep_sets, discount=float(self.discount), max_sets=self._exact_rounds
        )

    def potential(self, state: FGTSState) -> LinearPotential:
        """The potential of both draws given what was learnt: -log p_1 and -log p_2 of the paper."""
        statistics = state.history.statistics
        terms: list[PriorTerm | PreferenceTerm | FeelGoodTerm] = [
            PriorTerm(self.prior),
            PreferenceTerm(statistics, state.eta),
        ]
        rounds, remembered = state.history.rounds, state.history.effective_rounds
        if state.strength.any():
            # Before the first duel the tilt is there without weight: kernels are compiled for the terms that are there.
            mu = state.strength / math.sqrt(state.horizon or remembered) if rounds else np.zeros_like(state.strength)
            terms.append(FeelGoodTerm.of(statistics, mu))
        lanes, dim, _ = statistics.contrasts.shape
        return LinearPotential(
            *terms,
            lanes=lanes,
            chains=2,
            dim=dim,
            observations=rounds,
            memory=remembered,
            exact_rows=self._exact_rounds,
        )

    def choose(self, state: FGTSState, actions: ActionSet, streams: Streams) -> tuple[Duels, FGTSState]:
        """Draw theta_1 and theta_2 and play the best arm of each."""
        potential = self.potential(state)
        chains = self._sampler.advance(potential, state.chains, streams, state.asked)
        best = actions.best(chains.position)
        duels = Duels(best.row[:, 0], best.row[:, 1], best.features)
        same_arm = self.same_arm_rule(live=state.live)
        if same_arm != "allow" and isinstance(actions, FiniteActions):
            duels, chains = self._separate(same_arm, duels, chains, potential, state.asked, actions, streams)
        elif same_arm != "allow":

            def redraw(attempt: int) -> FloatArray:
                again: FloatArray = self._sampler.advance(potential, chains, streams, state.asked, attempt).position
                return again

            duels = different_points(duels, actions, redraw, chains.position)
        return duels, state._replace(chains=chains, asked=state.asked + 1)

    def _separate(
        self,
        same_arm: str,
        duels: Duels,
        chains: Any,
        potential: LinearPotential,
        asked: int,
        actions: FiniteActions,
        streams: Streams,
    ) -> tuple[Duels, Any]:
        """Give lanes whose two draws agree another second arm; the other lanes keep theirs."""
        first, second = duels.first, duels.second.copy()
        if same_arm == "redraw":
            for attempt in range(1, REDRAWS + 1):
                equal = first == second
                if not equal.any():
                    break
                again = self._sampler.advance(potential, chains, streams, asked, attempt)
                second[equal] = actions.best(again.position).row[equal, 1]
        equal = first == second
        if equal.any():
            second[equal] = runner_up(actions, chains.position[:, 1], first)[equal]
        return duels_between(actions, first, second), chains

    def learn(self, state: FGTSState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> FGTSState:
        """Append the outcomes to the history; the chains move when the next pair is asked for."""
        return state._replace(history=state.history.append(actions, duels, outcomes))

    def same_arm_rule(self, *, live: bool) -> str:
        """What "auto" stands for."""
        return self.same_arm if self.same_arm != "auto" else ("runner-up" if live else "allow")

    def pair_probability(self, state: FGTSState, actions: ActionSet, duels: Duels) -> FloatArray:
        """(lanes,) estimate of how likely these pairs were, in this order, in the state that `choose` returned with them.

        From 256 draws of the normal approximation at the mode, without the Feel-Good tilt. NaN where there is no estimate: on
        continuous sets, and for samplers that know no curvature, such as "paper".
        """
        curvature = getattr(state.chains, "curvature", None)
        if not isinstance(actions, FiniteActions) or curvature is None or curvature.observations < 0:
            return np.full(len(state.eta), np.nan)
        rule, estimates = self.same_arm_rule(live=state.live), np.empty(len(state.eta))
        for lane in range(len(estimates)):
            table = favourites(actions.features[lane] @ normal_draws(curvature, lane, seed=state.asked))
            estimates[lane] = pair_probability(*table, int(duels.first[lane]), int(duels.second[lane]), rule)
        return estimates

    def report(self, state: FGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing, and how many distinct contrasts the likelihood reads."""
        return {
            **self._sampler.report(state.chains),
            "distinct_contrasts": state.history.statistics.n_rows.astype(np.float64),
        }

    @cached_property
    def _sampler(self) -> Sampler:
        return sampler_named(self.sampler) if isinstance(self.sampler, str) else self.sampler
