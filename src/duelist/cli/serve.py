"""`duelist serve`: the service and its page, with one command and no configuration."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import click

from duelist.core.errors import InvalidInputError
from duelist.journal.address import is_shared, open_journal

if TYPE_CHECKING:
    from fastapi import FastAPI

    from duelist.service import ServiceSettings, Store
    from duelist.service.logs import LogFormat

_KEY_VARIABLE = "DUELIST_ADMIN_KEY"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_GRACE = 10
_REFRESH_SECONDS = 0.5  # until a key or an arena that another process made is known here


@click.command()
@click.option(
    "--data", default="duelist.db", show_default=True, help="SQLite file, made if it does not exist, or postgresql://..."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on; 0 for any free one."
)
@click.option("--demo", is_flag=True, help="Create a sample arena to vote on.")
@click.option("--rate", default=200.0, show_default=True, help="Requests per second for each key and address.")
@click.option("--burst", default=400, show_default=True, help="Requests at once for each key and address.")
@click.option("--max-body", default=2_000_000, show_default=True, help="Bytes that a request may have.")
@click.option(
    "--embedder", "embedders", multiple=True, metavar="NAME=MODULE:FACTORY", help="Another way to turn text into features."
)
@click.option("--snapshot-every", default=5000, show_default=True, type=click.IntRange(1), help="Events between two snapshots.")
@click.option("--secure-cookie", is_flag=True, help="The page is reached over https.")
@click.option(
    "--trusted-proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A proxy whose X-Forwarded-For is believed, for limits per address; repeat it.  [default: none]",
)
@click.option("--access-log", is_flag=True, help="Write a line for every request to standard error.")
@click.option(
    "--log-format", default="text", show_default=True, type=click.Choice(["text", "json"]), help="Logs for people or programs."
)
@click.option("--metrics/--no-metrics", default=True, help="Answer at /metrics.  [default: yes]")
@click.option("--openapi/--no-openapi", default=True, help="Serve the document of the API.  [default: yes]")
def serve(
    data: str,
    host: str,
    port: int,
    demo: bool,
    snapshot_every: int,
    proxies: tuple[str, ...],
    access_log: bool,
    log_format: LogFormat,
    **limits: Any,
) -> None:
    """Start the service and the page people vote on.

    The first start prints an admin key, once: only its digest is stored. Every start prints a link that opens the page as
    administrator, once. The environment variable DUELIST_ADMIN_KEY sets an admin key instead.
    """
    _require_libraries()
    from duelist.service import add_demo, bound_socket, check_key, create_app, first_key
    from duelist.service.logs import set_up_logs

    set_up_logs(log_format, access=access_log)
    settings = _settings(**limits)
    given = os.environ.get(_KEY_VARIABLE) or None
    check_key(given)
    bound = bound_socket(host, port)
    store = _open_store(data, snapshot_every)
    secret = first_key(store, given)
    if demo:
        add_demo(store, settings)
    app = create_app(store, settings)
    address = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}"
    if secret is not None and given is None:
        click.echo(f"Admin key, shown this once: {secret}")
    click.echo(f"Open the page as administrator (works once): {address}/open/{app.state.service.sessions.new_link()}")
    if host not in _LOCAL:
        click.echo("Note: others can reach this address, and keys travel in the clear. Put a proxy with https before it.")
    where = "PostgreSQL" if is_shared(data) else data
    _run(app, bound, f"Listening on {address}. Votes go to {where}. Stop with Ctrl+C.", proxies)
    click.echo(f"Stopped. Every vote that was acknowledged is in {where}.")


def _require_libraries() -> None:
    try:
        import uvicorn  # noqa: F401 - only whether it is there

        import duelist.service.app  # noqa: F401
    except ImportError as error:
        raise InvalidInputError(f"the service needs more libraries ({error}). Run: pip install 'duelist[serve]'.") from error


def _settings(*, embedders: tuple[str, ...], **limits: Any) -> ServiceSettings:
    from duelist.service import ServiceSettings, embedder_from, shipped_embedders

    known = {**shipped_embedders(), **dict(embedder_from(text) for text in embedders)}
    return ServiceSettings(embedders=known, refresh_seconds=_REFRESH_SECONDS, **limits)


def _open_store(data: str, snapshot_every: int) -> Store:
    from duelist.service import Store

    store = Store(open_journal(data), snapshot_every=snapshot_every)
    for note in store.notes:
        click.echo(f"Note: {note}")
    return store


def _allow_many_connections() -> None:
    """Raise the limit of open files, 1,024 on most systems, to what the system allows: every connection is one."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _run(app: FastAPI, bound: socket.socket, greeting: str, proxies: tuple[str, ...] = ()) -> None:
    """Serve until Ctrl+C. Says the greeting once it listens, and once Ctrl+C would be an orderly end."""
    import uvicorn

    from duelist.service.http.protocol import ImpatientProtocol

    class Server(uvicorn.Server):
        """Says where it listens."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            click.echo(greeting)
            threading.Thread(target=_get_ready, name="duelist warm-up", daemon=True).start()

    _allow_many_connections()
    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_graceful_shutdown=_GRACE,
    )
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C is how it is meant to end
        Server(config).run(sockets=[bound])


def _get_ready() -> None:
    from duelist.service import freeze_gc, warm_up

    warm_up()
    freeze_gc()
