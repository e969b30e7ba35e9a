"""How the regrets of the field grow, as the paper's Table 1 states them: without constants, and without logarithms of d and T.

They are orders of growth, proved for each algorithm with the settings of its own paper. Two of them can be compared as d, T
and K change; none of them is a regret.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Table 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError

FEATURES_RATE: Final = "d sqrt(T)"
ARMS_RATE: Final = "sqrt(d T log K)"


@dataclass(frozen=True)
class RegretRate:
    """One row of the table.

    Attributes:
        technique: how the algorithm explores, in the paper's words.
        infinite_actions: whether the table says that it plays infinitely many arms.
        formula: the growth of its regret.
    """

    technique: str
    infinite_actions: bool
    formula: Literal["d sqrt(T)", "sqrt(d T log K)"]

    def at(self, *, dim: int, horizon: int, arms: int | None = None) -> float:
        """The formula at d, T and K; arms None for infinitely many.

        The second formula is the smaller one while log K < d, so below e^d arms.

        Example:
            >>> REGRET_RATES["FGTS"].at(dim=10, horizon=2500)
            500.0
            >>> round(REGRET_RATES["StaD"].at(dim=10, horizon=2500, arms=32), 1)
            294.4
        """
        whole_number("dim", dim, at_least=1)
        whole_number("horizon", horizon, at_least=1)
        if self.formula == FEATURES_RATE:
            return dim * math.sqrt(horizon)
        if arms is None:
            raise InvalidInputError(f"{self.formula} needs a number of arms; got None. It is a rate for finite sets.")
        return math.sqrt(dim * horizon * math.log(whole_number("arms", arms, at_least=2)))


REGRET_RATES: Mapping[str, RegretRate] = MappingProxyType(
    {
        "MaxInP": RegretRate("UCB + Adaptive Selection", True, FEATURES_RATE),
        "CoLSTIM": RegretRate("Perturbed UCB", False, FEATURES_RATE),
        "StaD": RegretRate("SupLinUCB + Adaptive Selection", False, ARMS_RATE),
        "SupCoLSTIM": RegretRate("Perturbed SupLinUCB", False, ARMS_RATE),
        "FGTS": RegretRate("Feel-Good Thompson Sampling", True, FEATURES_RATE),
    }
)
"""The rows of the paper's Table 1, under the names of this package's policies (`policies/registry.py`)."""
