"""HTTP connections with an end: who connects and says nothing, or says it too slowly, is disconnected."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_SECONDS = 10.0  # from a connection, or from the last answer, to the end of a request's head


class ImpatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which waits for ever for the first request, with a limit for its head.

    Bodies have a limit of their own, in the middleware; after an answer uvicorn waits for its keep-alive time.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn has the same
        """Start to wait."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(HEAD_SECONDS, transport.close)

    def on_headers_complete(self) -> None:
        """The head is here."""
        self._deadline.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing to wait for."""
        self._deadline.cancel()
        super().connection_lost(exc)
