"""FGTS on a finite class of models: the exact Feel-Good posterior by enumeration, in log space, a duel at a time.

With models theta_1, ..., theta_N, all equally likely before the first duel, draw j = 1, 2 is model n with log probability

    log p_j(n) = eta sum_i log s(y_i (r_n(a_i^1) - r_n(a_i^2)))
                 + mu sum_i ( max_{a' in A_i} r_n(a') - r_n(a_i^{3-j}) ) + constant,

r_n(a) = <theta_n, phi(a)>, or any rewards given as a table. Each draw plays its model's best arm. Both sums are kept, so a duel
costs O(N dim) whatever came before, and no sampler stands between the posterior and the draws.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, the nonlinear theorem with finite Theta.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, check_outcomes, duels_between
from duelist.kernels.rules.finite_models import draw_lanes, learn_lanes
from duelist.policies.base import Policy
from duelist.policies.parts.feel_good import FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.same_arm import (
    DRAWS,
    SameArm,
    best_other,
    check_same_arm,
    require_finite,
    resolve_same_arm,
    separate_arms,
    separate_points,
)
from duelist.posteriors.priors import Gaussian, Prior, check_prior
from duelist.typing import FloatArray, IntArray

_REMEMBERED_SETS = 16  # action sets whose maxima are kept, (lanes, N) numbers each
# Rows of numbers. (A list, and not a Sequence, which would mean one number per lane.)
Table = list[list[float]] | tuple[tuple[float, ...], ...] | FloatArray


@stored("finite-models-state", version=2, upgrade=nest(settings=FeelGoodSettings))
class FiniteModelsState(NamedTuple):
    """What is known of every model.

    Attributes:
        models: (N, dim) or, of a reward table, (N, n_arms).
        log_likelihood: (lanes, N) sum of log P(y_i), not tempered.
        gain: (lanes, 2, N) Feel-Good sums of draw 1 and draw 2.
        maxima: (lanes, N) utility of each model's best arm, of the sets offered lately, by their fingerprint.
        rounds: duels learnt.
        asked: pairs asked for; it names the next random numbers.
        settings: temper and Feel-Good weight, one number per lane.
    """

    models: FloatArray
    log_likelihood: FloatArray
    gain: FloatArray
    maxima: dict[str, FloatArray]
    rounds: int
    asked: int
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class FiniteModels(Policy[FiniteModelsState]):
    """Feel-Good Thompson sampling over a list of models, exact by enumeration.

    Args:
        models: (N, dim) one parameter vector per row; or a whole number, for that many draws from `prior`.
        rewards: (N, n_arms) reward of every arm under every model, instead of parameters: arms are then known by their row, and
            every round must offer n_arms of them. Rewards need not be linear in anything.
        eta: temper of the likelihood; 1 is Bayes' rule.
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling.
        mu: Feel-Good weight itself, instead of alpha.
        horizon: rounds to be played; None takes the simulation's, and live the anytime schedule alpha / sqrt(t).
        prior: what a number of `models` is drawn from.
        same_arm: when both draws pick one arm: "allow" plays it against itself, "runner-up" plays the second model's second
            best; "auto" allows it in simulation and takes the runner-up live.

    Example:
        >>> import duelist
        >>> run = duelist.simulate(FiniteModels(models=200), duelist.LinearDuels(dim=4, arms=8), rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 120)
        True
    """

    models: int | Table = 1000
    rewards: Table | None = None
    eta: PerLane = 1.0
    alpha: PerLane = 0.1
    mu: PerLane | None = None
    horizon: int | None = None
    prior: Prior = field(default_factory=Gaussian)
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        for name in ("models", "rewards"):
            value = getattr(self, name)
            if name == "models" and isinstance(value, int | np.integer):
                whole_number("models", value, at_least=1)
            elif value is not None:
                # Tuples: a policy is a value, which can be compared and written down.
                object.__setattr__(self, name, _as_table(name, value))
        check_per_lane("eta", self.eta, at_least=0.0)
        check_feel_good(1.0, self.alpha, self.mu, self.horizon)
        check_same_arm(self.same_arm, DRAWS)
        check_prior(self.prior)

    @cached_property
    def _listed(self) -> FloatArray | None:
        given = self.models if self.rewards is None else self.rewards
        return None if isinstance(given, int | np.integer) else np.array(given)

    def start(self, problem: Problem, streams: Streams) -> FiniteModelsState:
        """Every model equally likely."""
        lanes = problem.lanes
        models = self._listed
        if models is None:
            # Of the seed alone: the same models in every lane.
            generator = Streams(streams.seed, [0]).generator("models", 0)
            models = np.array([self.prior.sample(generator, problem.dim) for _ in range(int(np.asarray(self.models)))])
        elif self.rewards is None and models.shape[1] != problem.dim:
            raise InvalidInputError(
                f"models must be (N, {problem.dim}), as feature vectors have length {problem.dim}; got {models.shape}."
            )
        return FiniteModelsState(
            models=models,
            log_likelihood=np.zeros((lanes, len(models))),
            gain=np.zeros((lanes, 2, len(models))),
            maxima={},
            rounds=0,
            asked=0,
            settings=feel_good_settings(problem, eta=self.eta, alpha=self.alpha, mu=self.mu, horizon=self.horizon),
        )

    def log_posterior(self, state: FiniteModelsState) -> FloatArray:
        """(lanes, 2, N) log probability of every model for draw 1 and draw 2."""
        eta, mu = state.settings.eta, state.settings.mu(state.rounds)
        weights = eta[:, None, None] * state.log_likelihood[:, None] + mu[:, None, None] * state.gain
        top = weights.max(axis=2, keepdims=True)
        return np.asarray(weights - top - np.log(np.exp(weights - top).sum(axis=2, keepdims=True)))

    def choose(self, state: FiniteModelsState, actions: ActionSet, streams: Streams) -> tuple[Duels, FiniteModelsState]:
        """Draw two models and play the best arm of each."""
        asked = state._replace(asked=state.asked + 1)
        apart = resolve_same_arm(self.same_arm, DRAWS, live=state.settings.live) is not SameArm.ALLOW
        drawn = self._draw(state, streams, 0)
        if self.rewards is not None:
            return self._rows(state, self._arms(actions), drawn, apart=apart), asked
        theta = state.models[drawn]
        best = actions.best(theta)
        duels = Duels(best.row[:, 0], best.row[:, 1], best.features)
        if apart and isinstance(actions, FiniteActions):
            duels = separate_arms(duels, actions, None, theta)
        elif apart:
            duels = separate_points(duels, actions, lambda n: state.models[self._draw(state, streams, n)], theta)
        return duels, asked

    def _draw(self, state: FiniteModelsState, streams: Streams, attempt: int) -> IntArray:
        drawn = np.empty((len(state.log_likelihood), 2), dtype=np.int64)
        eta, mu, keys = state.settings.eta, state.settings.mu(state.rounds), streams.keys("models")
        draw_lanes(drawn, state.log_likelihood, state.gain, eta, mu, keys, state.asked, attempt)
        return drawn

    def _rows(self, state: FiniteModelsState, actions: FiniteActions, drawn: IntArray, *, apart: bool) -> Duels:
        """The pair of a reward table, whose models know arms by their rows."""
        rewards = state.models[drawn]
        if actions.offsets is not None:
            rewards = rewards + actions.offsets[:, None]
        first = np.argmax(rewards[:, 0], axis=1)
        return duels_between(actions, first, best_other(rewards[:, 1], first) if apart else np.argmax(rewards[:, 1], axis=1))

    def _arms(self, actions: ActionSet) -> FiniteActions:
        arms = require_finite(self, actions)
        if self._listed is not None and arms.n_arms != self._listed.shape[1]:
            raise InvalidInputError(
                f"rewards has {self._listed.shape[1]} arms per model and this round offers {arms.n_arms}. A reward table knows "
                f"arms by their row; offer all of them every round, or give models= for arms that come and go."
            )
        return arms

    def learn(self, state: FiniteModelsState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> FiniteModelsState:
        """Add the outcomes to the sums of every model."""
        lanes = len(state.log_likelihood)
        check_outcomes(outcomes, lanes)
        if duels.features.shape[:2] != (lanes, 2) or (actions.lanes, actions.dim) != (lanes, duels.features.shape[2]):
            raise InvalidInputError(
                f"duels must have features ({lanes}, 2, {actions.dim}); got {duels.features.shape}. Use the duels that choose "
                f"returned."
            )
        if self.rewards is None:
            shown = np.ascontiguousarray(duels.features)
        else:
            shown = np.eye(self._arms(actions).n_arms)[np.stack([duels.first, duels.second], axis=1)]
        maxima = self._with_maxima(state, actions)
        log_likelihood, gain = state.log_likelihood.copy(), state.gain.copy()
        columns = np.ascontiguousarray(state.models.T)
        learn_lanes(log_likelihood, gain, columns, shown, maxima[actions.digest.hex()], outcomes.astype(np.int64))
        return state._replace(log_likelihood=log_likelihood, gain=gain, maxima=maxima, rounds=state.rounds + 1)

    def _with_maxima(self, state: FiniteModelsState, actions: ActionSet) -> dict[str, FloatArray]:
        """The remembered maxima, with those of this set among them."""
        name = actions.digest.hex()
        if name in state.maxima:
            return state.maxima
        lanes = len(state.log_likelihood)
        if self.rewards is None:
            theta = np.ascontiguousarray(np.broadcast_to(state.models, (lanes, *state.models.shape)))
            found = actions.best(theta).value
        else:
            found = np.ascontiguousarray(np.broadcast_to(state.models.max(axis=1), (lanes, len(state.models))))
        kept = list(state.maxima.items())[1 - _REMEMBERED_SETS :]
        return {**dict(kept), name: found}

    def follows_sets(self) -> bool:
        """Asking only counts; but a table of rewards wants to see all of its arms."""
        return self.rewards is not None

    def weighs_offsets(self) -> bool:
        """Models play the best arm by utility and offset."""
        return True

    def report(self, state: FiniteModelsState) -> dict[str, FloatArray]:
        """How many models are still in play: the exponential of the posterior's entropy, for draw 1."""
        logs = self.log_posterior(state)[:, 0]
        return {"effective_models": np.exp(-(np.exp(logs) * logs).sum(axis=1))}


def _as_table(name: str, value: Any) -> tuple[tuple[float, ...], ...]:
    table = finite_array(name, value, "(N, dim)" if name == "models" else "(N, n_arms)", 2)
    if 0 in table.shape or (name == "rewards" and table.shape[1] < 2):
        raise InvalidInputError(f"{name} must list at least one model, of at least one number each; got shape {table.shape}.")
    return tuple(map(tuple, table.tolist()))
