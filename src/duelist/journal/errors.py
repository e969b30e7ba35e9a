"""What can go wrong with a journal."""

from __future__ import annotations

from duelist.core.errors import DuelistError


class JournalError(DuelistError):
    """The journal could not be read or written. What was to be appended may or may not be in it: read it to find out."""


class JournalClosedError(JournalError):
    """The journal was closed before. Nothing was appended."""


class JournalDamagedError(JournalError):
    """What the journal holds is not what was written to it, or not a journal that this version reads."""
