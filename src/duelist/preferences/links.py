"""Laws of who wins, given how much better the first candidate is: the logistic one, and two that it is not.

Every link F has F(0) = 1/2 and the logistic's slope there, F'(0) = 1/4: close calls are decided alike, and the links differ in
how sure a clear one is.

    logistic  1 / (1 + e^-u)
    probit    Phi(u sqrt(2 pi) / 4), Phi the normal distribution function: upsets become rare sooner
    cauchit   1/2 + arctan(pi u / 4) / pi: upsets never become rare
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from duelist.core.checks import finite_number, one_of
from duelist.core.errors import InvalidInputError
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray

WinLaw = Callable[[npt.ArrayLike], FloatArray]


def probit(logit: npt.ArrayLike) -> FloatArray:
    """Chance that the first candidate wins under normal noise.

    Example:
        >>> float(probit(0.0))
        0.5
    """
    return np.asarray(ndtr(np.asarray(logit, dtype=np.float64) * (math.sqrt(2.0 * math.pi) / 4.0)))


def cauchit(logit: npt.ArrayLike) -> FloatArray:
    """Chance that the first candidate wins under Cauchy noise.

    Example:
        >>> round(float(cauchit(4.0)), 3)  # the logistic says 0.982
        0.902
    """
    return np.asarray(0.5 + np.arctan(np.asarray(logit, dtype=np.float64) * (math.pi / 4.0)) / math.pi)


LINKS: Mapping[str, WinLaw] = MappingProxyType({"logistic": win_probability, "probit": probit, "cauchit": cauchit})


def win_law(link: str, flips: float) -> WinLaw:
    """Chance that the vote goes to the first candidate: (1 - flips) F(u) + flips F(-u).

    Args:
        link: name of F.
        flips: chance that a vote is flipped, below 1/2.

    Example:
        >>> round(float(win_law("logistic", 0.1)(100.0)), 6)
        0.9
    """
    law = LINKS[one_of("link", link, LINKS)]
    if finite_number("flips", flips, at_least=0.0) >= 0.5:
        raise InvalidInputError(
            f"flips must be a probability below 0.5; got {flips:g}. At 0.5 votes say nothing; above, they praise the worse."
        )
    if flips == 0.0:
        return law
    return lambda logit: flips + (1.0 - 2.0 * flips) * law(logit)
