"""VACDB: variance-aware elimination in layers, with weighted fits.

Layer l explores pairs wider than 2^-l, each weighted w = 2^-l / |x - y| so that it counts as if it were exactly that wide:

    theta_l = argmin 2^-2l / 2 |theta|^2 + sum_i w_i^2 log(1 + exp(-y_i <theta, z_i>))
    Sigma_l = 2^-2l I + sum_i w_i^2 z_i z_i^T

Once all pairs are narrower than 2^-l, arms further than 2^-l radius below the best estimate are dropped and the next layer
decides. See `duelist.policies.layer_kernels` for the walk.

Reference: Di, Jin, Wu, Zhao, Farnoud & Gu (2023), Variance-Aware Regret Bounds for Stochastic Contextual Dueling Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, one_of, whole_number
from duelist.core.duels import Duels
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.layers import (
    LayeredState,
    choose_layered,
    layer_count,
    learn_layered,
    report_layered,
    start_layers,
)
from duelist.policies.ucb import check_ucb

EXPLORE = ("optimistic", "widest")


def stop_width(horizon: int) -> float:
    """The authors' alpha = T^-3/2, the width below which a layer exploits."""
    return 1.0 / (horizon * math.sqrt(horizon))


def layer_ridges(n_layers: int) -> FloatArray:
    """2^-2l for l = 1, 2, ..., what each layer's fit and matrix start from: (n_layers,)."""
    return 4.0 ** -np.arange(1.0, 1.0 + n_layers)


@dataclass(frozen=True, kw_only=True)
class VACDB:
    """Eliminate arms in layers of accuracy, with duels weighted by their width.

    Args:
        radius: beta, of every layer: the margin of elimination and the weight of optimism; a sequence is one a lane.
        explore: which pair wider than 2^-l to play: the "optimistic" one (largest <theta_l, x + y> + radius |x - y|) or the
            "widest". The authors leave it open.
        layers: how many, at least 2; None for enough to last the horizon.
        horizon: T, for the width alpha = T^-1.5 below which a layer exploits; None takes the simulation's, and where nobody
            knows it the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.VACDB(), env, rounds=300, trials=2, seed=0)
        >>> bool(run.info["explored_layer_1"].min() > 0)
        True
    """

    radius: PerLane = 0.5
    explore: str = "optimistic"
    layers: int | None = None
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, 1.0, self.same_arm)
        one_of("explore", self.explore, EXPLORE)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        layer_count(self.layers, self.horizon)

    def start(self, problem: Problem, streams: Streams) -> LayeredState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt in any layer."""
        ridge = layer_ridges(layer_count(self.layers, self.horizon or problem.horizon))
        return start_layers(problem, radius=self.radius, ridge=ridge, horizon=self.horizon, same_arm=self.same_arm)

    def choose(self, state: LayeredState, actions: ActionSet, streams: Streams) -> tuple[Duels, LayeredState]:
        """Walk up the layers until one exploits or explores."""
        stop = np.full(len(state.radius), stop_width(state.horizon or state.asked + 1))
        return choose_layered(self, state, actions, streams, rule=self.explore, stop=stop, weigh_by_width=True)

    def learn(self, state: LayeredState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LayeredState:
        """Teach the layer that explored."""
        return learn_layered(state, actions, duels, outcomes)

    def report(self, state: LayeredState) -> dict[str, FloatArray]:
        """How the layers were used."""
        return report_layered(state)
