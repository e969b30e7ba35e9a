"""`duelist journal`: what the journal of an agent holds, and compacting it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from duelist.core.errors import InvalidInputError
from duelist.journal.base import COMPACTED, Record
from duelist.journal.chunks import snapshot_size
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.live.live_agent import LiveAgent
from duelist.policies.codec import policy_from_mapping

_PATH = click.argument("path", type=click.Path(dir_okay=False, path_type=Path))


@click.group()
def journal() -> None:
    """The journal of an agent, one SQLite file."""


@journal.command()
@_PATH
def info(path: Path) -> None:
    """What is in the journal at PATH: whose it is, how many events of which kind, its size and its last vote."""
    with _opened(path) as (log, first):
        kinds: Counter[str] = Counter()
        last: Record = first
        last_vote: Record | None = None
        for last in log.read():
            kinds[last.kind] += 1
            last_vote = last if last.kind == "told" else last_vote
        snapshot = log.latest_snapshot()
        size = 0.0 if snapshot is None else snapshot_size(snapshot.data) / 2**20
        said = first.body
        lines = {
            "agent": f"{said['policy_name']}, dim {said['dim']}, seed {said['seed']}, of duelist {said['version']}",
            "size": f"{_size(path) / 2**20:.1f} MB",
            "events": ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()),
            "last event": str(last.position),
            "snapshot": "none" if snapshot is None else f"at event {snapshot.position}, {size:.1f} MB",
            "last vote": "none since the journal was compacted" if kinds[COMPACTED] else "none",
        }
        if last_vote is not None:
            lines["last vote"] = _describe_vote(last_vote.body)
        for name, text in lines.items():
            click.echo(f"{name + ':':<12}{text}")
        for note in log.notes:
            click.echo(f"note: {note}")


@journal.command()
@_PATH
def compact(path: Path) -> None:
    """Let one event take the place of all in the journal at PATH: what was learnt stays, the past is gone.

    Nothing is left of features, answers and voters' names. What was told before can no longer be taken back, nor learnt by
    another policy. The file is written anew.
    """
    with _opened(path) as (log, first):
        before = _size(path)
        agent = _agent_of(log, first.body)
        agent.compact()
    click.echo(f"{path}: {before / 2**20:.1f} MB before, {_size(path) / 2**20:.1f} MB now; {agent.rounds} answers stay learnt.")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[SQLiteJournal, Record]]:
    """The journal, and its first event, which says whose it is."""
    if not path.exists():
        raise InvalidInputError(f"there is no file {path}. Name the SQLite journal of an agent.")
    with SQLiteJournal(path) as log:
        first = next(log.read(), None)
        if first is None:
            raise InvalidInputError(f"{path} is an empty journal: nobody has asked anything yet.")
        if first.kind not in ("opened", COMPACTED):
            raise InvalidInputError(
                f"{path} is not the journal of an agent: its first event is {first.kind!r}. The events of the service are its "
                f"record of who voted on what, which its exports read, so it keeps them all."
            )
        yield log, first


def _agent_of(log: SQLiteJournal, said: dict[str, Any]) -> LiveAgent[Any, Any]:
    """The agent whose journal it is, with the policy it has now."""
    written = [said, *(record.body for record in log.read() if record.kind == "policy")][-1]["policy"]
    if written is None:
        raise InvalidInputError(
            f"the policy of this journal, {said['policy_name']}, is not one of duelist's own, and the journal cannot describe "
            f"it. Make the agent in Python and call its compact()."
        )
    policy: Any = policy_from_mapping(written)
    kind: Any = SlateAgent if hasattr(policy, "choices") else Agent
    settings = {name: said[name] for name in ("dim", "seed", "horizon", "max_pending")}
    agent: LiveAgent[Any, Any] = kind(policy, **settings, journal=log)
    return agent


def _describe_vote(body: dict[str, Any]) -> str:
    """When it was given is known only where `learn` was told, on whatever clock: seconds since 1970 are the rule."""
    time, voter = body.get("time"), body.get("voter")
    when = "" if time is None else f" at {time:g}"
    if time is not None and 1e9 < time < 1e10:
        when = f" at {datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"on question {body['id']}{when}{'' if voter is None else f' by {voter}'}"


def _size(path: Path) -> int:
    """Bytes of the file and of its write-ahead log."""
    log = path.with_name(f"{path.name}-wal")
    return path.stat().st_size + (log.stat().st_size if log.exists() else 0)
