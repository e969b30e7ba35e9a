"""What a reproduction will do: which specs, into which folder, and how they become a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from duelist.experiments.spec import Spec


def nothing_more(results: Mapping[Any, Any]) -> Mapping[Any, Spec]:  # noqa: ARG001 - the signature of what follows
    """No specs that depend on the results of others."""
    return {}


@dataclass(frozen=True)
class Plan:
    """Specs by key, and what to do with their results.

    Attributes:
        specs: key -> spec, in the order of running.
        folder: name of the folder under `results`.
        report: from (results by key, the command, seconds) to a reproduction.
        then: from the results of `specs` to further specs, by keys of their own.
    """

    specs: Mapping[Any, Spec]
    folder: str
    report: Callable[[Mapping[Any, Any], str, float], Any]
    then: Callable[[Mapping[Any, Any]], Mapping[Any, Spec]] = nothing_more
