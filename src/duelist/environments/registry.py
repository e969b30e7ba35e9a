"""Environments by name: what a spec and the command line may ask for, as in `duelist.policies.registry`."""

from __future__ import annotations

from typing import Any

from duelist.core.checks import require_methods, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.references import Files, Registry
from duelist.environments.base import Environment
from duelist.environments.continuous import ContinuousDuels
from duelist.environments.given import ContextDuels, GivenDuels
from duelist.environments.gymnasium import GymnasiumDuels
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels, ListedDuels
from duelist.environments.matrix import MatrixDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
from duelist.environments.scored import ScoredDuels
from duelist.environments.trajectories import TrajectoryDuels
from duelist.environments.users import UserDuels
from duelist.environments.votes import VoteDuels
from duelist.environments.wrappers import Corrupted, Delayed, Rotating, Switching, Tied

ENVIRONMENTS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        ContextDuels,
        ContinuousDuels,
        Corrupted,
        Delayed,
        GivenDuels,
        GymnasiumDuels,
        HardDuels,
        LinearDuels,
        ListedDuels,
        MatrixDuels,
        NetworkDuels,
        QuadraticDuels,
        Rotating,
        ScoredDuels,
        Switching,
        Tied,
        TrajectoryDuels,
        UserDuels,
        VoteDuels,
    )
}
GROUP = "duelist.environments"
_REGISTRY = Registry("environment", ENVIRONMENTS, GROUP, ("instance",))


def environment_class(name: str | type[Any], files: Files | None = None) -> type[Any]:
    """The environment class of that name, which may be a reference or an entry point, as in `duelist.policies.policy_class`.

    Example:
        >>> environment_class("linearduels").__name__
        'LinearDuels'
    """
    return _REGISTRY.find(name, files)


def environment_name(field: str, name: object) -> str:
    """How an environment is written down: its registered name, or a reference; `field` is what an error calls it."""
    return _REGISTRY.written(field, name)


def require_environment(environment: Any) -> Environment:
    """Return what instances can be drawn from; say what else it is."""
    if isinstance(environment, str):
        raise InvalidInputError(
            f"environment must be an environment such as duelist.LinearDuels(dim=5); got the text {environment!r}. Call its "
            f"class, or make one from a name with duelist.environments.environment_class({environment!r})()."
        )
    if isinstance(environment, type):
        raise InvalidInputError(
            f"environment must be an environment and not its class: write {environment.__name__}() with brackets."
        )
    if callable(getattr(environment, "choose", None)):
        raise InvalidInputError(
            f"environment must be an environment such as duelist.LinearDuels(dim=5); got {type(environment).__name__}, which "
            f"is a policy. The policy comes first, then the environment."
        )
    require_methods(environment, "environment", ("instance",))
    if not hasattr(environment, "dim"):
        raise InvalidInputError(
            f"{type(environment).__name__} must say in `dim` how long its feature vectors are; it has no `dim`. Make it a "
            f"field or a property."
        )
    whole_number(f"dim of {type(environment).__name__}", environment.dim, at_least=1)
    made: Environment = environment
    return made
