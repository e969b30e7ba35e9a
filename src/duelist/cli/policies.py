"""`duelist policies`: what there is to choose from."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from duelist.core.references import entry_points
from duelist.policies.codec import parameter_fields
from duelist.policies.registry import GROUP, policies_by_shelf, policy_class, shelf_title

_ARGUMENT = re.compile(r"^    (\w+): (.*)$")


@click.command()
@click.argument("name", required=False)
def policies(name: str | None) -> None:
    """List the policies by kind, their parameters and defaults; with NAME, explain that policy's parameters.

    NAME may be one of your own: my_module:MyPolicy or path/to/file.py:MyPolicy. Policies that installed packages offer are
    listed too.
    """
    console = Console()
    if name is None:
        for table in _overview():
            console.print(table)
        console.print("Ask for one as NAME or NAME:parameter=value,...; `duelist policies NAME` explains the parameters.")
    else:
        chosen = policy_class(name)
        console.print(f"[bold]{chosen.__name__}[/bold]: {escape(summary(chosen))}")
        console.print(_parameters(chosen))


def summary(policy: type[Any]) -> str:
    """The first line of a policy's docstring."""
    return (inspect.getdoc(policy) or "").split("\n", 1)[0]


def default_text(field: Field[Any]) -> str:
    """A parameter's default as one would write it."""
    value = field.default_factory() if field.default_factory is not MISSING else field.default
    return "(required)" if value is MISSING else str(value)


def explanations(policy: type[Any]) -> dict[str, str]:
    """What the docstring's Args section says of each parameter."""
    found: dict[str, str] = {}
    parameter = None
    _, _, section = (inspect.getdoc(policy) or "").partition("\nArgs:\n")
    for line in section.splitlines():
        argument = _ARGUMENT.match(line)
        if argument:
            parameter = argument[1]
            found[parameter] = argument[2]
        elif parameter and line.startswith("        "):
            found[parameter] += " " + line.strip()
        else:
            break
    return found


def _overview() -> Iterator[Table]:
    """One table per shelf, and one of what installed packages offer."""
    groups = {shelf_title(shelf): kinds for shelf, kinds in policies_by_shelf().items()}
    groups["Of installed packages"] = {name: policy_class(name) for name in entry_points(GROUP)}
    widest = max(len(name) for kinds in groups.values() for name in kinds)
    for title, kinds in groups.items():
        if not kinds:
            continue
        table = Table(title=title, title_justify="left", expand=True)
        table.add_column("policy", style="bold", no_wrap=True, min_width=widest)
        table.add_column("what it does", ratio=3)
        table.add_column("parameters and defaults", ratio=2)
        for name, policy in kinds.items():
            parameters = ", ".join(f"{field.name}={default_text(field)}" for field in parameter_fields(policy))
            table.add_row(name, escape(summary(policy) + _restriction(policy)), escape(parameters) or "none")
        yield table


def _restriction(policy: type[Any]) -> str:
    """What it needs to play."""
    extra = getattr(policy, "extra", "")
    return f" Needs pip install 'duelist[{extra}]'." if extra else ""


def _parameters(policy: type[Any]) -> Table:
    table = Table()
    table.add_column("parameter", style="bold", no_wrap=True)
    table.add_column("default", no_wrap=True)
    table.add_column("meaning")
    meanings = explanations(policy)
    for field in parameter_fields(policy):
        table.add_row(field.name, escape(default_text(field)), escape(meanings.get(field.name, "")))
    return table
