"""Samplers by name."""

from __future__ import annotations

from collections.abc import Callable

from duelist.core.checks import one_of
from duelist.samplers.base import Sampler
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA

SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "mala": MALA,
    "paper": Langevin,
}


def sampler_named(name: str) -> Sampler:
    """The sampler of that name at its default settings; an unknown name says which is nearest."""
    return SAMPLERS[one_of("sampler", name, SAMPLERS)]()
