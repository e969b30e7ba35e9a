"""Policies as plain mappings and back: the one way in which a policy is written down.

A policy is written as its registered name and its hyper-parameters; a prior, a sampler, a reward or a model of ties inside it
the same way. Saved agents, journals, sweeps, the service and the command line all read and write these mappings, so what one of
them can hold all of them can.

    {"kind": "FGTS", "alpha": 0.5, "prior": {"kind": "UniformBall", "radius": 2.0}}

Names and parameters are in users' files: a class may be renamed, its entry here may not.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from typing import Any

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.policies.registry import POLICIES
from duelist.posteriors.priors import PRIORS
from duelist.preferences.ties import TIE_MODELS
from duelist.rewards.models import REWARDS
from duelist.samplers.generic_mala import GenericMALA
from duelist.samplers.jax_mala import RewardMALA
from duelist.samplers.registry import SAMPLERS

# What a hyper-parameter may be besides numbers, text and sequences of them, by the name that is written.
PARTS: dict[str, type[Any]] = {
    **PRIORS,
    **{kind.__name__: kind for kind in SAMPLERS.values() if isinstance(kind, type)},
    "GenericMALA": GenericMALA,
    "RewardMALA": RewardMALA,
    **REWARDS,
    **TIE_MODELS,
}
KIND = "kind"
_INFINITY = "inf"  # JSON has no number for it


def to_mapping(policy: Any) -> dict[str, Any]:
    """The policy as values that JSON can hold.

    Example:
        >>> from duelist.policies import Uniform
        >>> to_mapping(Uniform())
        {'kind': 'Uniform'}
    """
    if not is_registered(policy):
        raise InvalidInputError(
            f"a policy must be one of {', '.join(POLICIES)} to be written down; got {type(policy).__name__}. "
            f"Register it, or keep its parameters yourself."
        )
    return _fields_to_mapping(type(policy).__name__, policy)


def policy_from_mapping(mapping: Mapping[str, Any]) -> Any:
    """The policy that `to_mapping` wrote; its values are checked like those of any call.

    Example:
        >>> policy_from_mapping({"kind": "FGTS", "alpha": 0.5}).alpha
        0.5
    """
    if isinstance(mapping, Mapping) and mapping.get("mu") is not None:
        # Version 0.1.0 took an alpha beside mu, and ignored it.
        mapping = {name: value for name, value in mapping.items() if name != "alpha"}
    return _from_mapping(mapping, POLICIES, "policy")


def part_from_mapping(name: str, mapping: Mapping[str, Any]) -> Any:
    """The prior, sampler, reward or model of ties that a parameter `name` holds."""
    return _from_mapping(mapping, PARTS, name)


def is_registered(policy: Any) -> bool:
    """Whether this is a policy of the registry, and not one of the user's own."""
    return POLICIES.get(type(policy).__name__) is type(policy)


def can_be_written(policy: Any) -> bool:
    """Whether `to_mapping` can write the policy: a registered one, of plain values and known parts."""
    try:
        to_mapping(policy)
    except InvalidInputError:
        return False
    return True


def parameter_fields(kind: Any) -> list[Field[Any]]:
    """The hyper-parameters of a dataclass. A field that takes no part in comparison is none: a function to log with, say."""
    return [field for field in fields(kind) if field.init and field.compare]


def _fields_to_mapping(name: str, value: Any) -> dict[str, Any]:
    return {KIND: name, **{f.name: _to_plain(f.name, getattr(value, f.name)) for f in parameter_fields(value)}}


def _to_plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return _INFINITY if value == math.inf else float(value)
    if isinstance(value, Sequence | np.ndarray):
        return [_to_plain(name, part) for part in value]
    written = next((known for known, kind in PARTS.items() if kind is type(value)), None)
    if is_dataclass(value) and written is not None:
        return _fields_to_mapping(written, value)
    raise InvalidInputError(
        f"{name} must be a number, text, a sequence of them, or one of {', '.join(PARTS)} to be written down; "
        f"got {type(value).__name__}. A function of your own cannot be saved: keep the policy, and pass it when you load."
    )


def _from_mapping(mapping: Mapping[str, Any], kinds: Mapping[str, type[Any]], what: str) -> Any:
    if not isinstance(mapping, Mapping) or KIND not in mapping:
        raise InvalidInputError(f"a {what} must be a mapping with an entry {KIND!r}; got {mapping!r}.")
    kind = kinds[one_of(what, mapping[KIND], kinds)]
    return make(kind, {name: value for name, value in mapping.items() if name != KIND})


def make(kind: type[Any], parameters: Mapping[str, Any]) -> Any:
    """An object of a class, given its parameters as a mapping holds them.

    Example:
        >>> from duelist.posteriors.priors import UniformBall
        >>> make(UniformBall, {"radius": 2.0})
        UniformBall(radius=2.0)
    """
    given = {name: _from_plain(name, value) for name, value in parameters.items()}
    known = [field.name for field in parameter_fields(kind)]
    for name in given:
        if not known:
            raise InvalidInputError(f"{kind.__name__} has no parameters; got {', '.join(given)}. Write just its name.")
        one_of(f"parameter of {kind.__name__}", name, known)
    return kind(**given)


def _from_plain(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return part_from_mapping(name, value)
    if isinstance(value, list):
        return tuple(_from_plain(name, part) for part in value)
    return math.inf if value == _INFINITY else value
