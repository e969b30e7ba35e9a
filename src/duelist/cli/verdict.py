"""`duelist verdict`: a gate for pipelines, whose exit status says whether an arena's goal is reached."""

from __future__ import annotations

import sys

import click

UNDECIDED = 1


@click.command()
@click.argument("url")
@click.argument("arena")
@click.option(
    "--key", envvar="DUELIST_KEY", required=True, help="A key with the role read. Better in the environment: DUELIST_KEY."
)
def verdict(url: str, arena: str, key: str) -> None:
    """Say how far the votes of ARENA, of the service at URL, have come towards its goal.

    The exit status is 0 when the goal is reached, where it is a promotion in favour of the challenger; 1 when not; 2 when
    there is nothing to say, because the service, the arena or its goal is not there.
    """
    from duelist.service.client import Client

    with Client(url, key) as client:
        found = client.verdict(arena)
    click.echo(found["sentence"])
    passed = found["decided"] if found["promote"] is None else found["promote"]
    sys.exit(0 if passed else UNDECIDED)
