"""`duelist verify`: is a journal whole, and does it add up to what its snapshot says?"""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import click

from duelist.core.errors import SavedStateError
from duelist.journal.address import open_store
from duelist.journal.base import COMPACTED, JournalDamagedError
from duelist.journal.chunks import snapshot_size
from duelist.journal.writer import Store, checked

EXIT_DAMAGED = 1
_AGENT = ("opened", COMPACTED)


@click.command()
@click.argument("data")
@click.option(
    "--replay/--no-replay", default=True, help="Build the state of a service from its events, and compare.  [default: yes]"
)
@click.pass_context
def verify(ctx: click.Context, data: str, replay: bool) -> None:
    """Read every event of the journal DATA, a file or postgresql://..., and check it.

    Of a service, the state is then built from all events, and must be the snapshot to the last bit. Ends with status 1 where
    anything is damaged, and says where. Changes nothing; the service may go on meanwhile.
    """
    with closing(open_store(data, must_exist=True)) as store:
        for note in store.notes:
            click.echo(f"Note: {note}")
        try:
            kinds, last, is_agent = _check_events(store)
        except JournalDamagedError as error:
            click.echo(f"Damaged: {error}", err=True)
            ctx.exit(EXIT_DAMAGED)
        click.echo(f"events: {last}, each as it was written ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common(6))})")
        snapshot = store.snapshot(in_turn=False)
        if snapshot is None:
            click.echo("snapshot: none; a start replays every event")
        elif snapshot.position > last:
            click.echo(
                f"Damaged: the snapshot is of event {snapshot.position}, the journal ends at {last}. Events are missing at its "
                "end: restore it from a copy. Started as it is, the service drops the snapshot.",
                err=True,
            )
            ctx.exit(EXIT_DAMAGED)
        else:
            click.echo(f"snapshot: at event {snapshot.position}, {snapshot_size(snapshot.data) / 2**20:.1f} MB")
        if replay and not is_agent and snapshot is not None and not _adds_up(store, snapshot.position):
            click.echo(
                "Damaged: the snapshot is not what the events add up to. The events count: delete the snapshot, and the next "
                "start replays them. Please report it.",
                err=True,
            )
            ctx.exit(EXIT_DAMAGED)
    click.echo("whole")


def _check_events(store: Store) -> tuple[Counter[str], int, bool]:
    """How many of which kind, the last position, and whether it is an agent's."""
    kinds: Counter[str] = Counter()
    last, first = 0, ""
    for record in checked(store.rows(0, in_turn=False), 0):
        first = first or record.kind
        kinds[record.kind] += 1
        last = record.position
    return kinds, last, first in _AGENT


def _adds_up(store: Store, position: int) -> bool:
    """Whether the state from all events is, at the snapshot, what was saved."""
    from duelist.service.store import ServiceFold

    snapshot = store.snapshot(in_turn=False)
    if snapshot is None or snapshot.position != position:
        return True  # a newer one took its place meanwhile: nothing to compare with
    fold = ServiceFold()
    state = fold.new()
    for record in checked(store.rows(0, in_turn=False), 0):
        if record.position > position:
            break
        fold.apply(state, record)
    try:
        saved = fold.load(snapshot.data)
    except SavedStateError as error:
        click.echo(f"snapshot: of another version ({error}); a start replays every event")
        return True
    return fold.dump(saved) == fold.dump(state)
