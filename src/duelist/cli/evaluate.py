"""`duelist evaluate`: how other routers would have done, from a log."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from duelist.cli.policy_text import parse_policies
from duelist.core.errors import InvalidInputError
from duelist.live.agent import Agent
from duelist.live.duel_log import DuelLog
from duelist.live.off_policy import ESTIMATORS, PolicyValue, PoorOverlapWarning, Router, evaluate_off_policy


@click.command()
@click.argument("log", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--always", multiple=True, metavar="CANDIDATE", help="Judge picking this one: a name, or a row in a journal.")
@click.option("--policy", "policies", multiple=True, metavar="SPEC", help="Judge the favourite of this policy; see below.")
@click.option("--against", metavar="CANDIDATE", help="Opponent that is always the same. [default: any other candidate]")
@click.option("--estimator", type=click.Choice(ESTIMATORS), default="dr", show_default=True)
def evaluate(log: Path, always: tuple[str, ...], policies: tuple[str, ...], against: str | None, estimator: Any) -> None:
    """How other routers would have done, from a log.

    LOG is a CSV or Parquet file that the service exported, or the SQLite journal of an agent. The value is the share of votes
    that a router wins. A policy learns the first half of the log, and then everything is judged by the second half. Without
    --always and --policy, every candidate is judged.
    """
    duels = _read(log)
    learnt, judged = duels.select(slice(0, len(duels) // 2)), duels.select(slice(len(duels) // 2, None))
    routers: dict[str, Router] = {f"always {name}": _candidate(name, duels) for name in always}
    for name, policy in parse_policies(list(policies)).items():
        agent = Agent(policy, dim=duels.sets[0].shape[1], keep_votes=False)
        agent.import_votes(*learnt.shown, learnt.outcomes)
        routers[f"favourite of {name}"] = agent.best
    if not routers:
        names = duels.names[0] or [str(row) for row in range(len(duels.sets[0]))]
        routers = {f"always {name}": _candidate(name, duels) for name in names}
    used = judged if policies else duels
    opponent = None if against is None else _candidate(against, duels)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorOverlapWarning)  # the table has them
        for name, router in routers.items():
            found[name] = evaluate_off_policy(used, router, against=opponent, estimator=estimator)
    Console().print(_table(found, f"{len(used)} duels, {against or 'any other candidate'} as opponent, {estimator}"))


def _read(path: Path) -> DuelLog:
    if not path.exists():
        raise InvalidInputError(f"there is no file {path}. Name an export of the service or the journal of an agent.")
    if path.suffix in (".csv", ".parquet"):
        return DuelLog.from_file(path)
    from duelist.journal.sqlite import SQLiteJournal

    with SQLiteJournal(path) as journal:
        return DuelLog.from_journal(journal)


def _candidate(name: str, duels: DuelLog) -> Router:
    if duels.names[0]:
        return name
    if not name.isdigit():
        raise InvalidInputError(f"candidates of a journal are rows, from 0 on; got {name!r}.")
    return int(name)


def _table(found: dict[str, PolicyValue], title: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD)
    table.add_column("router", style="bold")
    for column in ("votes won", "95 % interval", "effective duels"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("warning")
    for name, value in sorted(found.items(), key=lambda one: -one[1].estimate):
        interval = f"{value.low:.3f} to {value.high:.3f}"
        table.add_row(escape(name), f"{value.estimate:.3f}", interval, f"{value.effective_rounds:.0f}", escape(value.warning))
    return table
