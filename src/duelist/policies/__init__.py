"""Rules that choose the next pair: one paper, one file, in `algorithms`; what several share in `parts`."""

from __future__ import annotations

from duelist.exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
