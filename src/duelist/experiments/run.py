"""The result of a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.typing import FloatArray


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
        outcomes: (trials, rounds) +1 where the first won, -1 where it lost.
        info: numbers about the policy at the end, each (trials,).
        seconds: wall time, set-up included.
        slates: (trials, rounds, choices) rows shown, where the policy shows slates; `first` and `second` are then its first two
            places, and an outcome says which of those came before the other. Regret is the mean over what was shown.
        rankings: (trials, rounds, choices) places in the slate, best first; a policy that learns from winners reads the first.
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
    slates: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    rankings: npt.NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def chosen(self) -> npt.NDArray[np.int32]:
        """(trials, rounds, choices) rows shown: two in a duel."""
        return np.stack([self.first, self.second], axis=2) if self.slates is None else self.slates

    @property
    def final_regret(self) -> FloatArray:
        """(trials,) cumulative average regret after the last round."""
        return self.regret[:, -1]
