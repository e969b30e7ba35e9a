"""Sta'D: stagewise elimination, with duels counted in full.

The walk of `duelist.kernels.rules.layers` with weight 1 in every layer, a common ridge, and a stop test on widths at most
1 / (radius sqrt(T)).

Reference: Saha (2021), Optimal Algorithms for Stochastic Contextual Preference Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, one_of
from duelist.core.lanes import PerLane, check_per_lane
from duelist.core.streams import Streams
from duelist.policies.parts.layers import Explore, LayeredPolicy, LayeredState
from duelist.typing import FloatArray

EXPLORE = ("optimistic", "widest")


def stop_width(radius: FloatArray, horizon: int) -> FloatArray:
    """1 / (beta sqrt(T)), the width (lanes,) below which a stage exploits."""
    return 1.0 / (radius * math.sqrt(horizon))


@dataclass(frozen=True, kw_only=True)
class StaD(LayeredPolicy):
    """Eliminate arms stage by stage.

    Args:
        radius: confidence radius, above 0: the margin of elimination is 2^-l radius; a sequence is one per lane.
        ridge: lambda of every stage's fit and matrix.
        explore: which pair wider than 2^-l to play: "optimistic" or "widest".
        layers: number of stages, at least 2; None for enough to last the horizon.
        horizon: T, for the stop test; None takes the simulation's, and where it is unknown the rounds asked so far.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("radius", self.radius, above=0.0)  # the stop test divides by it
        finite_number("ridge", self.ridge, above=0.0)
        one_of("explore", self.explore, EXPLORE)

    def ridges(self, n_layers: int) -> FloatArray:
        """The same in every stage."""
        return np.full(n_layers, self.ridge)

    def weighs_offsets(self) -> bool:
        """Not where the widest pair explores, whatever the utilities."""
        return self.explore != "widest"

    def exploration(self, state: LayeredState, actions: FiniteActions, streams: Streams) -> Explore:  # noqa: ARG002
        """One of the pairs wider than 2^-l, until all are narrower than the stop."""
        return Explore(self.explore, stop_width(state.settings.radius, state.settings.horizon or state.asked + 1))
