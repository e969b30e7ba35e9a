"""Samplers by name."""

from __future__ import annotations

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.samplers.base import Sampler
from duelist.samplers.gaussian import Laplace, Online
from duelist.samplers.langevin import SGLDCV, Langevin, UnadjustedLangevin
from duelist.samplers.mala import MALA
from duelist.samplers.polya_gamma import PolyaGamma

# Every sampler by the name that files and the command line give it.
SAMPLERS: dict[str, type[Sampler]] = {
    "mala": MALA,
    "polya_gamma": PolyaGamma,
    "paper": Langevin,
    "langevin": UnadjustedLangevin,
    "sgld_cv": SGLDCV,
    "laplace": Laplace,
    "online": Online,
}
_REFUSED = {
    "sgld": "Plain stochastic-gradient Langevin is not offered: near the mode the noise of a batch is larger than the noise "
    "that Langevin adds, and with batches of 32 the draws are several times too wide. Use 'sgld_cv', which takes that noise "
    "away with control variates, or 'mala', which is exact."
}


def sampler_named(name: str) -> Sampler:
    """The sampler of that name at its default settings; an unknown name says which is nearest, a refused one why."""
    if name in _REFUSED:
        raise InvalidInputError(f"sampler {name!r}: {_REFUSED[name]}")
    return SAMPLERS[one_of("sampler", name, SAMPLERS)]()
