"""duelist: learn online from pairwise preferences.

Show two candidates, learn which was preferred, choose the next two better. See the README for a first run.

Names are loaded on first use (PEP 562), so importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from duelist.version import __version__

if TYPE_CHECKING:
    from duelist.agent.agent import Agent
    from duelist.core import contexts as features
    from duelist.core.actions import FiniteActions
    from duelist.core.ball_actions import BallActions
    from duelist.core.box_actions import BoxActions
    from duelist.core.errors import DuelistError
    from duelist.core.polytope_actions import PolytopeActions
    from duelist.environments.continuous_duels import ContinuousDuels
    from duelist.environments.linear_duels import LinearDuels
    from duelist.experiments.compare import compare
    from duelist.experiments.simulate import simulate
    from duelist.policies.colstim import CoLSTIM
    from duelist.policies.fgts import FGTS
    from duelist.policies.finite_models import FiniteModels
    from duelist.policies.foresight import Foresight
    from duelist.policies.maxinp import MaxInP
    from duelist.policies.maxpairucb import MaxPairUCB
    from duelist.policies.stad import StaD
    from duelist.policies.supcolstim import SupCoLSTIM
    from duelist.policies.uniform import Uniform
    from duelist.policies.vacdb import VACDB
    from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
    from duelist.samplers.langevin import Langevin
    from duelist.samplers.mala import MALA
    from duelist.samplers.offline import sample_posterior

_HOMES = {
    "Agent": "agent.agent",
    "BallActions": "core.ball_actions",
    "BoxActions": "core.box_actions",
    "CoLSTIM": "policies.colstim",
    "ContinuousDuels": "environments.continuous_duels",
    "DuelistError": "core.errors",
    "FGTS": "policies.fgts",
    "FiniteActions": "core.actions",
    "FiniteModels": "policies.finite_models",
    "Foresight": "policies.foresight",
    "Gaussian": "posteriors.priors",
    "GaussianBall": "posteriors.priors",
    "Langevin": "samplers.langevin",
    "LinearDuels": "environments.linear_duels",
    "MALA": "samplers.mala",
    "MaxInP": "policies.maxinp",
    "MaxPairUCB": "policies.maxpairucb",
    "PolytopeActions": "core.polytope_actions",
    "StaD": "policies.stad",
    "SupCoLSTIM": "policies.supcolstim",
    "Uniform": "policies.uniform",
    "UniformBall": "posteriors.priors",
    "VACDB": "policies.vacdb",
    "compare": "experiments.compare",
    "features": "core.contexts",
    "sample_posterior": "samplers.offline",
    "simulate": "experiments.simulate",
}

# Names that stand for a whole module.
_MODULES = ("features",)

__all__ = [
    "FGTS",
    "MALA",
    "VACDB",
    "Agent",
    "BallActions",
    "BoxActions",
    "CoLSTIM",
    "ContinuousDuels",
    "DuelistError",
    "FiniteActions",
    "FiniteModels",
    "Foresight",
    "Gaussian",
    "GaussianBall",
    "Langevin",
    "LinearDuels",
    "MaxInP",
    "MaxPairUCB",
    "PolytopeActions",
    "StaD",
    "SupCoLSTIM",
    "Uniform",
    "UniformBall",
    "__version__",
    "compare",
    "features",
    "sample_posterior",
    "simulate",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'duelist' has no attribute {name!r}")
    module = importlib.import_module(f"duelist.{home}")
    value = module if name in _MODULES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
