"""Settings of the whole suite: random examples are the same in every run."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("fixed")
