"""SupCoLSTIM: CoLSTIM's perturbed rule inside layers of accuracy.

The walk of `duelist.policies.layer_kernels`; where a layer explores, a randomly perturbed leader that still has a partner
wider than 2^-l meets its strongest optimistic challenger among those partners; where it exploits, CoLSTIM's rule picks from the
arms that are left.

Reference: Bengs, Saha & Huellermeier (2022), Stochastic Contextual Dueling Bandits under Linear Stochastic Transitivity Models.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray, finite_number, whole_number
from duelist.core.duels import Duels
from duelist.core.lanes import PerLane, Problem
from duelist.core.streams import Streams
from duelist.policies.finite import require_finite
from duelist.policies.gumbel import coupled_noise
from duelist.policies.layers import (
    LayeredState,
    choose_layered,
    layer_count,
    learn_layered,
    report_layered,
    start_layers,
)
from duelist.policies.ucb import check_ucb


def stop_width(horizon: int) -> float:
    """SupLinUCB's 1 / sqrt(T), the width below which a layer exploits."""
    return 1.0 / math.sqrt(horizon)


@dataclass(frozen=True, kw_only=True)
class SupCoLSTIM:
    """Play CoLSTIM's rule inside layers of accuracy.

    Args:
        radius: c_1: the challenger's optimism and, times 2^-l, the margin of elimination; a sequence is one a lane.
        perturbation: factor of the leader's noise.
        clip: C, the largest noise; None for sqrt(d log T).
        ridge: lambda of every layer's fit and matrix.
        layers: how many, at least 2; None for enough to last the horizon.
        horizon: T; None takes the simulation's, and where nobody knows it the rounds asked so far.
        same_arm: "allow" lets an arm meet itself when exploiting, "different" does not; "auto" allows it in simulation only.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.SupCoLSTIM(), env, rounds=300, trials=2, seed=0)
        >>> bool(run.info["explored_layer_1"].min() > 0)
        True
    """

    radius: PerLane = 2.0
    perturbation: float = 1.0
    clip: float | None = None
    ridge: float = 2.0
    layers: int | None = None
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_ucb(self.radius, finite_number("ridge", self.ridge, above=0.0), self.same_arm)
        finite_number("perturbation", self.perturbation, at_least=0.0)
        if self.clip is not None:
            finite_number("clip", self.clip, above=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        layer_count(self.layers, self.horizon)

    def start(self, problem: Problem, streams: Streams) -> LayeredState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt in any layer."""
        ridge = np.full(layer_count(self.layers, self.horizon or problem.horizon), self.ridge)
        return start_layers(problem, radius=self.radius, ridge=ridge, horizon=self.horizon, same_arm=self.same_arm)

    def choose(self, state: LayeredState, actions: ActionSet, streams: Streams) -> tuple[Duels, LayeredState]:
        """Walk up the layers until one exploits or explores."""
        horizon = state.horizon or state.asked + 2
        noise = self.perturbation * coupled_noise(
            require_finite(self, actions), streams, state.asked, since=state.asked, horizon=horizon, clip=self.clip
        )
        stop = np.full(len(state.radius), stop_width(horizon))
        return choose_layered(self, state, actions, streams, rule="perturbed", stop=stop, weigh_by_width=False, noise=noise)

    def learn(self, state: LayeredState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LayeredState:
        """Teach the layer that explored."""
        return learn_layered(state, actions, duels, outcomes)

    def report(self, state: LayeredState) -> dict[str, FloatArray]:
        """How the layers were used."""
        return report_layered(state)
