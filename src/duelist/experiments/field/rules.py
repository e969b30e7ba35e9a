"""The rules of the field: every registered policy, what it assumes of a problem, and the grid on which it is tuned.

`rules.toml` has entries. A policy without one is not left out: its shelf says what it needs, and a parameter that sets how much
it explores makes its grid. So a new policy plays without a word here.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from duelist.core.errors import InvalidInputError
from duelist.experiments.sweep.parameters import check_names
from duelist.policies.codec import parameter_fields
from duelist.policies.registry import POLICIES, policies_by_shelf, policy_class

_ENTRY = ("policy", "label", "needs", "kinds", "beyond", "parameters", "grid")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One policy of the field.

    Attributes:
        label: what tables call it.
        policy: its registered name.
        shelf: on which it stands.
        needs: what a problem must offer.
        kinds: of problem to which it is kept; empty for all.
        beyond: problems outside its assumptions, which it plays for comparison.
        parameters: fixed ones.
        grid: parameter -> values, all of them played on the design instances.
        derived: whether it has no entry, and plays by what its shelf says.
    """

    label: str
    policy: str
    shelf: str
    needs: frozenset[str]
    kinds: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    derived: bool = False

    @property
    def installed(self) -> bool:
        """Whether the extra that the policy needs is there."""
        extra = policy_class(self.policy).extra
        return not extra or importlib.util.find_spec(extra) is not None

    def fits(self, kind: str, offers: frozenset[str]) -> bool:
        """Whether a problem of this kind offers all that the rule needs."""
        return self.needs <= offers and (not self.kinds or kind in self.kinds)

    def to_mapping(self, most_values: int | None = None) -> dict[str, Any]:
        """The policy as a spec has it; `most_values` cuts every list of its grid."""
        grid = {name: list(values)[:most_values] for name, values in self.grid.items()}
        return {"policy": self.policy, "label": self.label, "parameters": dict(self.parameters), "grid": grid}


def field_rules() -> list[Rule]:
    """Every registered policy, shelf by shelf, those of one policy in the order of the file.

    Example:
        >>> rules = {rule.label: rule for rule in field_rules()}
        >>> sorted(rules["RUCB"].needs), rules["FGTS (forgetting)"].kinds
        (['pairs', 'table', 'winner'], ('drifting',))
    """
    data = read_rules()
    return rules_from_mapping(data, {shelf: list(kinds) for shelf, kinds in policies_by_shelf().items()})


def rules_from_mapping(data: Mapping[str, Any], shelves: Mapping[str, Sequence[str]]) -> list[Rule]:
    """Make the rules of the policies on these shelves from the content of `rules.toml`."""
    for entry in data["rules"]:
        check_names(f"rules.toml: {entry.get('policy')}", entry, _ENTRY)
        if entry.get("policy") not in POLICIES:
            raise InvalidInputError(f"rules.toml names the policy {entry.get('policy')!r}, which is not registered.")
    rules = []
    for shelf, names in shelves.items():
        defaults = data["shelves"].get(shelf, {"needs": ["pairs", "linear"]})
        for name in names:
            entries = [entry for entry in data["rules"] if entry["policy"] == name]
            rules += [_rule(name, shelf, {**_fitting(name, defaults), **entry}) for entry in entries]
            if not entries:
                rules.append(
                    _rule(name, shelf, {**_fitting(name, defaults), "grid": _derive_grid(name, data["derived"])}, True)
                )
    return rules


def rules_without_entry() -> list[str]:
    """Policies that play by what their shelf says; an entry in `rules.toml` gives one a grid of its own."""
    return [rule.policy for rule in field_rules() if rule.derived]


def _rule(name: str, shelf: str, entry: Mapping[str, Any], derived: bool = False) -> Rule:
    return Rule(
        label=entry.get("label", name),
        policy=name,
        shelf=shelf,
        needs=frozenset(entry["needs"]),
        kinds=tuple(entry.get("kinds", ())),
        beyond=tuple(entry.get("beyond", ())),
        parameters=entry.get("parameters", {}),
        grid=entry.get("grid", {}),
        derived=derived,
    )


def _fitting(name: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What a shelf says, without parameters that this policy has not."""
    own = {one.name for one in parameter_fields(POLICIES[name])}
    return {**defaults, "parameters": {key: value for key, value in defaults.get("parameters", {}).items() if key in own}}


def _derive_grid(name: str, derived: Mapping[str, Any]) -> dict[str, list[float]]:
    own = {one.name: one.default for one in parameter_fields(POLICIES[name])}
    for parameter in derived["parameters"]:
        default = own.get(parameter)
        if isinstance(default, float) and default > 0.0:
            values = [float(f"{factor * default:.4g}") for factor in derived["factors"]]
            return {parameter: [value for value in values if _takes(POLICIES[name], parameter, value)]}
    return {}


def _takes(policy: type[Any], parameter: str, value: float) -> bool:
    """Whether a policy accepts the value: a probability, for one, ends at 1."""
    try:
        policy(**{parameter: value})
    except InvalidInputError:
        return False
    return True


@cache
def rules_text() -> str:
    """The file, for a report."""
    return (resources.files("duelist.experiments.field") / "rules.toml").read_text(encoding="utf-8")


def read_rules() -> dict[str, Any]:
    """The content of the file."""
    return tomllib.loads(rules_text())
