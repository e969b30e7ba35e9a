"""What can go wrong with a journal."""

from __future__ import annotations

import os

from duelist.core.errors import DuelistError


class JournalError(DuelistError):
    """The journal could not be read or written. What was to be appended may or may not be in it: read it to find out."""


class JournalClosedError(JournalError):
    """The journal was closed before. Nothing was appended."""


class JournalDamagedError(JournalError):
    """What the journal holds is not what was written to it, or not a journal that this version reads."""


class JournalForkedError(JournalError):
    """The process was forked after the journal was opened. Nothing was appended."""


def check_process(opened_in: int) -> None:
    """Refuse a journal that another process opened: its writer thread stayed there, and waiting for it never ends."""
    if os.getpid() != opened_in:
        raise JournalForkedError(
            f"the journal was opened in process {opened_in}; this is process {os.getpid()}, forked from it, where the thread "
            f"that writes does not exist. Open the journal and make the agent after the fork: with gunicorn --preload, in the "
            f"hook post_fork."
        )
