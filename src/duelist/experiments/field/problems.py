"""The problems of the field by kind, as data inside the package, and the experiment of each.

`problems.toml` says what each problem offers and `rules.toml` what each rule needs: a rule plays where it gets all that it
needs, and where its entry says so beyond that, for comparison.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from duelist.core.checks import one_of
from duelist.experiments.families.problems import STAGES, family_spec
from duelist.experiments.field.rules import Rule, field_rules
from duelist.experiments.sweep.spec import Spec, spec_from_mapping

_REGRETS = ("average", "weak")
_CURVE_POINTS = 50  # rounds that a thinned curve keeps


@dataclass(frozen=True, kw_only=True)
class FieldProblem:
    """One problem.

    Attributes:
        name: short, of letters, digits and -.
        kind: one of `problem_kinds`.
        title: the problem in a few words.
        environment: with its `kind`, as in a spec.
        offers: what rules may need.
        rounds: duels or slates per trial.
        simple_every: rounds between recommendations, where these are what is judged; else 0.
        regret: which one is judged: "average" over what is shown, or "weak", of the best that is shown.
        sizes: seed and trials by stage.
        quick: whether a first look plays it.
    """

    name: str
    kind: str
    title: str
    environment: Mapping[str, Any] = field(repr=False)
    offers: frozenset[str] = field(repr=False)
    rounds: int
    simple_every: int = 0
    regret: str = "average"
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    quick: bool = False

    def players(self, only: Collection[str] = ()) -> list[Rule]:
        """The rules that play it, as far as their libraries are installed; `only` names labels, empty for all."""
        rules = field_rules()
        for label in only:
            one_of("--policies", label, [rule.label for rule in rules])
        fitting = [rule for rule in rules if rule.fits(self.kind, self.offers) or self.name in rule.beyond]
        return [rule for rule in fitting if rule.installed and (not only or rule.label in only)]

    def is_beyond(self, rule: Rule) -> bool:
        """Whether a rule plays it outside its assumptions."""
        return not rule.fits(self.kind, self.offers)


def problem_kinds() -> dict[str, str]:
    """Kinds of problem, each with its meaning.

    Example:
        >>> list(problem_kinds())[:3]
        ['matrix', 'contextual', 'corrupted']
    """
    return dict(_read()["kinds"])


def field_problems() -> dict[str, FieldProblem]:
    """All problems by name, in the order of the file.

    Example:
        >>> field_problems()["cycle"].kind
        'matrix'
    """
    data = _read()
    return {name: _problem(name, table, data) for name, table in data["problems"].items()}


def field_spec(name: str, stage: str, *, only: Collection[str] = (), most_values: int | None = None) -> Spec | None:
    """The experiment of one problem and stage; None where none of the wanted rules plays it.

    Args:
        name: of the problem.
        stage: "design" or "final".
        only: labels of the rules to include; empty for all.
        most_values: at most so many values of every grid; None for all.

    Example:
        >>> spec = field_spec("cycle", "final", only=["RUCB"])
        >>> spec.id, [policy.label for policy in spec.policies]
        ('cycle-T5000-n20-s29', ['RUCB'])
    """
    problems = field_problems()
    problem = problems[one_of("problem", name, problems)]
    players = problem.players(only)
    if not players:
        return None
    return spec_from_mapping(
        {
            "name": name,
            "title": problem.title,
            "environment": dict(problem.environment),
            "rounds": problem.rounds,
            "thin": max(1, problem.rounds // _CURVE_POINTS),
            "simple_every": problem.simple_every,
            "policies": [rule.to_mapping(most_values) for rule in players],
            **problem.sizes[one_of("stage", stage, STAGES)],
        }
    )


@cache
def problems_text() -> str:
    """The file, for a report."""
    return (resources.files("duelist.experiments.field") / "problems.toml").read_text(encoding="utf-8")


def _problem(name: str, table: Mapping[str, Any], data: Mapping[str, Any]) -> FieldProblem:
    if "family" in table:
        family = family_spec(table["family"], "final", only=["Uniform"])
        own = {
            "title": family.title,
            "environment": family.environment.to_mapping(),
            "rounds": min(family.rounds, data["rounds"]),
        }
        table = {**own, **table}
    return FieldProblem(
        name=name,
        kind=one_of(f"{name}.kind", table["kind"], data["kinds"]),
        title=table["title"],
        environment=table["environment"],
        offers=frozenset(table["offers"]),
        rounds=table.get("rounds", data["rounds"]),
        simple_every=table.get("simple_every", 0),
        regret=one_of(f"{name}.regret", table.get("regret", "average"), _REGRETS),
        sizes={stage: {**sizes, **table.get(stage, {})} for stage, sizes in data["stages"].items()},
        quick=table.get("quick", False),
    )


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(problems_text())
