"""Answers that name no winner, a tie or "both bad": outcome models, so that such answers are data and not dropped.

Davidson (1970):  P(first) : P(second) : P(tie) = e^{u/2} : e^{-u/2} : nu
Rao-Kupper (1967): P(first) = s(u - log kappa), P(second) = s(-u - log kappa), the rest a tie, kappa >= 1
Both bad:          P(first) : P(second) : P(both bad) = e^{r1} : e^{r2} : e^{b}, b the utility of leaving both

with u = r1 - r2. The first two know the difference alone; "both bad" also says that both utilities are low, which a difference
cannot, so its slope has two entries.

Davidson's model extends to slates of q candidates: a tie has odds nu against the geometric mean of the q odds e^{r_k}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_softmax

from duelist.core.checks import finite_number, one_of
from duelist.typing import FloatArray

Outcome = Literal["first", "second", "tie"]
OUTCOMES = ("first", "second", "tie")


class LossAndSlope(NamedTuple):
    """-log probability of an outcome and its gradient in both utilities.

    Attributes:
        loss: the number.
        slope: (2,) derivative in r1 and in r2.
    """

    loss: float
    slope: FloatArray


class OutcomeModel(Protocol):
    """What an answer says about two utilities."""

    def probabilities(self, first: float, second: float) -> FloatArray:
        """(3,) of the first winning, the second winning, and the third answer; they sum to 1."""

    def loss(self, outcome: Outcome, first: float, second: float) -> LossAndSlope:
        """-log probability of the outcome, and its slope."""


@dataclass(frozen=True)
class Davidson:
    """Ties by Davidson's model: a tie has nu times the geometric mean of the two odds.

    Args:
        nu: 0 for no ties; equal candidates tie with probability nu / (2 + nu).

    Example:
        >>> Davidson(nu=2.0).probabilities(0.0, 0.0)
        array([0.25, 0.25, 0.5 ])
    """

    nu: float = 1.0

    def __post_init__(self) -> None:
        finite_number("nu", self.nu, above=0.0)

    def probabilities(self, first: float, second: float) -> FloatArray:
        """(3,): first, second, tie."""
        return np.asarray(np.exp(self._logs(first, second)))

    def loss(self, outcome: Outcome, first: float, second: float) -> LossAndSlope:
        """-log probability and slope."""
        place = OUTCOMES.index(one_of("outcome", outcome, OUTCOMES))
        logs = self._logs(first, second)
        exponents = np.array([0.5, -0.5, 0.0])
        slope = float(np.exp(logs) @ exponents - exponents[place])
        return LossAndSlope(float(-logs[place]), np.array([slope, -slope]))

    def _logs(self, first: float, second: float) -> FloatArray:
        u = 0.5 * (first - second)
        return np.asarray(log_softmax([u, -u, math.log(self.nu)]))


@dataclass(frozen=True)
class LearntDavidson:
    """Davidson's model with nu unknown, log nu ~ N(log median, spread^2): learnt with the utilities, from how often people tie.

    Args:
        median: of the prior of nu.
        spread: standard deviation of the prior of log nu.
    """

    median: float = 1.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        finite_number("median", self.median, above=0.0)
        finite_number("spread", self.spread, above=0.0)


@dataclass(frozen=True)
class RaoKupper:
    """Ties by the model of Rao and Kupper: a winner must be ahead by a threshold, log kappa.

    Args:
        kappa: above 1; equal candidates tie with probability (kappa - 1) / (kappa + 1).

    Example:
        >>> RaoKupper(kappa=3.0).probabilities(0.0, 0.0)
        array([0.25, 0.25, 0.5 ])
    """

    kappa: float = 1.5

    def __post_init__(self) -> None:
        finite_number("kappa", self.kappa, above=1.0)

    def probabilities(self, first: float, second: float) -> FloatArray:
        """(3,): first, second, tie. The tie is (kappa^2 - 1) P(first) P(second), which loses no digits."""
        u, threshold = first - second, math.log(self.kappa)
        wins, loses = expit(u - threshold), expit(-u - threshold)
        return np.array([wins, loses, (self.kappa**2 - 1.0) * wins * loses])

    def loss(self, outcome: Outcome, first: float, second: float) -> LossAndSlope:
        """-log probability and slope."""
        one_of("outcome", outcome, OUTCOMES)
        u, threshold = first - second, math.log(self.kappa)
        ahead, behind = float(np.logaddexp(0.0, threshold - u)), float(np.logaddexp(0.0, threshold + u))
        slope_ahead, slope_behind = -float(expit(threshold - u)), float(expit(threshold + u))
        loss, slope = {
            "first": (ahead, slope_ahead),
            "second": (behind, slope_behind),
            "tie": (ahead + behind - math.log(self.kappa**2 - 1.0), slope_ahead + slope_behind),
        }[outcome]
        return LossAndSlope(loss, np.array([slope, -slope]))


@dataclass(frozen=True)
class BothBad:
    """A third answer, "both bad": leaving both is an option with a utility of its own.

    Args:
        utility: of leaving both; where both candidates have it too, all three answers are as likely.

    Example:
        >>> BothBad(utility=-1.0).probabilities(-1.0, -1.0).round(4)
        array([0.3333, 0.3333, 0.3333])
    """

    utility: float = 0.0

    def __post_init__(self) -> None:
        finite_number("utility", self.utility)

    def probabilities(self, first: float, second: float) -> FloatArray:
        """(3,): first, second, both bad."""
        return np.asarray(np.exp(log_softmax([first, second, self.utility])))

    def loss(self, outcome: Outcome, first: float, second: float) -> LossAndSlope:
        """-log probability and slope; the outcome "tie" is the third answer."""
        place = OUTCOMES.index(one_of("outcome", outcome, OUTCOMES))
        logs = log_softmax([first, second, self.utility])
        return LossAndSlope(float(-logs[place]), np.asarray(np.exp(logs) - np.eye(3)[place])[:2])


# By the name under which a model is written down. A class may be renamed; its entry here is in users' files.
TIE_MODELS: dict[str, type[Any]] = {
    "Davidson": Davidson,
    "LearntDavidson": LearntDavidson,
    "RaoKupper": RaoKupper,
    "BothBad": BothBad,
}
