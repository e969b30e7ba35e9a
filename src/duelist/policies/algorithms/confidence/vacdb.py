"""VACDB: variance-aware elimination in layers, with weighted fits.

Layer l explores pairs wider than 2^-l, each weighted w = 2^-l / |x - y| so that it counts as if it were exactly that wide:

    theta_l = argmin kappa 2^-2l / 2 |theta|^2 + sum_i w_i^2 log(1 + exp(-y_i <theta, z_i>))
    Sigma_l = 2^-2l I + sum_i w_i^2 z_i z_i^T

Once all pairs are narrower than 2^-l, arms further than 2^-l radius below the best estimate are dropped and the next layer
decides. See `duelist.kernels.rules.layers` for the walk. The radius is a constant, or with "variance" that of the theory,

    beta_l = scale 2^-l / kappa (16 sqrt((8 V_l + 18 log(4 (t+1)^2 L T)) log(4 t^2 L T)) + 6 log(4 t^2 L T)) + 2^(1-l)

with V_l = sum_i w_i^2 (o_i - s(<theta_l, z_i>))^2 in layers with 2^l >= 64 L_mu / kappa sqrt(log(4 (t+1)^2 L T)), and the
number of the layer's duels in those below; o_i is 1 where the first arm won and 0 where it lost.

Reference: Di, Jin, Wu, Zhao, Farnoud & Gu (2023), Variance-Aware Regret Bounds for Stochastic Contextual Dueling Bandits, and
their code, github.com/uclaml/VACDB, suplin.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, one_of
from duelist.core.lanes import PerLane, check_per_lane
from duelist.core.streams import Streams
from duelist.policies.parts.layers import Explore, LayeredPolicy, LayeredState
from duelist.typing import FloatArray

EXPLORE = ("optimistic", "widest")
STEEPEST = 0.25  # L_mu: the largest slope of the logistic function


def variance_radius(spread: FloatArray, rounds: int, *, horizon: int, kappa: float, scale: FloatArray) -> FloatArray:
    """The theory's beta (lanes, layers) after so many rounds, with delta = 1/T; `spread` is V, (lanes, layers)."""
    n_layers = spread.shape[1]
    accuracy = 2.0 ** -np.arange(1.0, 1.0 + n_layers)
    now, later = log_factors(rounds, n_layers, horizon)
    wide = 16.0 * accuracy / kappa * np.sqrt((8.0 * spread + 18.0 * later) * now) + 6.0 * accuracy / kappa * now
    return np.asarray(scale[:, None] * wide + 2.0 * accuracy)


def log_factors(rounds: int, n_layers: int, horizon: int) -> tuple[float, float]:
    """log(4 t^2 L / delta) for t = rounds and for the round after, with delta = 1/T."""
    return math.log(4.0 * rounds**2 * n_layers * horizon), math.log(4.0 * (rounds + 1.0) ** 2 * n_layers * horizon)


def stop_width(horizon: int) -> float:
    """The authors' alpha = T^-3/2, the width below which a layer exploits."""
    return 1.0 / (horizon * math.sqrt(horizon))


@dataclass(frozen=True, kw_only=True)
class VACDB(LayeredPolicy):
    """Eliminate arms in layers of accuracy, with duels weighted by their width.

    Args:
        radius: beta, of every layer: the margin of elimination and the weight of optimism; a sequence is one per lane.
            "variance" computes it from the duels of the layer, as the theory does.
        explore: which pair wider than 2^-l to play: the "optimistic" one (largest <theta_l, x + y> + radius |x - y|) or the
            "widest". The authors leave it open.
        layers: how many, at least 2; None for enough to last the horizon.
        horizon: T, for the width alpha = T^-1.5 below which a layer exploits; None takes the simulation's, and where it is
            unknown the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.
        kappa: factor of 2^-2l in the fit, and what the theory's radius divides by; the authors' code has 0.02 in the fit.
        scale: factor of the theory's radius, with radius="variance"; a sequence is one per lane. At 1 no arm is ever dropped.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.VACDB(), env, rounds=300, trials=2, seed=0)
        >>> bool(run.info["explored_layer_1"].min() > 0)
        True
    """

    radius: PerLane | Literal["variance"] = 0.5
    explore: str = "optimistic"
    kappa: float = 1.0
    scale: PerLane = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.radius, str):
            one_of("radius", self.radius, ("variance",))
        check_per_lane("scale", self.scale, above=0.0)
        finite_number("kappa", self.kappa, above=0.0)
        super().__post_init__()
        one_of("explore", self.explore, EXPLORE)

    def constant_radius(self) -> PerLane:
        """The radius, or the factor of the theory's."""
        return self.scale if isinstance(self.radius, str) else self.radius

    def ridges(self, n_layers: int) -> FloatArray:
        """2^-2l for l = 1, 2, ..."""
        return 4.0 ** -np.arange(1.0, 1.0 + n_layers)

    def fit_ridges(self, n_layers: int) -> FloatArray:
        """Kappa 2^-2l for l = 1, 2, ..."""
        return self.kappa * self.ridges(n_layers)

    def radii(self, state: LayeredState) -> FloatArray:
        """The constant in every layer, or the theory's; a layer that has learnt nothing has 2^(1-l)."""
        if not isinstance(self.radius, str):
            return super().radii(state)
        rounds, horizon = max(state.asked, 1), state.settings.horizon or state.asked + 1
        spread = self._spread(state, log_factors(rounds, state.theta.shape[1], horizon)[1])
        beta = variance_radius(spread, rounds, horizon=horizon, kappa=self.kappa, scale=state.settings.radius)
        return np.where(state.info.explored > 0.0, beta, 2.0 ** -np.arange(beta.shape[1]))

    def _spread(self, state: LayeredState, log_factor: float) -> FloatArray:
        """V (lanes, layers): the estimated variance of high layers, the number of duels of low ones."""
        spread = state.info.explored.copy()
        statistics = state.history.live_statistics
        n_layers = state.theta.shape[1]
        for layer in range(n_layers):
            if 2.0 ** (layer + 1) < 64.0 * STEEPEST / self.kappa * math.sqrt(log_factor):
                continue
            for lane in np.flatnonzero(spread[:, layer]):
                group = lane * n_layers + layer
                n = statistics.n_rows[group]
                totals, losses = statistics.totals[group, :n], statistics.losses[group, :n]
                chance = expit(state.theta[lane, layer] @ statistics.contrasts[group, :, :n])
                spread[lane, layer] = (totals - losses) @ (1.0 - chance) ** 2 + losses @ chance**2
        return spread

    def weighs_offsets(self) -> bool:
        """Not where the widest pair explores, whatever the utilities."""
        return self.explore != "widest"

    def exploration(self, state: LayeredState, actions: FiniteActions, streams: Streams) -> Explore:  # noqa: ARG002
        """One of the pairs wider than 2^-l, weighted by its width."""
        stop = np.full(len(state.settings.radius), stop_width(state.settings.horizon or state.asked + 1))
        return Explore(self.explore, stop, weigh_by_width=True)
