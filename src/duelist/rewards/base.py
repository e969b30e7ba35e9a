"""What a reward is: a differentiable function r_theta(phi) of a parameter vector and feature vectors, with a declared bound.

A reward is a frozen value that can be hashed: compiled code is kept by it. It may use operators, slices and the functions
of `array_module(theta)`, so that one definition runs on NumPy arrays and, differentiated and compiled, on JAX.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import DuelistError, InvalidInputError, NonFiniteError


class RewardNotFiniteError(NonFiniteError):
    """A reward returned NaN or infinity. Nothing was learnt or changed."""


class RewardBoundError(InvalidInputError):
    """A reward went beyond the bound that it was declared with. Nothing was learnt or changed."""


class MissingExtraError(DuelistError, ImportError):
    """A part of duelist needs a library that only an extra installs."""


class Reward(Protocol):
    """A differentiable reward."""

    @property
    def bound(self) -> float:
        """B with |r_theta| <= B, checked wherever an arm is chosen; infinity claims nothing."""

    def parameters(self, dim: int) -> int:
        """Length of theta for feature vectors of length dim."""

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,) of features (n, dim) under theta (parameters,)."""

    def __hash__(self) -> int:
        """Compiled code is kept by the reward."""


def require_jax() -> ModuleType:
    """JAX, or an error that says how to get it."""
    try:
        import jax
    except ImportError as error:
        raise MissingExtraError(
            "nonlinear rewards are learnt through JAX, which is not installed. Install the extra: pip install 'duelist[jax]'."
        ) from error
    return jax  # type: ignore[no-any-return, unused-ignore]


def array_module(theta: Any) -> Any:
    """NumPy for NumPy arrays, otherwise `jax.numpy`."""
    return np if isinstance(theta, np.ndarray) else require_jax().numpy


def check_bound(bound: float) -> None:
    """Refuse a bound that is not a positive number or infinity."""
    if bound != math.inf:
        finite_number("bound", bound, above=0.0)


def check_rewards(values: Any, bound: float) -> None:
    """Refuse rewards that are not finite or beyond the declared bound; values of any shape."""
    if not np.isfinite(values).all():
        bad = int((~np.isfinite(values)).sum())
        raise RewardNotFiniteError(
            f"a reward must be finite for every arm; got {bad} value(s) of {np.size(values)} that are NaN or infinite. "
            f"Look for a logarithm, root or division in it that some theta makes invalid. Nothing was changed."
        )
    largest = float(np.abs(values).max(initial=0.0))
    # A rounding error beyond the bound is not a broken promise.
    if largest > bound * (1.0 + 1e-9):
        raise RewardBoundError(
            f"the reward is declared with |r| <= {bound:g}; a draw gave |r| = {largest:.6g}. Declare a larger bound, restrict "
            f"the parameters with prior=UniformBall(...), or wrap it: Squashed(reward, bound={bound:g}). Nothing was changed."
        )


@dataclass(frozen=True)
class CustomReward:
    """A user's own reward.

    Args:
        function: rewards (n,) of features (n, dim) under theta (n_parameters,), written with jax.numpy.
        n_parameters: length of theta.
        bound: B with |r| <= B; checked whenever arms are chosen.

    Example:
        >>> reward = CustomReward(lambda theta, features: features @ theta, n_parameters=2)
        >>> reward(np.array([1.0, 2.0]), np.array([[3.0, 4.0]]))
        array([11.])
    """

    function: Callable[[Any, Any], Any]
    n_parameters: int
    bound: float = math.inf

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InvalidInputError(f"function must be callable as reward(theta, features); got {self.function!r}.")
        whole_number("n_parameters", self.n_parameters, at_least=1)
        check_bound(self.bound)

    def parameters(self, dim: int) -> int:  # noqa: ARG002 - the function knows what features it takes
        """Length of theta."""
        return self.n_parameters

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,)."""
        return self.function(theta, features)


@dataclass(frozen=True)
class Squashed:
    """B tanh(r / B): any reward made bounded, smoothly, and nearly unchanged where |r| is far below B.

    Example:
        >>> linear = CustomReward(lambda theta, features: features @ theta, n_parameters=1)
        >>> Squashed(linear, bound=2.0)(np.array([100.0]), np.array([[1.0]]))
        array([2.])
    """

    reward: Reward
    bound: float

    def __post_init__(self) -> None:
        finite_number("bound", self.bound, above=0.0)

    def parameters(self, dim: int) -> int:
        """Length of theta, as of the reward inside."""
        return self.reward.parameters(dim)

    def __call__(self, theta: Any, features: Any) -> Any:
        """Rewards (n,) within [-bound, bound]."""
        return self.bound * array_module(theta).tanh(self.reward(theta, features) / self.bound)
