"""duelist: learn online from pairwise preferences.

Show two candidates, learn which was preferred, choose the next two better. See the README for a first run.

The root holds what most users type; everything else is one room away, as in `from duelist.samplers import PolyaGamma`.
"""

from __future__ import annotations

from duelist.exports import lazy_exports
from duelist.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_exports(__name__, __file__)
