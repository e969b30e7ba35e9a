"""Environments by name: what a spec and the command line may ask for."""

from __future__ import annotations

from typing import Any

from duelist.environments.continuous import ContinuousDuels
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels, ListedDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels

ENVIRONMENTS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (ContinuousDuels, HardDuels, LinearDuels, ListedDuels, NetworkDuels, QuadraticDuels)
}
