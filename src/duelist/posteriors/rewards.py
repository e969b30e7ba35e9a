"""The Feel-Good posterior of a differentiable reward, as a JAX function of theta, and its Gauss-Newton curvature.

    U_j(theta) = precision / 2 |theta|^2 + eta sum_i log(1 + exp(-y_i Delta r_i))
                 - mu sum_i ( max_{a in A_i} r_theta(a) - r_theta(a_i^{3-j}) ),    infinite outside the prior's ball.

A tie, y = 0, is half a win and half a loss: its loss is the mean of the two.

Gauss-Newton leaves out the second derivative of the reward: precision I + eta sum_i s'(Delta r_i) J_i J_i^T with J_i the
gradient of Delta r_i. It is positive definite for every reward, and all that a proposal's shape needs.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Section 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from duelist.history.duel_table import DuelTable
from duelist.posteriors.priors import Prior
from duelist.rewards.base import Reward, require_jax
from duelist.typing import FloatArray, IntArray


class RewardTerms(NamedTuple):
    """What the potential reads, for all lanes: the table of duels and the weights.

    Attributes:
        sets: (lanes, n_sets, n_arms, dim).
        repeats: (lanes, n_sets).
        first: (lanes, capacity) places among all arms of all sets.
        second: (lanes, capacity).
        outcomes: (lanes, capacity), 0 for a tie.
        rounds: (lanes,) duels in use; what comes behind them is padding.
        eta: (lanes,) temper of the likelihood.
        mu: (lanes,) Feel-Good weight.
        precision: (lanes,) of the prior.
        square_radius: (lanes,) of the prior's ball, or infinity.
    """

    sets: FloatArray
    repeats: FloatArray
    first: IntArray
    second: IntArray
    outcomes: FloatArray
    rounds: IntArray
    eta: FloatArray
    mu: FloatArray
    precision: FloatArray
    square_radius: FloatArray

    @classmethod
    def of(cls, table: DuelTable, prior: Prior, eta: FloatArray, mu: FloatArray) -> RewardTerms:
        """The terms of a history."""
        lanes = len(eta)
        repeats = np.repeat(table.repeats[None], lanes, axis=0)
        precision, square_radius = np.full(lanes, float(prior.precision)), np.full(lanes, float(prior.radius) ** 2)
        rounds = np.full(lanes, table.rounds)
        return cls(table.sets, repeats, table.first, table.second, table.outcomes, rounds, eta, mu, precision, square_radius)


def potential_of(reward: Reward) -> Callable[[Any, Any, RewardTerms], Any]:
    """U(theta (parameters,), chain, terms of one lane) as JAX can differentiate it; chain 0 or 1 says whose adversary."""
    jax = require_jax()
    jnp = jax.numpy

    def potential(theta: Any, chain: Any, terms: RewardTerms) -> Any:
        n_sets, n_arms, dim = terms.sets.shape
        values = reward(theta, terms.sets.reshape(n_sets * n_arms, dim))
        first, second = values[terms.first], values[terms.second]
        happened = jnp.arange(len(terms.outcomes)) < terms.rounds
        gap = first - second
        tied = jax.nn.softplus(-gap) + 0.5 * gap
        losses = jnp.where(terms.outcomes == 0.0, tied, jax.nn.softplus(-terms.outcomes * gap))
        loss = jnp.where(happened, losses, 0.0).sum()
        adversary = jnp.where(happened, jnp.where(chain == 0, second, first), 0.0).sum()
        # Where no round offered a set it must not enter: 0 times the maximum would still differentiate padding.
        offered = jnp.where(terms.repeats > 0.0, values.reshape(n_sets, n_arms).max(axis=1), 0.0)
        feel_good = (terms.repeats * offered).sum() - adversary
        square = (theta * theta).sum()
        value = 0.5 * terms.precision * square + terms.eta * loss - terms.mu * feel_good
        return jnp.where(square <= terms.square_radius, value, jnp.inf)

    return potential


def curvature_of(reward: Reward) -> Callable[[Any, RewardTerms], Any]:
    """Gauss-Newton curvature (parameters, parameters) at theta (parameters,) for the terms of one lane."""
    jax = require_jax()
    jnp = jax.numpy

    def difference(theta: Any, pair: Any) -> Any:
        rewards = reward(theta, pair)
        return rewards[0] - rewards[1]

    def curvature(theta: Any, terms: RewardTerms) -> Any:
        arms = terms.sets.reshape(-1, terms.sets.shape[-1])
        pairs = jnp.stack([arms[terms.first], arms[terms.second]], axis=1)
        gaps, slopes = jax.vmap(jax.value_and_grad(difference), in_axes=(None, 0))(theta, pairs)
        happened = jnp.arange(len(terms.outcomes)) < terms.rounds
        weight = jnp.where(happened, jax.nn.sigmoid(gaps) * jax.nn.sigmoid(-gaps), 0.0)
        slopes = jnp.where((weight > 0.0)[:, None], slopes, 0.0)
        flat = jnp.maximum(terms.precision, 1.0 / terms.square_radius)  # a ball alone curves nothing: its width stands in
        return flat * jnp.eye(len(theta)) + terms.eta * (slopes.T * weight) @ slopes

    return curvature


@lru_cache(maxsize=32)
def _compiled_rewards(reward: Reward) -> Any:
    jax = require_jax()
    of_draws = jax.vmap(reward, in_axes=(0, None))
    return jax.jit(jax.vmap(of_draws))


def rewards_of_draws(reward: Reward, theta: FloatArray, features: FloatArray) -> FloatArray:
    """Rewards (lanes, draws, n_arms) of features (lanes, n_arms, dim) under theta (lanes, draws, parameters)."""
    with require_jax().enable_x64(True):
        return np.asarray(_compiled_rewards(reward)(theta, features))


def is_proper(prior: Prior) -> bool:
    """Whether the prior keeps the posterior of any bounded data proper."""
    return prior.precision > 0.0 or math.isfinite(prior.radius)
