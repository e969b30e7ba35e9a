"""Policies as JSON and back: what saved agents, journals and result tables say about who played.

A policy is written as its registered name and its hyper-parameters; a prior or a sampler inside it the same way.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.policies.registry import POLICIES
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.samplers.registry import SAMPLERS

# What a hyper-parameter may be besides numbers, text and sequences of them.
_PARTS: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Gaussian, GaussianBall, UniformBall, *SAMPLERS.values()) if isinstance(kind, type)
}
_KIND = "kind"


def described(policy: Any) -> dict[str, Any]:
    """The policy as values that JSON can hold.

    Example:
        >>> from duelist.policies.uniform import Uniform
        >>> described(Uniform())
        {'kind': 'Uniform'}
    """
    if POLICIES.get(type(policy).__name__) is not type(policy):
        raise InvalidInputError(
            f"a policy must be one of {', '.join(POLICIES)} to be described; got {type(policy).__name__}. "
            f"Register it, or keep its parameters yourself."
        )
    return _described_fields(policy)


def policy_from(description: dict[str, Any]) -> Any:
    """The policy that `described` wrote; its values are checked as if a person had typed them.

    Example:
        >>> policy_from({"kind": "FGTS", "alpha": 0.5}).alpha
        0.5
    """
    return _built(description, POLICIES, "policy")


def _described_fields(value: Any) -> dict[str, Any]:
    named = {field.name: _plain(field.name, getattr(value, field.name)) for field in fields(value)}
    return {_KIND: type(value).__name__, **named}


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, Sequence | np.ndarray):
        return [_plain(name, part) for part in value]
    if is_dataclass(value) and _PARTS.get(type(value).__name__) is type(value):
        return _described_fields(value)
    raise InvalidInputError(
        f"{name} must be a number, text, a sequence of them, or one of {', '.join(_PARTS)} to be described; "
        f"got {type(value).__name__}."
    )


def _built(description: dict[str, Any], kinds: dict[str, type[Any]], what: str) -> Any:
    if not isinstance(description, dict) or _KIND not in description:
        raise InvalidInputError(f"a described {what} must be a mapping with an entry {_KIND!r}; got {description!r}.")
    kind = kinds[one_of(what, description[_KIND], kinds)]
    given = {name: _unplain(name, value) for name, value in description.items() if name != _KIND}
    known = [field.name for field in fields(kind)]
    for name in given:
        one_of(f"parameter of {kind.__name__}", name, known)
    return kind(**given)


def _unplain(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return _built(value, _PARTS, name)
    if isinstance(value, list):
        return tuple(_unplain(name, part) for part in value)
    return value
