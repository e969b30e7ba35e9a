"""Policies by name: one line each."""

from __future__ import annotations

from typing import Any

from duelist.core.checks import one_of
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

POLICIES: dict[str, type[Any]] = {
    "FGTS": FGTS,
    "MaxInP": MaxInP,
    "MaxPairUCB": MaxPairUCB,
    "CoLSTIM": CoLSTIM,
    "VACDB": VACDB,
    "StaD": StaD,
    "SupCoLSTIM": SupCoLSTIM,
    "FiniteModels": FiniteModels,
    "Foresight": Foresight,
    "Uniform": Uniform,
}


def policy_class(name: str) -> type[Any]:
    """The policy class of that name, in any case; an unknown name says which is nearest."""
    by_lower_case = {known.lower(): known for known in POLICIES}
    known = by_lower_case.get(name.lower(), name)
    return POLICIES[one_of("policy", known, POLICIES)]
