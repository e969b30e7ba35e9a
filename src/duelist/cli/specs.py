"""Policies as text: `FGTS`, `FGTS:alpha=0,sampler=paper`, `FGTS:prior=UniformBall(2),sampler=paper(steps=20)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from duelist.core.checks import one_of
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.policies.base import Policy
from duelist.policies.registry import POLICIES, policy_class
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.samplers.registry import SAMPLERS

# Parameters that take an object: its name, and its own parameters in brackets.
OBJECTS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "prior": {prior.__name__: prior for prior in (Gaussian, GaussianBall, UniformBall)},
    "sampler": SAMPLERS,
}
_CALL = re.compile(r"([\w-]+)(?:\((.*)\))?", re.DOTALL)
_CONSTANTS = {"none": None, "true": True, "false": False}


def default_specs() -> list[str]:
    """What is compared when nobody says: FGTS, FGTS without its Feel-Good term, the paper's sampler, and every other policy.

    `Uniform` comes last: it is the floor.
    """
    others = [name for name in POLICIES if name not in ("FGTS", "Uniform")]
    return ["FGTS", "FGTS:alpha=0", "FGTS:sampler=paper", *others, "Uniform"]


def parse_policies(specs: list[str]) -> dict[str, Policy]:
    """Policies by the text that asked for them, in the order given."""
    policies: dict[str, Policy] = {}
    for spec in specs:
        name, policy = parse_policy(spec)
        if name in policies:
            raise InvalidInputError(f"policy {name!r} was asked for twice. Name it once; --trials sets how often it plays.")
        policies[name] = policy
    return policies


def parse_policy(spec: str) -> tuple[str, Policy]:
    """The policy that a text asks for, and its tidy name.

    Example:
        >>> parse_policy("fgts: alpha=0")[0]
        'FGTS:alpha=0'
    """
    name, _, text = spec.partition(":")
    chosen = policy_class(name.strip())
    allowed = [field.name for field in fields(chosen)]
    positional, named = _arguments(text)
    if positional:
        raise InvalidInputError(f"parameters of a policy are written name=value; got {positional[0]!r} in {spec!r}.")
    if named and not allowed:
        raise InvalidInputError(f"{chosen.__name__} has no parameters; got {', '.join(named)}. Write just {chosen.__name__}.")
    for parameter in named:
        one_of(f"a parameter of {chosen.__name__}", parameter, allowed)
    policy: Policy = _make(spec, chosen, [], {parameter: _value(parameter, value) for parameter, value in named.items()})
    tidy = ",".join(f"{parameter}={value}" for parameter, value in named.items())
    return f"{chosen.__name__}:{tidy}" if tidy else chosen.__name__, policy


def _make(text: str, recipe: Callable[..., Any], positional: list[Any], named: dict[str, Any]) -> Any:
    try:
        return recipe(*positional, **named)
    except DuelistError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{text!r} cannot be made: {error}. `duelist policies` lists what takes what.") from error


def _value(parameter: str, text: str) -> Any:
    """What a parameter's text stands for."""
    objects = OBJECTS.get(parameter)
    if objects is None:
        return _plain(text)
    call = _CALL.fullmatch(text)
    recipe = objects[one_of(parameter, call[1] if call else text, objects)]
    positional, named = _arguments((call[2] if call else None) or "")
    return _make(text, recipe, [_plain(value) for value in positional], {name: _plain(value) for name, value in named.items()})


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
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if character == "," and depth == 0:
            pieces.append(text[start:i])
            start = i + 1
    if depth != 0:
        raise InvalidInputError(f"brackets must match; got {text!r}. For example prior=UniformBall(2).")
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]
