"""`duelist serve`: the service and its page, with one command and no configuration."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import click

from duelist.core.errors import InvalidInputError

_KEY_VARIABLE = "DUELIST_ADMIN_KEY"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_GRACE = 10


@click.command()
@click.option(
    "--data", default="duelist.db", show_default=True, help="SQLite file, made if it does not exist, or postgresql://..."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on; 0 for any free one."
)
@click.option("--demo", is_flag=True, help="Create a sample arena to vote on.")
@click.option("--rate", default=200.0, show_default=True, help="Requests a second for each key.")
@click.option("--burst", default=400, show_default=True, help="Requests at once for each key.")
@click.option("--max-body", default=2_000_000, show_default=True, help="Bytes that a request may have.")
@click.option(
    "--embedder", "embedders", multiple=True, metavar="NAME=MODULE:FACTORY", help="Another way to turn text into features."
)
@click.option("--snapshot-every", default=5000, show_default=True, type=click.IntRange(1), help="Events between two snapshots.")
@click.option("--secure-cookie", is_flag=True, help="The page is reached over https.")
def serve(
    data: str,
    host: str,
    port: int,
    demo: bool,
    rate: float,
    burst: int,
    max_body: int,
    embedders: tuple[str, ...],
    snapshot_every: int,
    secure_cookie: bool,
) -> None:
    """Start the service and the page people vote on.

    The first start prints an admin key, once: only its digest is stored. Every start prints a link that opens the page as
    administrator, once. The environment variable DUELIST_ADMIN_KEY sets an admin key instead.
    """
    try:
        import uvicorn

        from duelist.service.app import create_app
        from duelist.service.ledger import Ledger
        from duelist.service.settings import ServiceSettings, shipped_embedders
        from duelist.service.start import (
            add_demo,
            bound_socket,
            check_key,
            embedder_from,
            first_key,
            is_shared,
            leave_memory_alone,
            open_journal,
            warm_up,
        )
    except ImportError as error:
        raise InvalidInputError(f"the service needs more libraries ({error}). Run: pip install 'duelist[serve]'.") from error

    settings = ServiceSettings(
        max_body=max_body,
        rate=rate,
        burst=burst,
        embedders={**shipped_embedders(), **dict(embedder_from(text) for text in embedders)},
        secure_cookie=secure_cookie,
        refresh_seconds=0.5 if is_shared(data) else 0.0,
    )
    given = os.environ.get(_KEY_VARIABLE) or None
    check_key(given)
    bound = bound_socket(host, port)
    ledger = Ledger(open_journal(data), snapshot_every=snapshot_every)
    for note in ledger.notes:
        click.echo(f"Note: {note}")
    secret = first_key(ledger, given)
    if demo:
        add_demo(ledger, settings)
    app = create_app(ledger, settings)
    where = "PostgreSQL" if is_shared(data) else data

    def get_ready() -> None:
        warm_up()
        leave_memory_alone()

    class Server(uvicorn.Server):
        """Says where it listens once it does, and once Ctrl+C would be an orderly end."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            click.echo(f"Listening on {address}. Votes go to {where}. Stop with Ctrl+C.")
            threading.Thread(target=get_ready, name="duelist warm-up", daemon=True).start()

    shown_host = f"[{host}]" if ":" in host else host
    address = f"http://{shown_host}:{bound.getsockname()[1]}"
    if secret is not None and given is None:
        click.echo(f"Admin key, shown this once: {secret}")
    click.echo(f"Open the page as administrator (works once): {address}/open/{app.state.service.sessions.new_link()}")
    if host not in _LOCAL:
        click.echo("Note: others can reach this address, and keys travel in the clear. Put a proxy with https before it.")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C is how it is meant to end
        Server(config).run(sockets=[bound])
    click.echo(f"Stopped. Every vote that was acknowledged is in {where}.")
