"""SupCoLSTIM: CoLSTIM's perturbed rule inside layers of accuracy.

The walk of `duelist.kernels.rules.layers`; where a layer explores, a randomly perturbed leader that still has a partner
wider than 2^-l meets its strongest optimistic challenger among those partners; where it exploits, CoLSTIM's rule picks from the
arms that are left.

Reference: Bengs, Saha & Huellermeier (2022), Stochastic Contextual Dueling Bandits under Linear Stochastic Transitivity Models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number
from duelist.core.lanes import PerLane
from duelist.core.streams import Streams
from duelist.policies.parts.gumbel import coupled_noise
from duelist.policies.parts.layers import Explore, LayeredPolicy, LayeredState
from duelist.typing import FloatArray


def stop_width(horizon: int) -> float:
    """SupLinUCB's 1 / sqrt(T), the width below which a layer exploits."""
    return 1.0 / math.sqrt(horizon)


@dataclass(frozen=True, kw_only=True)
class SupCoLSTIM(LayeredPolicy):
    """Play CoLSTIM's rule inside layers of accuracy.

    Args:
        radius: c_1: the challenger's optimism and, times 2^-l, the margin of elimination; a sequence is one per lane.
        perturbation: factor of the leader's noise.
        clip: C, the largest noise; None for sqrt(d log T).
        ridge: lambda of every layer's fit and matrix.
        layers: how many, at least 2; None for enough to last the horizon.
        horizon: T; None takes the simulation's, and where it is unknown the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> duelist.simulate(duelist.SupCoLSTIM(), env, rounds=300, trials=2, seed=0).info["explored_layer_1"].shape
        (2,)
    """

    radius: PerLane = 2.0
    perturbation: float = 1.0
    clip: float | None = None
    ridge: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("ridge", self.ridge, above=0.0)
        finite_number("perturbation", self.perturbation, at_least=0.0)
        if self.clip is not None:
            finite_number("clip", self.clip, above=0.0)

    def ridges(self, n_layers: int) -> FloatArray:
        """The same in every layer."""
        return np.full(n_layers, self.ridge)

    def exploration(self, state: LayeredState, actions: FiniteActions, streams: Streams) -> Explore:
        """A perturbed leader and its strongest optimistic challenger."""
        horizon = state.settings.horizon or state.asked + 2
        noise = coupled_noise(actions, streams, state.asked, since=state.asked, horizon=horizon, clip=self.clip)
        stop = np.full(len(state.settings.radius), stop_width(horizon))
        return Explore("perturbed", stop, noise=self.perturbation * noise)
