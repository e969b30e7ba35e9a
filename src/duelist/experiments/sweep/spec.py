"""An experiment as data: which policies with which grids, on which environments, how long, how often, from which seed.

A spec is checked when it is made: a name that does not exist is refused with its field and the nearest name that does.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.experiments.sweep.parameters import check_names
from duelist.experiments.sweep.policy_spec import (
    EnvironmentSpec,
    PolicySpec,
    TuningSpec,
    check_table,
    is_list,
    plain_fields,
    set_field,
)
from duelist.policies.registry import POLICIES

__all__ = ["EnvironmentSpec", "PolicySpec", "Spec", "TuningSpec", "canonical_json", "spec_from_mapping"]


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One experiment.

    Args:
        name: short and readable; part of the id.
        policies: to compare.
        environment: the problems they play.
        rounds: duels per trial.
        trials: test instances per policy, trial numbers 0 to trials - 1: the same instances and noise for every policy.
        seed: names all random numbers.
        tuning: instances for the tuned parameters.
        thin: regret curves keep every thin-th round and the last.
        title: for reports.
        simple_every: so many rounds apart, and after the last, keep what the arm costs that a policy would recommend then; 0
            for never. Policies that show slates cannot be asked.

    Example:
        >>> spec = Spec(name="demo", policies=[PolicySpec(policy="FGTS", grid={"alpha": [0.0, 0.1]})], rounds=100, trials=4)
        >>> spec.id
        'demo-T100-n4-s0'
        >>> len(spec.hash)
        12
    """

    name: str
    policies: Sequence[PolicySpec]
    environment: EnvironmentSpec = field(default_factory=EnvironmentSpec)
    rounds: int = 2500
    trials: int = 30
    seed: int = 0
    tuning: TuningSpec = field(default_factory=TuningSpec)
    thin: int = 10
    title: str = ""
    simple_every: int = 0

    def __post_init__(self) -> None:
        # The name becomes part of file names.
        if not isinstance(self.name, str) or not self.name.replace("-", "").replace("_", "").isalnum():
            raise InvalidInputError(f"name must be a word of letters, digits, - and _; got {self.name!r}.")
        if not isinstance(self.title, str):
            raise InvalidInputError(f"title must be a string; got {self.title!r}.")
        whole_number("rounds", self.rounds, at_least=1)
        whole_number("trials", self.trials, at_least=1)
        whole_number("seed", self.seed)
        whole_number("thin", self.thin, at_least=1)
        whole_number("simple_every", self.simple_every)
        set_field(self, "policies", tuple(self.policies))
        if not self.policies:
            raise InvalidInputError("policies must hold at least one policy; got none.")
        labels = [policy.label for policy in self.policies]
        for label in labels:
            if labels.count(label) > 1:
                raise InvalidInputError(f"policies: two are called {label!r}. Give each its own label.")
        if self.tuning.first_trial < self.trials and any(policy.tune for policy in self.policies):
            raise InvalidInputError(
                f"tuning.first_trial must be at least trials ({self.trials}), so that tuning never sees a test instance; "
                f"got {self.tuning.first_trial}."
            )

    @property
    def id(self) -> str:
        """A readable name: which experiment, how long, how many trials, which seed."""
        return f"{self.name}-T{self.rounds}-n{self.trials}-s{self.seed}"

    @property
    def hash(self) -> str:
        """12 hexadecimal digits of the content: specs that ask for the same numbers in the same table have the same hash."""
        return hashlib.blake2b(canonical_json(self.to_mapping()).encode(), digest_size=6).hexdigest()

    def to_mapping(self) -> dict[str, Any]:
        """Plain data, from which `spec_from_mapping` makes the same spec."""
        plain = plain_fields(self)
        if not self.simple_every:  # specs from before it was there keep their hash
            del plain["simple_every"]
        plain["policies"] = [policy.to_mapping() for policy in self.policies]
        plain["environment"] = self.environment.to_mapping()
        plain["tuning"] = plain_fields(self.tuning)
        return plain


def spec_from_mapping(data: Mapping[str, Any]) -> Spec:
    """Make a spec from plain data, as read from TOML; see docs/experiments.md for the fields."""
    check_table("the spec", data)
    check_names("the spec", data, [f.name for f in fields(Spec)])
    for name in ("name", "policies"):
        if name not in data:
            raise InvalidInputError(f"{name} is missing from the spec.")
    values = dict(data)
    if not is_list(values["policies"]):
        raise InvalidInputError(f"policies must be a list of tables, as in [[policies]]; got {values['policies']!r}.")
    values["policies"] = [_policy_from_mapping(f"policies[{i}]", table) for i, table in enumerate(values["policies"])]
    if "environment" in values:
        table = values["environment"]
        check_table("environment", table)
        rest = {name: value for name, value in table.items() if name != "kind"}
        values["environment"] = EnvironmentSpec(kind=table.get("kind", "LinearDuels"), parameters=rest)
    if "tuning" in values:
        check_table("tuning", values["tuning"])
        check_names("tuning", values["tuning"], [f.name for f in fields(TuningSpec)])
        values["tuning"] = TuningSpec(**values["tuning"])
    return Spec(**values)


def canonical_json(data: Any) -> str:
    """Write plain data as JSON in one canonical form: keys sorted, no spaces, no NaN."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _policy_from_mapping(where: str, table: Any) -> PolicySpec:
    check_table(where, table)
    check_names(where, table, [f.name for f in fields(PolicySpec)])
    if "policy" not in table:
        raise InvalidInputError(f"{where}.policy is missing: it names the policy, one of {', '.join(POLICIES)}.")
    try:
        return PolicySpec(**table)
    except InvalidInputError as error:
        raise type(error)(f"{where}.{error}") from error


_HOME = "duelist.experiments"


def load_spec(path: str | Path) -> Spec:
    """Read and check a spec; an error says in which file and which field."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"the spec {path} cannot be read: {error.strerror}.") from error
    return parse_spec(text, source=str(path))


def parse_spec(text: str, *, source: str = "the text") -> Spec:
    """Make a spec from TOML text; `source` names it in errors."""
    try:
        return spec_from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{source} is not TOML: {error}.") from error
    except InvalidInputError as error:
        raise type(error)(f"{source}: {error}") from error


def shipped_spec_names() -> list[str]:
    """Names of the specs inside the package."""
    folder = resources.files(_HOME) / "specs"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def load_shipped_spec(name: str) -> Spec:
    """Load a spec that is inside the package.

    Example:
        >>> load_shipped_spec("figure2").rounds
        2500
    """
    one_of("spec", name, shipped_spec_names())
    text = (resources.files(_HOME) / "specs" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_spec(text, source=f"{name}.toml")
