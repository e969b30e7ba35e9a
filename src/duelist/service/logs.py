"""Logs that programs read: one JSON object per line, of every request and of everything that the service remarks."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, Literal, TextIO

ACCESS = logging.getLogger("duelist.access")
LogFormat = Literal["text", "json"]


class JsonLines(logging.Formatter):
    """A record as one line: time (UTC), level, logger, message, and what `extra={"fields": ...}` adds."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def set_up_logs(kind: LogFormat, *, access: bool, stream: TextIO | None = None) -> None:
    """Send the logs of the service and of its server to standard error.

    Args:
        kind: "text" for people, "json" for programs.
        access: whether every request gets a line.
        stream: another place.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if kind == "json" else logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    for name, level in (("duelist", logging.INFO), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    ACCESS.setLevel(logging.INFO if access else logging.WARNING)
