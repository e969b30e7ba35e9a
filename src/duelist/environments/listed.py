"""Linear duels whose truth is one of a list of models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.core.checks import finite_array
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels, LinearDuelsInstance
from duelist.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class ListedDuels:
    """The paper's problem with theta* drawn uniformly from a list, one per lane: what `FiniteModels` assumes.

    Args:
        models: (N, dim) the list.
        arms: number of distinct arms, at most 2^dim, corners of {-1, 1}^dim.
        fresh_arms: draw new arms every round.

    Example:
        >>> instance = ListedDuels(models=((3.0, 4.0), (0.0, 1.0)), arms=4).instance(Streams(0, range(6)))
        >>> sorted({float(theta[0]) for theta in instance.theta})
        [0.0, 3.0]
    """

    models: tuple[tuple[float, ...], ...] | FloatArray
    arms: int = 32
    fresh_arms: bool = False

    def __post_init__(self) -> None:
        table = finite_array("models", self.models, "(N, dim)", 2)
        object.__setattr__(self, "models", tuple(map(tuple, table.tolist())))
        _ = self.linear  # which checks the rest

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return len(self.models[0])

    @property
    def linear(self) -> LinearDuels:
        """The problem without its truth."""
        return LinearDuels(dim=self.dim, arms=self.arms, fresh_arms=self.fresh_arms)

    def instance(self, streams: Streams) -> LinearDuelsInstance:
        """One model and one set of arms per lane."""
        table = np.array(self.models)
        chosen = [streams.generator("theta", lane).integers(len(table)) for lane in range(len(streams))]
        return LinearDuelsInstance(self.linear, table[chosen], streams)
