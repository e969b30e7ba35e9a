"""Ready-made rewards: a quadratic, a two-layer network, a radial-basis model, and the last layer of a frozen network.

Shapes: theta (parameters,), features (n, dim), rewards (n,).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, finite_number, whole_number
from duelist.rewards.base import Reward, Squashed, array_module, check_bound
from duelist.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class Quadratic:
    """<b, phi> + sum_{i <= j} c_ij phi_i phi_j, with theta = (b, c): dim + dim (dim + 1) / 2 parameters.

    Args:
        bound: B with |r| <= B. Infinity claims nothing: a Gaussian prior on theta keeps no quadratic bounded.

    Example:
        >>> reward = Quadratic()
        >>> reward.parameters(2)
        5
        >>> reward(np.array([1.0, 0.0, 0.0, 0.5, 0.0]), np.array([[2.0, 3.0]]))
        array([5.])
    """

    bound: float = math.inf

    def __post_init__(self) -> None:
        check_bound(self.bound)

    def parameters(self, dim: int) -> int:
        """Dim linear ones and one for each product of two coordinates."""
        return dim + dim * (dim + 1) // 2

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,)."""
        dim = features.shape[-1]
        rows, columns = np.triu_indices(dim)
        return features @ theta[:dim] + (features[:, rows] * features[:, columns]) @ theta[dim:]


@dataclass(frozen=True, kw_only=True)
class TwoLayerNetwork:
    """<v, tanh(W phi + w)> / sqrt(hidden), with theta = (W, w, v): hidden (dim + 2) parameters.

    With the division, a standard normal theta gives rewards of order one whatever the width.

    Args:
        hidden: width of the hidden layer.
        scale: factor on the reward.
        bound: B with |r| <= B.

    Example:
        >>> TwoLayerNetwork(hidden=42).parameters(10)
        504
    """

    hidden: int = 16
    scale: float = 1.0
    bound: float = math.inf

    def __post_init__(self) -> None:
        whole_number("hidden", self.hidden, at_least=1)
        finite_number("scale", self.scale, above=0.0)
        check_bound(self.bound)

    def parameters(self, dim: int) -> int:
        """A weight for every input and unit, and for every unit a shift and a weight of its output."""
        return self.hidden * (dim + 2)

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,)."""
        hidden, dim = self.hidden, features.shape[-1]
        weights = theta[: hidden * dim].reshape(hidden, dim)
        shifts, outputs = theta[hidden * dim : hidden * (dim + 1)], theta[hidden * (dim + 1) :]
        units = array_module(theta).tanh(features @ weights.T + shifts)
        return units @ outputs * (self.scale / math.sqrt(hidden))


@dataclass(frozen=True)
class RadialBasis:
    """sum_m theta_m exp(-|phi - c_m|^2 / (2 width^2)): one parameter per centre, and |r| <= sum_m |theta_m|.

    Args:
        centres: (n_centres, dim); any array, kept as nested tuples so that the reward can be hashed.
        width: how far a centre reaches.
        bound: B with |r| <= B.

    Example:
        >>> RadialBasis([[0.0], [1.0]], width=1.0)(np.array([2.0, 0.0]), np.array([[0.0]]))
        array([2.])
    """

    centres: Sequence[Sequence[float]] | FloatArray
    width: float = 1.0
    bound: float = math.inf

    def __post_init__(self) -> None:
        centres = finite_array("centres", self.centres, "(n_centres, dim)", 2)
        object.__setattr__(self, "centres", tuple(map(tuple, centres.tolist())))
        finite_number("width", self.width, above=0.0)
        check_bound(self.bound)

    def parameters(self, dim: int) -> int:  # noqa: ARG002 - one per centre whatever the dimension
        """One per centre."""
        return len(self.centres)

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,)."""
        distances = ((features[:, None, :] - np.array(self.centres)) ** 2).sum(axis=-1)
        return array_module(theta).exp(-distances / (2.0 * self.width**2)) @ theta


@dataclass(frozen=True)
class LastLayer:
    """<theta, psi(phi)> on the outputs psi of a frozen network: Bayesian in the last layer, exact as in the linear case.

    Args:
        network: psi, from features (n, dim) to (n, width). It is part of the compiled code and never trained.
        width: length of its outputs.
        bound: B with |r| <= B.

    Example:
        >>> LastLayer(np.tanh, width=1)(np.array([3.0]), np.array([[0.0], [50.0]]))
        array([0., 3.])
    """

    network: Callable[[Any], Any]
    width: int
    bound: float = math.inf

    def __post_init__(self) -> None:
        whole_number("width", self.width, at_least=1)
        check_bound(self.bound)

    def parameters(self, dim: int) -> int:  # noqa: ARG002 - the width of the last layer alone
        """The width."""
        return self.width

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,)."""
        return self.network(features) @ theta


# By the name under which a reward is written down. A class may be renamed; its entry here is in users' files. A `CustomReward`
# and a `LastLayer` hold a function, which no file can.
REWARDS: dict[str, type[Reward]] = {
    "Quadratic": Quadratic,
    "RadialBasis": RadialBasis,
    "Squashed": Squashed,
    "TwoLayerNetwork": TwoLayerNetwork,
}


def utilities(reward: Any, theta: npt.NDArray[np.float64], features: FloatArray) -> FloatArray:
    """Rewards (lanes, n) of features (lanes, n, dim) under theta (lanes, parameters), in NumPy."""
    return np.array([reward(t, f) for t, f in zip(theta, features, strict=True)])
