"""The problem families: sixteen kinds of problem on which every policy is tried, as data inside the package.

`problems.toml` defines the families. The other files next to it are line-ups: lists of policies with grids, which may ask for
fewer instances (`[trials]`: `most`, or a number for a family) and name the policies that a report compares (`contenders`).

A spec is a family, a line-up and a stage. Settings are chosen on the instances of the stage "design" and judged on those of
"final": the two have different seeds, so no instance is in both.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from duelist.core.checks import one_of
from duelist.experiments.sweep.spec import Spec, spec_from_mapping

STAGES = ("design", "final")
LINE_UP = "policies"
_PROBLEMS = "problems"
_CURVE_POINTS = 100  # rounds that a thinned curve keeps: the tables are about the last one


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A policy of a line-up that a report compares with the best tuned baseline of each family.

    Attributes:
        label: of the policy in the line-up.
        name: what tables call it; empty for the label.
        default_setting: play the policy's default setting instead of the one chosen on the design instances.
        baseline: whether others are compared with it in turn. A policy under test is no baseline.
    """

    label: str
    name: str = ""
    default_setting: bool = False
    baseline: bool = True


def family_names() -> list[str]:
    """Names of the families, in the order of the file.

    Example:
        >>> family_names()[:3], len(family_names())
        (['paper-5', 'paper-10', 'paper-15'], 16)
    """
    return list(_read(_PROBLEMS)["families"])


def family_title(name: str) -> str:
    """Describe a family in a few words.

    Example:
        >>> family_title("flipped")
        'one vote in ten flipped'
    """
    return str(_family(name)["title"])


def line_ups() -> list[str]:
    """Names of the lists of policies."""
    names = sorted(item.name.removesuffix(".toml") for item in _folder().iterdir() if item.name.endswith(".toml"))
    return [name for name in names if name != _PROBLEMS]


def line_up_contenders(line_up: str = LINE_UP) -> list[Contender]:
    """The contenders of a line-up, in the order of the file.

    Example:
        >>> [contender.label for contender in line_up_contenders() if not contender.baseline]
        ['Foresight']
    """
    players = _read(one_of("line-up", line_up, line_ups()))
    return [Contender(**contender) for contender in players.get("contenders", [])]


def family_spec(name: str, stage: str, *, line_up: str = LINE_UP, only: Collection[str] = ()) -> Spec:
    """The experiment of one family and stage.

    Args:
        name: of the family.
        stage: "design" or "final".
        line_up: name of the list of policies.
        only: labels of the policies to include; empty for all.

    Example:
        >>> spec = family_spec("long", "final")
        >>> spec.id, len(spec.policies)
        ('long-T20000-n60-s9', 11)
    """
    problem = _family(name)
    sizes = _read(_PROBLEMS)["stages"][one_of("stage", stage, STAGES)]
    players = _read(one_of("line-up", line_up, line_ups()))
    sizes = {**sizes, **problem.get(stage, {})}
    limits = players.get("trials", {})
    most = limits.get(name, limits.get("most", sizes["trials"]))
    rounds = problem.get("rounds", 2500)
    return spec_from_mapping(
        {
            "name": name,
            "title": problem["title"],
            "environment": {"kind": "LinearDuels", **problem.get("environment", {})},
            "rounds": rounds,
            "thin": max(1, rounds // _CURVE_POINTS),
            "policies": line_up_policies(line_up, only),
            **sizes,
            "trials": min(most, sizes["trials"]),
        }
    )


def families_text(line_up: str = LINE_UP) -> str:
    """The files behind the specs, for a report."""
    names = (_PROBLEMS, one_of("line-up", line_up, line_ups()))
    return "\n".join((_folder() / f"{name}.toml").read_text(encoding="utf-8") for name in names)


def line_up_policies(
    line_up: str = LINE_UP, only: Collection[str] = (), more: Sequence[dict[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The policies of a line-up and perhaps more, as a spec names them.

    Args:
        line_up: name of the list of policies.
        only: labels of the policies to include; empty for all.
        more: further policies.

    Example:
        >>> line_up_policies(only=["Uniform"])
        [{'policy': 'Uniform'}]
    """
    policies = [*_read(one_of("line-up", line_up, line_ups()))["policies"], *more]
    labels = [policy.get("label", policy["policy"]) for policy in policies]
    for label in only:
        one_of("policy", label, labels)
    return [policy for policy, label in zip(policies, labels, strict=True) if not only or label in only]


def _family(name: str) -> dict[str, Any]:
    families = _read(_PROBLEMS)["families"]
    family: dict[str, Any] = families[one_of("family", name, families)]
    return family


def _folder() -> Traversable:
    return resources.files("duelist.experiments.families")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((_folder() / f"{name}.toml").read_text(encoding="utf-8"))
