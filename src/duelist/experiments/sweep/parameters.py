"""What a policy or an environment may be given in a spec: names, kinds of value, and which parameters may form lanes.

Everything is read from the dataclass fields, so a new policy needs no word here. A parameter may hold an environment that is
wrapped: a table with a `kind`, like a prior. A list is one value where the annotation says so (a tuple of sizes, a matrix), and
a grid of values elsewhere.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.core.lanes import may_be_lanes
from duelist.core.references import Files, type_hints
from duelist.environments.registry import ENVIRONMENTS as ENVIRONMENTS
from duelist.environments.registry import environment_class, environment_name
from duelist.policies.codec import KIND, PARTS, parameter_fields, part_from_mapping

# A value as TOML and JSON know it; a table with a `kind` stands for an object such as a prior.
Value = bool | int | float | str | Mapping[str, Any] | Sequence[Any] | npt.NDArray[Any]


def parameter_hints(class_: type[Any]) -> dict[str, Any]:
    """Name and annotation of every parameter of a dataclass."""
    hints = type_hints(class_)
    return {field.name: hints[field.name] for field in parameter_fields(class_)}


def takes_lists(hint: Any) -> bool:
    """Whether a list is a value of the parameter, and not a grid of values.

    Example:
        >>> takes_lists(tuple[int, ...]), takes_lists(npt.ArrayLike), takes_lists(float | Sequence[float])
        (True, True, False)
    """
    kinds = [get_origin(option) or option for option in _options(hint)]
    return not may_be_lanes(hint) and any(isinstance(kind, type) and _is_table(kind) for kind in kinds)


def _is_table(kind: type[Any]) -> bool:
    # NumPy's types for what it can turn into an array are no sequences by name.
    return kind.__module__.startswith("numpy.") or (issubclass(kind, Sequence | np.ndarray) and kind not in (str, bytes))


def check_value(field: str, value: object, hint: Any) -> Value:
    """Return a value as the parameter's own type, refusing another kind of value with the field's name."""
    options = _options(hint)
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, Mapping):
        if any(_holds_object(option) for option in options):
            return _check_part(field, value, hint)
    elif isinstance(value, list | tuple):
        if takes_lists(hint):
            table: tuple[Any, ...] = _as_tuples(value)
            return table
    elif Any in options or (isinstance(value, bool | None) and type(value) in options):
        return value  # type: ignore[return-value] # of any kind: the class itself checks it
    elif isinstance(value, int | float) and not isinstance(value, bool):
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


def build(field: str, class_: type[Any], values: Mapping[str, Any], sources: Mapping[str, Files] | None = None) -> Any:
    """Build the object, or say which field of the spec made it refuse.

    Args:
        field: what errors call it.
        class_: of the object.
        values: its parameters, as in a spec.
        sources: code of the user's own environments among them, by reference, where their files may be missing.
    """
    required = [f.name for f in parameter_fields(class_) if f.default is f.default_factory is MISSING]
    missing = [name for name in required if name not in values]
    if missing:
        raise InvalidInputError(f"{field} ({class_.__name__}) needs {' and '.join(missing)}. Set it in the spec.")
    try:
        return class_(**{name: build_object(name, value, sources) for name, value in values.items()})
    except DuelistError as error:
        raise InvalidInputError(f"{field} ({class_.__name__}): {error}") from error


def named_environments(values: Mapping[str, Any]) -> Iterator[str]:
    """The environments that the values of a spec hold, however deep."""
    for value in values.values():
        if isinstance(value, Mapping):
            if value.get(KIND) not in PARTS:
                yield str(value[KIND])
            yield from named_environments(value)


def build_object(name: str, value: Any, sources: Mapping[str, Files] | None = None) -> Any:
    """What a value of a spec stands for: a table with a `kind` is an object, a list a tuple, all else itself.

    Args:
        name: of the parameter.
        value: of a spec.
        sources: as in `build`.
    """
    if not isinstance(value, Mapping):
        return _as_tuples(value) if isinstance(value, list) else value
    kind = value.get(KIND)
    if kind in PARTS:
        return part_from_mapping(name, value)
    inner = {key: each for key, each in value.items() if key != KIND}
    return build(name, environment_class(str(kind), (sources or {}).get(str(kind))), inner, sources)


def holds_environment(hint: Any) -> bool:
    """Whether a parameter is an environment, which another one wraps."""
    return any(hasattr(option, "instance") for option in _options(hint))


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


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
    return option is Any or (isinstance(option, type) and option not in (bool, int, float, str, type(None), np.ndarray))


def _wanted(options: tuple[Any, ...]) -> str:
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "a string"}
    wanted = [words[option] for option in options if option in words]
    wanted += ["one of " + ", ".join(map(repr, get_args(option))) for option in options if get_origin(option) is Literal]
    if any(_holds_object(option) for option in options):
        wanted.append('a table such as { kind = "Gaussian", scale = 2.0 }')
    return " or ".join(wanted)


def _check_part(field: str, table: Mapping[str, Any], hint: Any) -> dict[str, Any]:
    kind = table.get(KIND)
    if kind in PARTS:
        class_ = PARTS[str(kind)]
    elif holds_environment(hint) or hint is Any:
        kind = environment_name(f"{field}.{KIND}", kind)
        class_ = environment_class(kind)
    else:
        kind = one_of(f"{field}.{KIND}", kind, PARTS)
    hints = parameter_hints(class_)
    values = {name: value for name, value in table.items() if name != KIND}
    check_names(field, values, hints)
    checked = {name: check_value(f"{field}.{name}", value, hints[name]) for name, value in values.items()}
    build(field, class_, checked)
    return {KIND: kind, **checked}
