"""The voting service: `http` requests and pages, `arena` items and events, `insight` what is believed."""

from __future__ import annotations

from duelist.exports import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
