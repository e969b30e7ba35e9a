"""Environments by name: what a spec and the command line may ask for."""

from __future__ import annotations

from typing import Any

from duelist.environments.continuous import ContinuousDuels
from duelist.environments.given import ContextDuels, GivenDuels
from duelist.environments.gymnasium import GymnasiumDuels
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels, ListedDuels
from duelist.environments.matrix import MatrixDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
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
        Switching,
        Tied,
        VoteDuels,
    )
}
