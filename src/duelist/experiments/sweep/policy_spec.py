"""The parts of a spec: a policy with its grids, the environment, and the tuning instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import product
from types import MappingProxyType
from typing import Any

from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import may_be_lanes
from duelist.environments.registry import environment_class, environment_name
from duelist.experiments.sweep.parameters import Value, build, check_names, check_value, parameter_hints, takes_lists
from duelist.policies.registry import policy_class, policy_name

CRITERIA = ("mean", "median")


@dataclass(frozen=True, kw_only=True)
class PolicySpec:
    """One policy of an experiment.

    Args:
        policy: its registered name; or, of your own, a class or a reference to one: `my_module:MyPolicy`,
            `path/to/file.py:MyPolicy`, or the name of an entry point.
        label: what figures call it; the policy's name unless given.
        parameters: fixed hyper-parameters; what is not named keeps its default.
        grid: parameter -> values, each of them played on the test instances. Several parameters give their product.
        tune: parameter -> {grid name: values}; the best value of each named grid on the tuning instances is played on
            the test instances. One parameter at most.
    """

    policy: Any  # a string or a class; a string once it is checked
    label: str = ""
    parameters: Mapping[str, Value] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    tune: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        class_ = policy_class(self.policy)
        name = policy_name("policy", self.policy)
        hints = parameter_hints(class_)
        set_field(self, "policy", name)
        if not isinstance(self.label, str):
            raise InvalidInputError(f"label must be a string; got {self.label!r}.")
        set_field(self, "label", self.label or name.rpartition(":")[2])
        for part in ("parameters", "grid", "tune"):
            table = getattr(self, part)
            check_table(part, table)
            check_names(part, table, hints)
        for later, earlier in (("grid", "parameters"), ("tune", "parameters")):
            for twice in sorted(set(getattr(self, later)) & set(getattr(self, earlier))):
                raise InvalidInputError(f"{later}.{twice} is set in {earlier} too. Set it once.")
        parameters = {k: check_value(f"parameters.{k}", v, hints[k]) for k, v in self.parameters.items()}
        grid = {k: _values(f"grid.{k}", v, hints[k]) for k, v in self.grid.items()}
        set_field(self, "parameters", MappingProxyType(parameters))
        set_field(self, "grid", MappingProxyType(grid))
        set_field(self, "tune", MappingProxyType(self._checked_tune(hints)))
        for point in [*self.grid_points(), *({self.tuned: value} for value in self.tuned_values())]:
            build("policy", class_, {**parameters, **point})

    def _checked_tune(self, hints: Mapping[str, Any]) -> dict[str, Mapping[str, tuple[Any, ...]]]:
        if len(self.tune) > 1:
            raise InvalidInputError(f"tune may hold one parameter; got {', '.join(self.tune)}. Put the others in grid.")
        checked: dict[str, Mapping[str, tuple[Any, ...]]] = {}
        for parameter, grids in self.tune.items():
            if not may_be_lanes(hints[parameter]):
                lanes = [name for name, hint in hints.items() if may_be_lanes(hint)]
                raise InvalidInputError(
                    f"tune.{parameter} cannot be tuned: it does not hold one number per lane. "
                    f"Parameters of {self.policy} that do: {', '.join(lanes) or 'none'}."
                )
            if self.grid:
                raise InvalidInputError("grid and tune are both set. Use two policies, one with each.")
            if not isinstance(grids, Mapping) or not grids:
                raise InvalidInputError(f"tune.{parameter} must name its grids, as in {{ paper = [0.1, 1.0] }}; got {grids!r}.")
            checked[parameter] = MappingProxyType(
                {name: _values(f"tune.{parameter}.{name}", v, hints[parameter]) for name, v in grids.items()}
            )
        return checked

    @property
    def tuned(self) -> str:
        """The tuned parameter, or an empty string."""
        return next(iter(self.tune), "")

    def tuned_values(self) -> tuple[float, ...]:
        """Every value of the tuned parameter in any named grid, in order, each once."""
        return tuple(sorted({value for grids in self.tune.values() for values in grids.values() for value in values}))

    def grid_points(self) -> list[dict[str, Any]]:
        """The product of the grid: one set of parameters each; one empty set without a grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]

    def to_mapping(self) -> dict[str, Any]:
        """Plain data, from which the same policy spec can be made."""
        return {name: value for name, value in plain_fields(self).items() if value or name == "policy"}


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpec:
    """Where the policies play.

    Args:
        kind: name of the environment, or a class or a reference to one of your own, as in `PolicySpec`.
        parameters: what it is given; a list of values plays on an environment for each. An environment that another one wraps
            is a table, as in `{"kind": "LinearDuels", "dim": 5}`.
    """

    kind: Any = "LinearDuels"  # a string or a class; a string once it is checked
    parameters: Mapping[str, Value | Sequence[Value]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        class_ = environment_class(self.kind) if isinstance(self.kind, type) else None
        set_field(self, "kind", environment_name("environment.kind", self.kind))
        class_ = class_ or environment_class(self.kind)
        hints = parameter_hints(class_)
        check_table("environment", self.parameters)
        check_names("environment", self.parameters, hints)
        checked: dict[str, Any] = {
            name: _values(f"environment.{name}", value, hints[name])
            if _is_grid(value, hints[name])
            else check_value(f"environment.{name}", value, hints[name])
            for name, value in self.parameters.items()
        }
        set_field(self, "parameters", MappingProxyType(checked))
        for point in self.points():
            build("environment", class_, point)

    def points(self) -> list[dict[str, Any]]:
        """Parameters of every environment: the product of the lists."""
        hints = parameter_hints(environment_class(self.kind))
        lists: list[Any] = [value if _is_grid(value, hints[name]) else (value,) for name, value in self.parameters.items()]
        return [dict(zip(self.parameters, values, strict=True)) for values in product(*lists)]

    def to_mapping(self) -> dict[str, Any]:
        """Plain data, from which the same environment spec can be made."""
        return {"kind": self.kind, **plain_fields(self)["parameters"]}


@dataclass(frozen=True, kw_only=True)
class TuningSpec:
    """Instances on which tuned parameters are chosen.

    Args:
        trials: how many.
        first_trial: number of the first. They must lie apart from the test instances, which are 0, 1, ... trials - 1.
        criterion: what is made small: the "mean" or the "median" of the final regret.
    """

    trials: int = 30
    first_trial: int = 1_000_000
    criterion: str = "mean"

    def __post_init__(self) -> None:
        whole_number("tuning.trials", self.trials, at_least=1)
        whole_number("tuning.first_trial", self.first_trial)
        one_of("tuning.criterion", self.criterion, CRITERIA)


def set_field(instance: Any, name: str, value: Any) -> None:
    """Set a checked value while a frozen instance is being made."""
    object.__setattr__(instance, name, value)


def is_list(value: object) -> bool:
    """Whether a value is a list of values rather than one."""
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_grid(value: object, hint: Any) -> bool:
    """Whether a list holds several values of an environment's parameter, and is not one value itself: a matrix, say."""
    if not is_list(value):
        return False
    return not takes_lists(hint) or all(isinstance(each, str) for each in value)  # type: ignore[attr-defined]


def check_table(where: str, value: object) -> None:
    """Refuse what is not a table."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"{where} must be a table of names and values; got {value!r}.")


def _values(where: str, values: object, hint: Any) -> tuple[Any, ...]:
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise InvalidInputError(f"{where} must be a list of at least one value; got {values!r}.")
    checked = tuple(check_value(f"{where}[{i}]", value, hint) for i, value in enumerate(values))
    doubled = [value for value in checked if checked.count(value) > 1]
    if doubled:
        raise InvalidInputError(f"{where} holds {doubled[0]!r} more than once. Name every value once.")
    return checked


def plain_fields(thing: Any) -> dict[str, Any]:
    """The fields of a dataclass as plain data."""
    return {f.name: _plain_value(getattr(thing, f.name)) for f in fields(thing)}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain_value(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain_value(inner) for inner in value]
    return value
