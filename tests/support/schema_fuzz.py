"""Requests made from the OpenAPI document by Schemathesis, good ones and bad ones, each answer held against the document."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

ARENA = "arena"
_WRONG_BUT_WELL_FORMED = ["2xx", "401", "403", "404", "409", "422"]


def fuzz(url: str, secret: str, *, examples: int, seed_: int = 0) -> Counter[str]:
    """Send `examples` good and as many bad requests to every route.

    Returns how often each status came. The first answer that the document does not promise raises.

    Args:
        url: of a running service that has an arena called `ARENA` with items alpha, beta and gamma.
        secret: an admin key.
        examples: requests a route and mode.
        seed_: names the random numbers.
    """
    loaded = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    # What no schema can say, such as two fields that do not fit together, is refused with 422.
    loaded.config.checks.positive_data_acceptance.expected_statuses = list(_WRONG_BUT_WELL_FORMED)
    counts: Counter[str] = Counter()
    for found in loaded.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _fuzz_one(operation, mode, secret, examples, seed_, counts)
    return counts


def _fuzz_one(operation: Any, mode: GenerationMode, secret: str, examples: int, seed_: int, counts: Counter[str]) -> None:
    strategy = operation.as_strategy(generation_mode=mode)

    @seed(seed_)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        # Half of the time an arena that exists, so that requests get past the first question.
        if mode is GenerationMode.POSITIVE and "arena" in (case.path_parameters or {}) and sum(counts.values()) % 2:
            case.path_parameters["arena"] = ARENA
        answer = case.call(headers={"Authorization": f"Bearer {secret}"})
        counts[str(answer.status_code)] += 1
        case.validate_response(answer)

    # A route without parameters has no bad requests.
    with contextlib.suppress(Unsatisfiable):
        one()
