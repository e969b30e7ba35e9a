"""Token buckets: a key may make a burst of requests, and in the long run so many a second."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

# Buckets that are remembered. One that was forgotten is full again, which is what it would be after a pause.
_REMEMBERED = 10_000


class RateLimit:
    """One bucket a name.

    Args:
        rate: tokens a second that flow in.
        burst: tokens that a full bucket holds.
        clock: seconds, monotonic.
    """

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a token: 0 if there was one, else the seconds until there is."""
        now = self._clock()
        tokens, then = self._buckets.pop(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        wait = 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._rate
        self._buckets[name] = (tokens - 1.0 if wait == 0.0 else tokens, now)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return wait
