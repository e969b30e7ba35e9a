"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.typing import FloatArray

NO_ANSWER = -128  # in a column of outcomes, which has one byte per round


def kept_rounds(rounds: int, every: int) -> npt.NDArray[np.int32]:
    """Round numbers, from 1, that a thinned column keeps: every so many, and the last.

    Example:
        >>> kept_rounds(25, 10)
        array([10, 20, 25], dtype=int32)
    """
    kept = np.arange(every, rounds + 1, every, dtype=np.int32)
    return kept if len(kept) and kept[-1] == rounds else np.append(kept, np.int32(rounds))


def spread(values: FloatArray) -> FloatArray:
    """Standard deviation over trials, the first axis, with n - 1 below the root; 0 of a single trial. The one definition here.

    Example:
        >>> float(spread(np.array([1.0, 3.0]))) == 2.0**0.5
        True
    """
    return np.asarray(values.std(axis=0, ddof=1 if len(values) > 1 else 0))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy on one environment, all trials.

    Attributes:
        policy: the hyper-parameters that played.
        environment: the recipe of the instances.
        seed: seed of every random stream.
        trials: trial number of every lane; (seed, trial) names an instance and its noise.
        regret: (trials, rounds) cumulative average regret, the paper's.
        weak_regret: (trials, rounds) cumulative regret of the better of the two arms.
        yue_regret: (trials, rounds) cumulative regret in probabilities, of Yue et al.
        first: (trials, rounds) row of the first arm played.
        second: (trials, rounds) row of the second arm played.
        outcomes: (trials, rounds) +1 where the first won, -1 where it lost, 0 where they tied; `NO_ANSWER` where the answer
            never came, or not before the end.
        info: numbers about the policy at the end, each (trials,).
        seconds: wall time, set-up included.
        regrets: every kind of cumulative regret, each (trials, rounds): "average", "weak" and "yue", which are the three above,
            and others that the environment names. NaN where it does not know one.
        rounds: (kept,) the numbers, from 1, of the rounds that the columns hold: all, unless `every` left some out.
        simple_regret: (trials, n) average regret of the arm that the policy would recommend, playing it against itself, after
            the rounds `simple_rounds`; None where it was not asked for, NaN where the policy recommends nothing.
        simple_rounds: (n,) round numbers, from 1.
    """

    policy: Any
    environment: Any
    seed: int
    trials: tuple[int, ...]
    regret: FloatArray = field(repr=False)
    weak_regret: FloatArray = field(repr=False)
    yue_regret: FloatArray = field(repr=False)
    first: npt.NDArray[np.int32] = field(repr=False)
    second: npt.NDArray[np.int32] = field(repr=False)
    outcomes: npt.NDArray[np.int8] = field(repr=False)
    info: dict[str, FloatArray] = field(repr=False)
    seconds: float
    regrets: dict[str, FloatArray] = field(default_factory=dict, repr=False)
    rounds: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    simple_regret: FloatArray | None = field(default=None, repr=False)
    simple_rounds: npt.NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def final_regret(self) -> FloatArray:
        """(trials,) cumulative average regret after the last round."""
        return self.regret[:, -1]
