from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.services import Running, running_service


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """One service a module: tests make their own arenas in it."""
    with running_service() as running:
        yield running
