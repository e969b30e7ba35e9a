"""The journal in memory keeps the promises of every journal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from duelist.journal.memory import MemoryJournal
from tests.support.journal_contract import JournalContract, OpenJournal


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def open_journal(self) -> Iterator[OpenJournal]:
        opened: list[MemoryJournal] = []

        def open_one() -> MemoryJournal:
            opened.append(MemoryJournal())
            return opened[-1]

        yield open_one
        for journal in opened:
            journal.close()
