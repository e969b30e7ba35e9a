"""Sta'D: stagewise elimination, with duels counted in full.

The walk of `duelist.policies.layer_kernels` with weight 1 in every layer, a common ridge, and a stop test on widths at most
1 / (radius sqrt(T)).

Reference: Saha (2021), Optimal Algorithms for Stochastic Contextual Preference Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, finite_number, one_of, whole_number
from duelist.core.duels import Duels
from duelist.core.lanes import PerLane, Problem, check_per_lane
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


def stop_width(radius: FloatArray, horizon: int) -> FloatArray:
    """1 / (beta sqrt(T)), the width (lanes,) below which a stage exploits."""
    return 1.0 / (radius * math.sqrt(horizon))


@dataclass(frozen=True, kw_only=True)
class StaD:
    """Eliminate arms stage by stage.

    Args:
        radius: confidence radius, above 0: the margin of elimination is 2^-l radius; a sequence is one a lane.
        ridge: lambda of every stage's fit and matrix.
        explore: which pair wider than 2^-l to play: "optimistic" or "widest".
        layers: number of stages, at least 2; None for enough to last the horizon.
        horizon: T, for the stop test; None takes the simulation's, and where nobody knows it the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.StaD(), env, rounds=300, trials=2, seed=0)
        >>> bool(run.info["explored_layer_1"].min() > 0)
        True
    """

    radius: PerLane = 1.0
    ridge: float = 2.0
    explore: str = "optimistic"
    layers: int | None = None
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, finite_number("ridge", self.ridge, above=0.0), self.same_arm)
        check_per_lane("radius", self.radius, above=0.0)  # the stop test divides by it
        one_of("explore", self.explore, EXPLORE)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        layer_count(self.layers, self.horizon)

    def start(self, problem: Problem, streams: Streams) -> LayeredState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt in any stage."""
        ridge = np.full(layer_count(self.layers, self.horizon or problem.horizon), self.ridge)
        return start_layers(problem, radius=self.radius, ridge=ridge, horizon=self.horizon, same_arm=self.same_arm)

    def choose(self, state: LayeredState, actions: ActionSet, streams: Streams) -> tuple[Duels, LayeredState]:
        """Walk up the stages until one exploits or explores."""
        stop = stop_width(state.radius, state.horizon or state.asked + 1)
        return choose_layered(self, state, actions, streams, rule=self.explore, stop=stop, weigh_by_width=False)

    def learn(self, state: LayeredState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LayeredState:
        """Teach the stage that explored."""
        return learn_layered(state, actions, duels, outcomes)

    def report(self, state: LayeredState) -> dict[str, FloatArray]:
        """How the stages were used."""
        return report_layered(state)
