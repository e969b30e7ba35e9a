"""Policies by name. A policy of duelist's own is registered by its line in `algorithms/__init__.pyi`.

Elsewhere a policy is named by its registered name in any case, by a reference to a class of the user's own
(`my_module:MyPolicy`, `path/to/file.py:MyPolicy`), or by the name under which an installed package offers it: an entry point in
the group `duelist.policies`.
"""

from __future__ import annotations

import sys
from typing import Any

from duelist.core.checks import one_of, require_methods
from duelist.core.errors import InvalidInputError
from duelist.core.references import Files, Registry
from duelist.policies import algorithms
from duelist.policies.base import Policy

POLICIES: dict[str, type[Any]] = {name: getattr(algorithms, name) for name in dir(algorithms)}
GROUP = "duelist.policies"
# In the order of lists: what needs least about a problem first. A shelf that is not named here comes before the floor.
_SHELVES = ("matrix", "confidence", "sampling", "nonlinear", "exploration", "slates")
FLOOR_SHELF = ""  # of random play, which stands beside the shelves
_REGISTRY = Registry("policy", POLICIES, GROUP, ("start", "choose", "learn"))


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
        ['CPPL', 'ListwiseFGTS', 'MAUPO']
    """
    return {name: kind for name, kind in POLICIES.items() if plays_slates(kind)}


def policy_shelf(policy: type[Any]) -> str:
    """The shelf on which a policy of duelist's own stands: the folder of its file below `algorithms`.

    Example:
        >>> policy_shelf(POLICIES["FGTS"]), policy_shelf(POLICIES["RUCB"]), policy_shelf(POLICIES["Uniform"])
        ('sampling', 'matrix', '')
    """
    folders = policy.__module__.removeprefix(f"{algorithms.__name__}.").split(".")[:-1]
    return folders[0] if folders else FLOOR_SHELF


def policies_by_shelf() -> dict[str, dict[str, type[Any]]]:
    """All registered policies by shelf; random play comes last.

    Example:
        >>> list(policies_by_shelf()[""])
        ['Uniform']
    """
    found = {name: policy_shelf(kind) for name, kind in POLICIES.items()}
    order = [*_SHELVES, *sorted({*found.values()} - {*_SHELVES, FLOOR_SHELF}), FLOOR_SHELF]
    shelves = {shelf: {name: POLICIES[name] for name in found if found[name] == shelf} for shelf in order}
    return {shelf: kinds for shelf, kinds in shelves.items() if kinds}


def shelf_title(shelf: str) -> str:
    """What the policies of a shelf have in common: the first words of its docstring.

    Example:
        >>> shelf_title("matrix")
        'Rules for K arms that read no features'
    """
    if shelf == FLOOR_SHELF:
        return "The floor that others are compared with"
    text = sys.modules[f"{algorithms.__name__}.{shelf}"].__doc__ or shelf
    return text.splitlines()[0].removesuffix(".").removesuffix(": one paper, one file")


def plays_slates(policy: Any) -> bool:
    """Whether a policy shows slates of more than two candidates, and not pairs; a class, whether it does so by default.

    Example:
        >>> from duelist.policies import ListwiseFGTS
        >>> plays_slates(ListwiseFGTS), plays_slates(ListwiseFGTS(choices=2))
        (True, False)
    """
    choices = getattr(policy, "choices", 2)
    return isinstance(choices, int) and choices > 2


def policy_class(name: str | type[Any], files: Files | None = None) -> type[Any]:
    """The policy class of that name; an unknown name says which is nearest.

    Args:
        name: a registered name in any case, a reference, the name of an entry point, or the class itself.
        files: source of a class of the user's own, where its file may be missing; see `duelist.core.references.source_of`.

    Example:
        >>> policy_class("fgts").__name__
        'FGTS'
    """
    return _REGISTRY.find(name, files)


def registered_policy(name: str) -> type[Any]:
    """The policy of duelist's own of that name, in any case: for names that strangers send. No other code is run."""
    return POLICIES[one_of("policy", _REGISTRY.spelling(name), POLICIES)]


def policy_name(field: str, name: object) -> str:
    """How a policy is written down: its registered name, or a reference; `field` is what an error calls it."""
    return _REGISTRY.written(field, name)


def require_policy(policy: Any) -> Policy[Any]:
    """Return what can play; say what else it is."""
    if isinstance(policy, str):
        raise InvalidInputError(
            f"policy must be a policy such as duelist.FGTS(); got the text {policy!r}. Call its class, or make one from a name "
            f"with duelist.policies.policy_class({policy!r})()."
        )
    if isinstance(policy, type):
        raise InvalidInputError(f"policy must be a policy and not its class: write {policy.__name__}() with brackets.")
    if callable(getattr(policy, "instance", None)):
        raise InvalidInputError(
            f"policy must be a policy such as duelist.FGTS(); got {type(policy).__name__}, which is an environment. "
            f"The policy comes first, then the environment."
        )
    require_methods(policy, "policy", ("start", "choose", "learn", "report"))
    made: Policy[Any] = policy
    return made
