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
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.history.last_duel import LastDuel
from duelist.history.statistics import Statistics
from duelist.policies.base import Policy
from duelist.policies.parts.confidence import warn_of_large_dim
from duelist.policies.parts.feel_good import FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.pair_probability import Pair, follow_duels, liked_under, pair_probability
from duelist.policies.parts.same_arm import (
    DRAWS_AGAIN,
    SameArm,
    check_same_arm,
    pair_draws,
    resolve_same_arm,
)
from duelist.posteriors.linear import LinearPotential, likelihood_from
from duelist.posteriors.priors import Gaussian, Prior, check_prior
from duelist.samplers.base import OnePassSampler, Sampler
from duelist.samplers.curvature import flat_precision, unknown_curvature
from duelist.samplers.expansion import no_expansion, prepare_terms
from duelist.samplers.peaks import excess_energy, excess_limit
from duelist.samplers.registry import sampler_named
from duelist.theory.linear_bounds import theory_mu
from duelist.typing import FloatArray, IntArray

_SETS_AT_TENTH = 128  # that "auto" reads one by one at alpha 0.1; of more, a sample of a quarter
_SETTLE = 4  # calls of the sampler before its chains are checked


@stored("fgts-state", version=2, upgrade=nest(settings=FeelGoodSettings))
class FGTSState(NamedTuple):
    """What FGTS has learnt.

    Attributes:
        history: every duel learnt so far; with a one-pass sampler the newest alone.
        chains: the sampler's chains, two per lane.
        asked: pairs asked for so far; it names the next random numbers.
        settings: temper and Feel-Good weight, one number per lane.
    """

    history: History | LastDuel
    chains: Any
    asked: int
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class FGTS(Policy[FGTSState]):
    """Feel-Good Thompson sampling.

    Args:
        eta: temper of the likelihood; 1 as in the paper's experiments, or "theory" for the theorem's 1/4.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). The experiments use 0.1; 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha; or "theory" for 1 / (10 e^B sqrt(horizon)), B the prior's radius.
        horizon: rounds to be played. None takes the simulation's number of rounds, and where it is unknown, as in live
            use, the anytime schedule mu_t = alpha / sqrt(t) on the whole history of t rounds.
        prior: `Gaussian`, `UniformBall` or `GaussianBall`; the paper does not state its own.
        sampler: "mala" (exact, the default), "polya_gamma" (exact, slower), "paper" (the paper's Langevin recipe, biased),
            "langevin" (biased), "laplace", "sgld_cv", "online" (approximate; the last keeps no history), or a sampler object.
        same_arm: when both draws pick one arm: "allow" plays it against itself (the paper), "redraw" draws theta_2 again up
            to 8 times and then takes the runner-up, "runner-up" plays theta_2's second best. "auto" allows it in simulation
            and takes the runner-up live, where a person would see the same thing twice. A continuous set has no runner-up:
            there "runner-up" draws again, like "redraw", and at last plays the point that theta_2 likes least.
        discount: forgetting, for tastes that drift: every vote multiplies the weight of all votes before it by this, in the
            likelihood and the Feel-Good term alike. 0.999 remembers about the last thousand votes; 1 never forgets. The
            anytime schedule then counts remembered rounds.
        exact_rounds: distinct contrasts up to which all of them are read one by one, which is all there ever are with a fixed
            set of arms. With more, the likelihood is read through its second-order expansion around the mode, so that a round
            costs the same however many came before. None stays exact at a cost that grows with every round, as does a
            history that forgets.
        exact_sets: distinct action sets up to which the Feel-Good maximum is taken over every one, as in the paper; with more,
            or with sets so large that they would be slow to read, over a sample. "auto" is 128 at alpha 0.1 and grows with
            alpha squared, as the noise of a sample does. None, or exact_rounds=None, takes all.

    eta, alpha and mu may also be sequences, one number per lane: a grid that advances in lock step.

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
    exact_sets: int | Literal["auto"] | None = "auto"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        check_feel_good(self.eta, self.alpha, None if isinstance(self.mu, str) else self.mu, self.horizon)
        if isinstance(self.mu, str):
            one_of("mu", self.mu, ("theory",))
            if not math.isfinite(self.prior.radius):
                raise InvalidInputError(
                    'mu="theory" is 1 / (10 e^B sqrt(T)) with B a bound on |theta|; the prior has none. '
                    "Use prior=UniformBall(B) or GaussianBall(scale, B)."
                )
        check_same_arm(self.same_arm, DRAWS_AGAIN)
        finite_number("discount", self.discount, above=0.0, at_most=1.0)
        if self._sampler.one_pass and self.discount < 1.0:
            raise InvalidInputError(
                f"a one-pass sampler never looks back at a duel and cannot forget it; got discount {self.discount:g} with "
                f"sampler {self.sampler!r}. Use another sampler, or discount=1."
            )
        if self.exact_rounds is not None:
            whole_number("exact_rounds", self.exact_rounds, at_least=8)
        if isinstance(self.exact_sets, str):
            one_of("exact_sets", self.exact_sets, ("auto",))
        elif self.exact_sets is not None:
            whole_number("exact_sets", self.exact_sets, at_least=8)

    @classmethod
    def recommended(cls, *, feature_size: float = 1.0) -> FGTS:
        """The setting that lost least regret over our families of problems; `FGTS()` is the paper's.

        A sharper posterior, a narrow prior and hardly any tilt: eta 2, alpha 0.01, prior scale 0.25 / feature_size.
        `dataclasses.replace` changes other fields.

        Args:
            feature_size: the typical size of one entry of the features. The prior's scale goes by it, because utilities do.

        Example:
            >>> policy = FGTS.recommended(feature_size=0.5)
            >>> policy.eta, policy.alpha, policy.prior
            (2.0, 0.01, Gaussian(scale=0.5))
        """
        finite_number("feature_size", feature_size, above=0.0)
        return cls(eta=2.0, alpha=0.01, prior=Gaussian(0.25 / feature_size))

    def start(self, problem: Problem, streams: Streams) -> FGTSState:
        """No duels yet, and chains at draws from the prior."""
        warn_of_large_dim("FGTS", problem.dim)
        # The theorem's mu is a strength over the root of the horizon, as alpha is.
        alpha = theory_mu(self.prior.radius, horizon=1) if isinstance(self.mu, str) else self.alpha
        mu = None if isinstance(self.mu, str) else self.mu
        settings = feel_good_settings(problem, eta=self.eta, alpha=alpha, mu=mu, horizon=self.horizon)
        return FGTSState(
            history=self._empty_history(problem.lanes, problem.dim, settings),
            chains=self._sampler.start(self.prior, streams, chains=2, dim=problem.dim),
            asked=0,
            settings=settings,
        )

    @property
    def _exact_rounds(self) -> int | None:
        # A sample of past sets weighs them alike, and an expansion assumes that old duels stay: forgetting needs neither.
        return self.exact_rounds if self.discount == 1.0 else None

    def _exact_sets(self, settings: FeelGoodSettings) -> int | None:
        rounds = self._exact_rounds
        if rounds is None or self.exact_sets is None:
            return None
        if not isinstance(self.exact_sets, str):
            return min(rounds, self.exact_sets)
        # A weight that does not fall with the horizon is a stronger one every round.
        strength = float(settings.strength.max()) if settings.horizon != 1 else math.inf
        return int(min(rounds, _SETS_AT_TENTH * max(strength / 0.1, 1.0) ** 2))

    def _empty_history(self, lanes: int, dim: int, settings: FeelGoodSettings) -> History | LastDuel:
        if self._sampler.one_pass:
            return LastDuel.start(lanes=lanes, dim=dim)
        return History.start(
            lanes=lanes,
            dim=dim,
            keep_sets=bool(settings.strength.any()),
            discount=float(self.discount),
            max_sets=self._exact_sets(settings),
        )

    def potential(self, state: FGTSState) -> LinearPotential:
        """The potential of both draws given what was learnt: -log p_1 and -log p_2 of the paper."""
        return self._potential(state, state.history.statistics)

    def _potential(self, state: FGTSState, statistics: Statistics) -> LinearPotential:
        rounds, remembered = state.history.rounds, state.history.effective_rounds
        settings, mu = state.settings, None
        if settings.strength.any():
            # Before the first duel the tilt is there without weight: kernels are compiled for the terms that are there.
            mu = settings.mu(remembered) if rounds else np.zeros_like(settings.strength)
        return LinearPotential.of(
            self.prior,
            statistics,
            eta=settings.eta,
            mu=mu,
            observations=rounds,
            memory=remembered,
            exact_rows=self._exact_rounds,
        )

    def choose(self, state: FGTSState, actions: ActionSet, streams: Streams) -> tuple[Duels, FGTSState]:
        """Draw theta_1 and theta_2 and play the best arm of each."""
        # Views are enough: nobody has the potential after this round.
        potential = self._potential(state, state.history.live_statistics)
        chains = self._sampler.advance(potential, state.chains, streams, state.asked)

        def redraw(attempt: int) -> FloatArray:
            again: FloatArray = self._sampler.advance(potential, chains, streams, state.asked, attempt).position
            return again

        same_arm = resolve_same_arm(self.same_arm, DRAWS_AGAIN, live=state.settings.live)
        duels = pair_draws(actions, chains.position, redraw, same_arm)
        return duels, state._replace(chains=chains, asked=state.asked + 1)

    def learn(self, state: FGTSState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> FGTSState:
        """Append the outcomes to the history; the chains move when the next pair is asked for."""
        state = state._replace(history=state.history.append(actions, duels, outcomes))
        if not self._sampler.one_pass:
            return state
        # Now, since the next answer may come before the next question, and takes the place of this one in the history.
        one_pass = cast(OnePassSampler, self._sampler)
        return state._replace(chains=one_pass.absorb(self._potential(state, state.history.live_statistics), state.chains))

    def pair_probability(self, state: FGTSState, actions: ActionSet, duels: Duels) -> FloatArray:
        """(lanes,) estimate of how likely these pairs were, in this order, in the state that `choose` returned with them.

        From up to 1,024 draws of the normal approximation at the mode, without the Feel-Good tilt. NaN where there is no
        estimate: on continuous sets, and for samplers that know no curvature, such as "paper".
        """
        return self._probability(state, actions, duels, both_orders=False)

    def unordered_probability(self, state: FGTSState, actions: ActionSet, duels: Duels) -> FloatArray:
        """The same for both orders together, from the same draws."""
        return self._probability(state, actions, duels, both_orders=True)

    def _probability(self, state: FGTSState, actions: ActionSet, duels: Duels, *, both_orders: bool) -> FloatArray:
        curvature = getattr(state.chains, "curvature", None)
        estimates = np.full(len(state.settings.eta), np.nan)
        if not isinstance(actions, FiniteActions) or curvature is None or curvature.observations < 0:
            return estimates
        if curvature.observations != state.history.rounds:
            likelihood = likelihood_from(state.history.live_statistics, state.settings.eta)
            precision = np.full(len(estimates), self.prior.precision + flat_precision(self.prior, actions.dim))
            curvature = follow_duels(curvature, likelihood, precision)
        rule = resolve_same_arm(self.same_arm, DRAWS_AGAIN, live=state.settings.live)
        for lane in range(len(estimates)):
            pair = Pair(int(duels.first[lane]), int(duels.second[lane]), turn=state.asked)
            if pair.first == pair.second and rule is not SameArm.ALLOW:
                estimates[lane] = 0.0
                continue
            offsets = None if actions.offsets is None else actions.offsets[lane]
            liked = liked_under(curvature, lane, actions.features[lane], offsets, pair)
            estimates[lane] = pair_probability(liked, rule, either_order=both_orders and pair.first != pair.second)
        return estimates

    def estimated_utilities(self, state: FGTSState, actions: FiniteActions) -> FloatArray:
        """Utilities at the mode of the likelihood and the prior; NaN for samplers that know no mode, such as "paper"."""
        curvature = getattr(state.chains, "curvature", None)
        if curvature is None or curvature.observations < 0:
            return super().estimated_utilities(state, actions)
        return actions.utilities(curvature.mode)

    def drawn_utilities(self, state: FGTSState, features: FloatArray) -> FloatArray:
        """Utilities under theta_1 and theta_2."""
        position: FloatArray = state.chains.position
        return position @ features.transpose(0, 2, 1)

    def believed_prior(self) -> Prior:
        """The prior of the posterior that is drawn from."""
        return self.prior

    def keeps_sets(self) -> bool:
        """Only for the Feel-Good maximum."""
        return self._tilts

    def follows_sets(self) -> bool:
        """Chains move with what was learnt, whatever is on offer."""
        return False

    def running_belief(self, state: FGTSState) -> tuple[FloatArray, FloatArray] | None:
        """The Gaussian of a one-pass sampler; None for the others, which keep every vote."""
        if not self._sampler.one_pass:
            return None
        # Before the first question this is what makes the prior the belief; later there is nothing left to absorb.
        chains = cast(OnePassSampler, self._sampler).absorb(self._potential(state, state.history.live_statistics), state.chains)
        return chains.curvature.mode, chains.curvature.whitener

    def forgetting(self) -> float:
        """The discount."""
        return float(self.discount)

    def weighs_offsets(self) -> bool:
        """Draws play the best arm by utility and offset."""
        return True

    def report(self, state: FGTSState) -> dict[str, FloatArray]:
        """How the sampler is doing, how many distinct contrasts the likelihood reads, and whether the chains can be trusted.

        nats_above_best is the potential of the higher chain above the best point that descents from other starts find, and
        converged is 1 where that is no more than a draw's own share.
        """
        statistics = state.history.live_statistics
        found = {**self._sampler.report(state.chains), "distinct_contrasts": statistics.n_rows.astype(np.float64)}
        potential = self._potential(state, statistics)
        if self._sampler.one_pass or potential.needs_python:
            return found
        lanes, _, dim = state.chains.position.shape
        if potential.tilt is None:  # one peak, which no chain misses: a live report need not fit a long history for that
            return {**found, "nats_above_best": np.zeros(lanes), "converged": np.ones(lanes)}
        chains, streams = state.chains, Streams(0, [0] * lanes)  # a lane alone is told the same as in a block
        for call in range(_SETTLE):  # the chains stand where they were drawn, before the last duel
            chains = self._sampler.advance(potential, chains, streams, call)
        curvature, _, terms = prepare_terms(unknown_curvature(lanes, dim), no_expansion(lanes, dim), potential)
        excess = excess_energy(terms, curvature, chains.position).max(axis=1)
        converged = (excess <= excess_limit(dim)).astype(np.float64)
        return {**found, "nats_above_best": excess, "converged": converged}

    @cached_property
    def _tilts(self) -> bool:
        return isinstance(self.mu, str) or bool(np.any(self.alpha if self.mu is None else self.mu))

    @cached_property
    def _sampler(self) -> Sampler:
        return sampler_named(self.sampler) if isinstance(self.sampler, str) else self.sampler
