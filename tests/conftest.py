"""Settings of the whole suite: random examples are the same in every run."""

from __future__ import annotations

import os

from hypothesis import settings

# The suite multiplies small matrices only: threads would wait for each other. Read when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("fixed")
