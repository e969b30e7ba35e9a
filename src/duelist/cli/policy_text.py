"""Policies as text: `FGTS`, `FGTS:alpha=0,sampler=paper`, `FGTS:prior=UniformBall(2),sampler=paper(steps=20)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from duelist.core.checks import one_of
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.policies.base import Policy
from duelist.policies.codec import KIND, PARTS, parameter_fields, policy_from_mapping
from duelist.policies.registry import duel_policies, policy_class, require_pairs
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
    name, _, text = spec.partition(":")
    chosen = policy_class(name.strip())
    require_pairs(chosen)
    positional, named = _arguments(text)
    if positional:
        raise InvalidInputError(f"parameters of a policy are written name=value; got {positional[0]!r} in {spec!r}.")
    try:
        mapping = {KIND: chosen.__name__, **{parameter: _value(parameter, value) for parameter, value in named.items()}}
        policy: Policy[Any] = policy_from_mapping(mapping)
    except DuelistError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{spec!r} cannot be made: {error}. `duelist policies` lists what takes what.") from error
    tidy = ",".join(f"{parameter}={value}" for parameter, value in named.items())
    return f"{chosen.__name__}:{tidy}" if tidy else chosen.__name__, policy


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
