"""The OpenAPI document is true."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.schema_fuzz import ARENA, fuzz
from tests.support.services import Running, running_service


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Running]:
    with running_service() as running:
        running.create(id=ARENA)
        yield running


@pytest.mark.slow
def test_every_answer_is_one_that_the_document_promises(fuzzed: Running) -> None:
    # A few hundred here; benchmarks/service_schema.py sends 5,000.
    counts = fuzz(fuzzed.url, fuzzed.secret, examples=5)
    assert sum(counts.values()) > 200
    assert {"200", "201", "404", "422"} <= set(counts), "good and bad requests were among them"
    assert not any(status.startswith("5") for status in counts)


def test_every_route_and_refusal_is_declared(fuzzed: Running) -> None:
    document = fuzzed.anonymous.get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if path.startswith("/api/v1/"):
                assert {"401", "403", "413", "422", "429"} <= set(operation["responses"]), (method, path)
            refused = operation["responses"].get("422")
            if refused:
                assert refused["content"]["application/json"]["schema"]["$ref"].endswith("/Problem")
    assert "HTTPValidationError" not in str(document)
