"""Specs in TOML files: a user's own, and the ready-made ones inside the package."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.experiments.spec import Spec, spec_from_mapping

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


def ready_made_names() -> list[str]:
    """Names of the specs inside the package."""
    folder = resources.files(_HOME) / "specs"
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


def ready_made(name: str) -> Spec:
    """A spec inside the package.

    Example:
        >>> ready_made("figure2").rounds
        2500
    """
    one_of("spec", name, ready_made_names())
    text = (resources.files(_HOME) / "specs" / f"{name}.toml").read_text(encoding="utf-8")
    return parse_spec(text, source=f"{name}.toml")
