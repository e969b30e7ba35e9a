"""The `duelist` command. Commands are loaded when they are called, so `duelist --help` imports no numerical library."""

from __future__ import annotations

import importlib
import sys
from typing import NamedTuple, NoReturn

import click

from duelist.core.errors import DuelistError
from duelist.version import __version__

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells report it


class LazyCommand(NamedTuple):
    """Where a command lives, and its line in `duelist --help`."""

    module: str
    attribute: str
    summary: str


# To add a command: one file that holds a click command, and one line here.
COMMANDS = {
    "backup": LazyCommand("duelist.cli.backup", "backup", "Copy a journal to a new file, while it is in use."),
    "bench": LazyCommand("duelist.cli.bench", "bench", "Time a live round next to other libraries."),
    "data": LazyCommand("duelist.cli.data", "data", "List data sets of real comparisons, or take a first look at one."),
    "evaluate": LazyCommand("duelist.cli.evaluate", "evaluate", "Say from a log how other routers would have done."),
    "journal": LazyCommand("duelist.cli.journal", "journal", "Say what an agent's journal holds, or compact it."),
    "migrate": LazyCommand("duelist.cli.backup", "migrate", "Copy a journal between SQLite and PostgreSQL."),
    "policies": LazyCommand("duelist.cli.policies", "policies", "List the policies, their parameters and defaults."),
    "reproduce": LazyCommand(
        "duelist.cli.reproduce", "reproduce", "Reproduce the paper's figures or the problem families; resumable."
    ),
    "restore": LazyCommand("duelist.cli.backup", "restore", "Bring a backup back."),
    "run": LazyCommand("duelist.cli.run", "run", "Compare policies on the paper's problem: table, figure and data."),
    "serve": LazyCommand("duelist.cli.serve", "serve", "Start the service and the page people vote on."),
    "verdict": LazyCommand("duelist.cli.verdict", "verdict", "Exit with 0 when an arena's goal is reached."),
    "verify": LazyCommand("duelist.cli.verify", "verify", "Check every event of a journal, and its snapshot."),
    "warm-up": LazyCommand("duelist.cli.warm_up", "warm_up", "Compile every kernel now, as when building an image."),
}


class _LazyGroup(click.Group):
    """A group that knows its commands' names and summaries without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        known = COMMANDS.get(cmd_name)
        if known is None:
            return None
        command: click.Command = getattr(importlib.import_module(known.module), known.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in sorted(COMMANDS)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="duelist")
def cli() -> None:
    """Learn online from pairwise preferences: contextual dueling bandits."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line. Mistakes of the caller end in one line on standard error, never in a traceback."""
    try:
        status = cli.main(arguments, prog_name="duelist", standalone_mode=False)
    except DuelistError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(EXIT_BAD_INPUT)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(EXIT_INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)
