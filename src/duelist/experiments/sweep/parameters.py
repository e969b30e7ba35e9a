"""What a policy or an environment may be given in a spec: names, kinds of value, and which parameters may form lanes.

Everything is read from the dataclass fields, so a new policy needs no word here.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.environments.registry import ENVIRONMENTS as ENVIRONMENTS
from duelist.policies.codec import KIND, PARTS, parameter_fields, part_from_mapping

# A value as TOML and JSON know it; a table with a `kind` stands for an object such as a prior.
Value = bool | int | float | str | Mapping[str, Any]


def parameter_hints(class_: type[Any]) -> dict[str, Any]:
    """Name and annotation of every parameter of a dataclass."""
    hints = get_type_hints(class_)
    return {field.name: hints[field.name] for field in parameter_fields(class_)}


def may_be_lanes(hint: Any) -> bool:
    """Whether a parameter may hold one number per lane, so that a grid of it advances in lock step."""
    return any(get_origin(option) is Sequence for option in _options(hint))


def check_value(field: str, value: object, hint: Any) -> Value:
    """Return a value as the parameter's own type, refusing another kind of value with the field's name."""
    options = _options(hint)
    if isinstance(value, Mapping):
        if any(_holds_object(option) for option in options):
            return _check_part(field, value)
    elif isinstance(value, bool):
        if bool in options:
            return value
    elif isinstance(value, int | float):
        if float in options:
            return finite_number(field, value)
        if int in options:
            return whole_number(field, value)
    elif isinstance(value, str):
        literals = [text for option in options if get_origin(option) is Literal for text in get_args(option)]
        if str in options:
            return value
        if literals:
            return one_of(field, value, literals)
    raise InvalidInputError(f"{field} must be {_wanted(options)}; got {value!r} of type {type(value).__name__}.")


def build(field: str, class_: type[Any], values: Mapping[str, Any]) -> Any:
    """Build the object, or say which field of the spec made it refuse."""
    required = [f.name for f in parameter_fields(class_) if f.default is f.default_factory is MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise InvalidInputError(f"{field} ({class_.__name__}) needs {' and '.join(missing)}. Set it in the spec.")
    try:
        return class_(**{k: part_from_mapping(k, v) if isinstance(v, Mapping) else v for k, v in values.items()})
    except DuelistError as error:
        raise InvalidInputError(f"{field} ({class_.__name__}): {error}") from error


def list_parameters(thing: Any) -> dict[str, Any]:
    """Every parameter of a built policy or environment, defaults included, as plain values; objects as their text."""
    return {
        field.name: repr(value) if is_dataclass(value := getattr(thing, field.name)) else value
        for field in parameter_fields(thing)
    }


def check_names(field: str, names: Collection[object], allowed: Collection[str]) -> None:
    """Refuse the first unknown name of a table with the nearest valid one."""
    for name in names:
        if not allowed:
            raise InvalidInputError(f"{field} must be empty: there are no parameters to set; got {name!r}.")
        one_of(f"{field}: the name", name, allowed)


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _holds_object(option: Any) -> bool:
    return isinstance(option, type) and option not in (bool, int, float, str, type(None))


def _wanted(options: tuple[Any, ...]) -> str:
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a string"}
    wanted = [words[option] for option in options if option in words]
    wanted += ["one of " + ", ".join(map(repr, get_args(option))) for option in options if get_origin(option) is Literal]
    if any(_holds_object(option) for option in options):
        wanted.append('a table such as { kind = "Gaussian", scale = 2.0 }')
    return " or ".join(wanted)


def _check_part(field: str, table: Mapping[str, Any]) -> dict[str, Any]:
    kind = one_of(f"{field}.{KIND}", table.get(KIND), PARTS)
    hints = parameter_hints(PARTS[kind])
    values = {name: value for name, value in table.items() if name != KIND}
    check_names(field, values, hints)
    checked = {name: check_value(f"{field}.{name}", value, hints[name]) for name, value in values.items()}
    build(field, PARTS[kind], checked)
    return {KIND: kind, **checked}
