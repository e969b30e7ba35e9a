"""The fit of a differentiable reward to duels, and its gradients as features: what neural confidence bounds are made of.

    theta_t = argmin  ridge/2 |theta - theta_0|^2 + sum_i log(1 + exp(-y_i (h_i - h'_i))),    h = r_theta - r_theta_0,

by damped Gauss-Newton steps from the last fit. Rewards and gradients come from JAX, the algebra from NumPy. A tie is half a win
each way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from duelist.history.duel_table import DuelTable
from duelist.rewards.base import Reward, check_rewards, require_jax
from duelist.typing import FloatArray

_HALVINGS = 8


class Gradients(NamedTuple):
    """Rewards (lanes, n) and their gradients (lanes, n, parameters)."""

    values: FloatArray
    slopes: FloatArray


@lru_cache(maxsize=32)
def _compiled(reward: Reward) -> Any:
    jax = require_jax()

    def of_one(theta: Any, features: Any) -> Any:
        return reward(theta, features[None])[0]

    of_arms = jax.vmap(jax.value_and_grad(of_one), in_axes=(None, 0))
    return jax.jit(jax.vmap(of_arms))


def gradients_of(reward: Reward, theta: FloatArray, features: FloatArray) -> Gradients:
    """Rewards and gradients of features (lanes, n, dim) at theta (lanes, parameters); refused where they are not finite."""
    with require_jax().enable_x64(True):
        values, slopes = (np.asarray(part) for part in _compiled(reward)(theta, features))
    check_rewards(values, reward.bound)
    check_rewards(slopes, np.inf)
    return Gradients(values, slopes)


def all_arms(table: DuelTable) -> FloatArray:
    """(lanes, n_sets * n_arms, dim) the arms that the places of a table count."""
    lanes, _, _, dim = table.sets.shape
    return table.sets.reshape(lanes, -1, dim)


def contrasts_of(table: DuelTable, rows: FloatArray) -> FloatArray:
    """(lanes, rounds, ...) of the first arm less that of the second, for every duel, of rows (lanes, n_sets * n_arms, ...)."""
    lanes, n = np.arange(len(rows))[:, None], table.rounds
    return np.asarray(rows[lanes, table.first[:, :n]] - rows[lanes, table.second[:, :n]])


def fit_reward(
    reward: Reward, table: DuelTable, theta: FloatArray, centre: FloatArray, ridge: FloatArray, *, steps: int
) -> FloatArray:
    """(lanes, parameters) theta after some Gauss-Newton steps; no step makes the loss larger.

    Args:
        reward: r.
        table: every duel.
        theta: (lanes, parameters) where the steps begin.
        centre: (lanes, parameters) theta_0.
        ridge: (lanes,).
        steps: how many.
    """
    arms, wins = all_arms(table), 0.5 * (1.0 + table.outcomes[:, : table.rounds])
    initial = contrasts_of(table, gradients_of(reward, centre, arms).values)
    found = gradients_of(reward, theta, arms)

    def loss_of(at: FloatArray, values: FloatArray) -> FloatArray:
        gaps = contrasts_of(table, values) - initial
        losses = (np.logaddexp(0.0, gaps) - wins * gaps).sum(axis=1)
        return np.asarray(losses + 0.5 * ridge * ((at - centre) ** 2).sum(axis=1))

    loss = loss_of(theta, found.values)
    for _ in range(steps):
        slopes = contrasts_of(table, found.slopes)
        chance = expit(contrasts_of(table, found.values) - initial)
        pull = ridge[:, None] * (theta - centre) + np.einsum("lnp,ln->lp", slopes, chance - wins)
        weighted = np.swapaxes(slopes * (chance * (1.0 - chance))[:, :, None], 1, 2)
        curvature = weighted @ slopes + ridge[:, None, None] * np.eye(theta.shape[1])
        move, size = np.linalg.solve(curvature, pull[:, :, None])[:, :, 0], np.ones(len(theta))
        for _ in range(_HALVINGS):
            trial = theta - size[:, None] * move
            at_trial = gradients_of(reward, trial, arms)
            reached = loss_of(trial, at_trial.values)
            worse = reached > loss
            if not worse.any():
                break
            size = np.where(worse, 0.5 * size, size)
        theta = np.where(worse[:, None], theta, trial)
        loss = np.where(worse, loss, reached)
        found = Gradients(
            np.where(worse[:, None], found.values, at_trial.values),
            np.where(worse[:, None, None], found.slopes, at_trial.slopes),
        )
    return theta
