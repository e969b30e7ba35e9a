"""Policies by name. A policy is registered by its line in `algorithms/__init__.pyi`."""

from __future__ import annotations

from typing import Any

from duelist.core.checks import one_of
from duelist.policies import algorithms

POLICIES: dict[str, type[Any]] = {name: getattr(algorithms, name) for name in dir(algorithms)}


def duel_policies(*, with_extras: bool = True) -> dict[str, type[Any]]:
    """The policies that play pairs; without extras, those that need no library beyond duelist's own.

    Example:
        >>> "FGTS" in duel_policies(), "ListwiseFGTS" in duel_policies()
        (True, False)
    """
    pairs = {name: kind for name, kind in POLICIES.items() if not plays_slates(kind)}
    return {name: kind for name, kind in pairs.items() if with_extras or not kind.extra}


def slate_policies() -> dict[str, type[Any]]:
    """The policies that play slates.

    Example:
        >>> list(slate_policies())
        ['ListwiseFGTS']
    """
    return {name: kind for name, kind in POLICIES.items() if plays_slates(kind)}


def plays_slates(policy: Any) -> bool:
    """Whether a policy shows slates of more than two candidates, and not pairs; a class, whether it does so by default.

    Example:
        >>> from duelist.policies import ListwiseFGTS
        >>> plays_slates(ListwiseFGTS), plays_slates(ListwiseFGTS(choices=2))
        (True, False)
    """
    choices = getattr(policy, "choices", 2)
    return isinstance(choices, int) and choices > 2


def policy_class(name: str) -> type[Any]:
    """The policy class of that name, in any case; an unknown name says which is nearest."""
    return POLICIES[policy_name("policy", name)]


def policy_name(field: str, name: object) -> str:
    """The registered spelling of a policy's name, given in any case; `field` is what an error calls it."""
    by_lower_case = {known.lower(): known for known in POLICIES}
    return one_of(field, by_lower_case.get(str(name).lower(), name), POLICIES)
