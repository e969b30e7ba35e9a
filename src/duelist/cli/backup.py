"""`duelist backup`, `duelist restore`, `duelist migrate`: copies of a journal, of the service or of an agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from duelist.core.errors import InvalidInputError
from duelist.journal.address import is_shared, open_store
from duelist.journal.copying import Copied, copy_journal
from duelist.journal.writer import Store

_SUFFIX = ".incomplete"


@click.command()
@click.argument("data")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(data: str, file: Path) -> None:
    """Copy the journal DATA, a file or postgresql://..., to a new FILE. The service may go on meanwhile.

    Every event is checked on the way. A plain `cp` of a file in use misses what is in the write-ahead log beside it.
    """
    copied = _copy_to_file(data, file)
    click.echo(
        f"{file}: {copied.head} events, {file.stat().st_size / 2**20:.1f} MB. `duelist restore {file} ...` brings them back."
    )


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("data")
def restore(file: Path, data: str) -> None:
    """Copy the backup FILE to DATA, a new file or a PostgreSQL database without a journal. No service may run on DATA."""
    copied = _copy(str(file), data)
    click.echo(f"{_name(data)}: {copied.head} events. Start with: duelist serve --data {_name(data)}")


@click.command()
@click.argument("source")
@click.argument("target")
def migrate(source: str, target: str) -> None:
    """Copy the journal SOURCE to TARGET, each a file or postgresql://..., as from SQLite to PostgreSQL.

    Stop the service on SOURCE first, or votes that come meanwhile stay behind; the same command again brings them over. What
    versions from 0.1.0 on wrote is read as it is and needs no migration.
    """
    copied = _copy(source, target)
    verb = "more events" if copied.continued else "events"
    click.echo(
        f"{copied.events} {verb} copied. {_name(target)} holds {copied.head}. Start with: duelist serve --data {_name(target)}"
    )


def _name(data: str) -> str:
    """The address without a password."""
    return "postgresql://..." if is_shared(data) else data


def _copy_to_file(data: str, file: Path) -> Copied:
    """A backup is whole or not there: it has its name only when it is finished."""
    if file.exists():
        raise InvalidInputError(f"{file} exists already. Choose another name: a backup never takes the place of another.")
    unfinished = file.with_name(file.name + _SUFFIX)
    copied = _copy(data, str(unfinished))
    unfinished.replace(file)
    return copied


def _copy(source: str, target: str) -> Copied:
    if not is_shared(source) and not is_shared(target):
        with suppress(OSError):
            if Path(source).samefile(target):
                raise InvalidInputError(f"{source} and {target} are the same file.")
    with closing(open_store(source, must_exist=True)) as original, closing(open_store(target)) as copy:
        with _progress(original) as advance:
            copied = copy_journal(original, copy, advance)
        for note in original.notes:
            click.echo(f"Note: {note}")
        if not copied.head:
            raise InvalidInputError(f"{_name(source)} holds no events: there is nothing to copy.")
        return copied


@contextmanager
def _progress(store: Store) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal."""
    total = store.begin()
    store.rollback()
    columns = (TextColumn("copying"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda events: bar.advance(task, events)
