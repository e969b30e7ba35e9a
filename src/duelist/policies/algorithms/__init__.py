"""One paper, one file. The stub beside this file is the registry of policies: one line per policy."""

from __future__ import annotations

from duelist.exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
