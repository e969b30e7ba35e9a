"""Policies and environments as text.

FGTS    FGTS:alpha=0,sampler=paper    FGTS(prior=UniformBall(2), sampler=paper(steps=20))    rules/mine.py:Greedy(epsilon=0.1)
LinearDuels(dim=5)    Delayed(base=LinearDuels(dim=5), delay=20)    my_module:MyDuels(votes=votes.csv)
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from duelist.core.checks import one_of
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.core.references import parse_reference
from duelist.environments.base import Environment
from duelist.environments.registry import ENVIRONMENTS, environment_class, environment_name
from duelist.experiments.sweep.parameters import build_object, check_names, check_value, holds_environment, parameter_hints
from duelist.policies.base import Policy
from duelist.policies.codec import KIND, PARTS, make, parameter_fields
from duelist.policies.registry import POLICIES, duel_policies, policy_class
from duelist.posteriors.priors import PRIORS
from duelist.preferences.ties import TIE_MODELS
from duelist.rewards.models import REWARDS
from duelist.samplers.registry import SAMPLERS

# Parameters that take an object: its name, and its own parameters in brackets.
OBJECTS: dict[str, Mapping[str, Any]] = {"prior": PRIORS, "sampler": SAMPLERS, "reward": REWARDS, "ties": TIE_MODELS}
_CALL = re.compile(r"([\w-]+)(?:\((.*)\))?", re.DOTALL)
_CONSTANTS = {"none": None, "true": True, "false": False}


def default_specs() -> list[str]:
    """What is compared by default: FGTS, FGTS without its Feel-Good term, the paper's sampler, and every other policy.

    Policies that need an extra must be asked for, and rules that read no features. `Uniform` comes last: it is the floor.
    """
    known = duel_policies(with_extras=False).items()
    others = [name for name, kind in known if kind.linear_utilities and name not in ("FGTS", "Uniform")]
    return ["FGTS", "FGTS:alpha=0", "FGTS:sampler=paper", *others, "Uniform"]


def parse_policies(specs: list[str]) -> dict[str, Policy[Any]]:
    """Policies by the text that asked for them, in the order given."""
    policies: dict[str, Policy[Any]] = {}
    for spec in specs:
        name, policy = parse_policy(spec)
        if name in policies and type(policies[name]) is not type(policy):
            name = spec  # classes of one name from two files
        if name in policies:
            raise InvalidInputError(f"policy {name!r} was asked for twice. Name it once; --trials sets how often it plays.")
        policies[name] = policy
    return policies


def parse_policy(spec: str) -> tuple[str, Policy[Any]]:
    """The policy that a text asks for, and its tidy name.

    Example:
        >>> parse_policy("fgts: alpha=0")[0]
        'FGTS:alpha=0'
    """
    name, text = _name_and_arguments(spec, POLICIES)
    chosen = policy_class(name)
    named = _named("a policy", text, spec)
    with _explained(spec, "`duelist policies` lists what takes what."):
        policy: Policy[Any] = make(chosen, {parameter: _value(parameter, value) for parameter, value in named.items()})
    tidy = ",".join(f"{parameter}={value}" for parameter, value in named.items())
    return f"{chosen.__name__}:{tidy}" if tidy else chosen.__name__, policy


def parse_environment(spec: str) -> Environment:
    """The environment that a text asks for.

    Example:
        >>> parse_environment("linearduels(dim=3, arms=4)").dim
        3
    """
    written = _environment(spec)
    with _explained(spec, "Parameters are fields of its class."):
        environment: Environment = build_object("environment", written)
    return environment


def _environment(spec: str) -> dict[str, Any]:
    """The environment as a mapping with a `kind`, those inside it too."""
    name, text = _name_and_arguments(spec, ENVIRONMENTS)
    kind = environment_name("environment", name)
    chosen = environment_class(kind)
    hints = parameter_hints(chosen)
    named = _named("an environment", text, spec)
    check_names(f"parameters of {chosen.__name__}", named, hints)
    return {KIND: kind, **{key: _environment_value(key, value, hints[key]) for key, value in named.items()}}


def _environment_value(name: str, text: str, hint: Any) -> Any:
    if holds_environment(hint):
        return _environment(text)
    return check_value(name, _literal(text), hint)


def _literal(text: str) -> Any:
    """A plain value, or a list of them: [1, 2], [[1, 0], [0, 1]]."""
    if not text.startswith("["):
        return _plain(text)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidInputError(f"a list is written [1, 2] or [[1, 2], [3, 4]]; got {text!r} ({error}).") from error


def _name_and_arguments(spec: str, known: Collection[str]) -> tuple[str, str]:
    """The name or reference that a text begins with, and its arguments, which stand in brackets or after a colon."""
    name, _, rest = spec.partition(":")
    reference = None if name.strip().lower() in {each.lower() for each in known} else parse_reference(spec)
    if reference is not None:
        name, rest = str(reference[0]), reference[1].removeprefix(":")
    elif "(" in name:
        name, _, rest = spec.partition("(")
        rest = "(" + rest
    rest = rest.strip()
    if rest.startswith("("):
        if not rest.endswith(")"):
            raise InvalidInputError(f"brackets must match; got {spec!r}.")
        rest = rest[1:-1]
    return name.strip(), rest


def _named(what: str, text: str, spec: str) -> dict[str, str]:
    positional, named = _arguments(text)
    if positional:
        raise InvalidInputError(f"parameters of {what} are written name=value; got {positional[0]!r} in {spec!r}.")
    return named


@contextmanager
def _explained(spec: str, hint: str) -> Iterator[None]:
    """Say which text could not be made where a class of the user's own, or Python, refuses it."""
    try:
        yield
    except DuelistError:
        raise
    except Exception as error:
        raise InvalidInputError(f"{spec!r} cannot be made: {type(error).__name__}: {error}. {hint}") from error


def _value(parameter: str, text: str) -> Any:
    """What a parameter's text stands for, as a mapping holds it."""
    objects = OBJECTS.get(parameter)
    if objects is None or (parameter != "prior" and text.lower() == "none"):
        return _plain(text)
    call = _CALL.fullmatch(text)
    kind = objects[one_of(parameter, call[1] if call else text, objects)]
    written = next(name for name, known in PARTS.items() if known is kind)
    positional, named = _arguments((call[2] if call else None) or "")
    known = [field.name for field in parameter_fields(kind)]
    if len(positional) > len(known):
        raise InvalidInputError(f"{written} takes at most {len(known)} parameter(s), {', '.join(known)}; got {text!r}.")
    placed = dict(zip(known, positional, strict=False))
    for twice in placed.keys() & named.keys():
        raise InvalidInputError(f"{twice} is given twice in {text!r}. Give it once.")
    return {KIND: written, **{name: _plain(value) for name, value in {**placed, **named}.items()}}


def _plain(text: str) -> int | float | bool | str | None:
    """A number, None, True or False, or else the text itself."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """The positional and the named parts of `a, b=1, c=f(2, d=3)`, each as text."""
    positional: list[str] = []
    named: dict[str, str] = {}
    for piece in _split(text):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not (equals and name.isidentifier()):
            positional.append(piece)
        elif name in named:
            raise InvalidInputError(f"{name} is given twice in {text!r}. Give it once.")
        elif not value:
            raise InvalidInputError(f"{name} needs a value in {text!r}; got nothing after the equals sign.")
        else:
            named[name] = value
    return positional, named


def _split(text: str) -> list[str]:
    """Cut at commas outside brackets."""
    pieces, depth, start = [], 0, 0
    for i, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            break
        if character == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    if depth != 0:
        raise InvalidInputError(f"brackets must match; got {text!r}. For example prior=UniformBall(2).")
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]
