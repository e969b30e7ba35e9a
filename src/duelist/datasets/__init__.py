"""Real comparisons in one shape, from packages and files that you have; no data are shipped."""

from __future__ import annotations

from duelist.exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
