"""What a reproduction will do: which specs, into which folder, and how they become a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from duelist.experiments.spec import Spec


@dataclass(frozen=True)
class Plan:
    """Specs by key, and what to do with their results.

    Attributes:
        specs: key -> spec, in the order of running.
        folder: name of the folder under `results`.
        report: from (results by the same keys, the command, seconds) to a reproduction.
    """

    specs: Mapping[Any, Spec]
    folder: str
    report: Callable[[Mapping[Any, Any], str, float], Any]
