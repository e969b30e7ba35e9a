"""A history of one duel: for samplers that learn in one pass and never look back.

It answers as `History` does, but holds the newest duel of every lane, its action set, the number of rounds, and the sums
of the adversaries' features: O(dim * n_arms) memory however many rounds were played.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.history.duels import Duels, check_outcomes
from duelist.history.statistics import Statistics
from duelist.typing import FloatArray, IntArray

# No sum of support functions, which finite sets and balls do without, and the duel that is kept is the newest anyway.
_SAVED = tuple(name for name in Statistics._fields if name not in ("support", "newest"))


@stored("last-duel")
class LastDuel:
    """The newest duel of every lane; a value, like `History`.

    Example:
        >>> arms = FiniteActions([[1.0, 0.0], [0.0, 1.0]])
        >>> duels = Duels(np.array([0]), np.array([1]), arms.features[:, :2])
        >>> last = LastDuel.start(lanes=1, dim=2).append(arms, duels, np.array([1])).append(arms, duels, np.array([-1]))
        >>> last.rounds, last.statistics.totals[0, 0], last.statistics.losses[0, 0]
        (2, np.float64(1.0), np.float64(1.0))
    """

    __slots__ = ("rounds", "statistics")

    def __init__(self, rounds: int, statistics: Statistics) -> None:
        self.rounds = rounds
        self.statistics = statistics

    @classmethod
    def start(cls, *, lanes: int, dim: int) -> LastDuel:
        """No duel yet."""
        return cls(
            0,
            Statistics(
                contrasts=np.zeros((lanes, dim, 1)),
                totals=np.zeros((lanes, 1)),
                losses=np.zeros((lanes, 1)),
                n_rows=np.zeros(lanes, dtype=np.int64),
                sets=np.zeros((lanes, 0, dim, 0)),
                repeats=np.zeros(0),
                adversary=np.zeros((lanes, 2, dim)),
            ),
        )

    @property
    def live_statistics(self) -> Statistics:
        """The statistics: every duel makes new ones, so they may be kept as well."""
        return self.statistics

    @property
    def lanes(self) -> int:
        """Number of independent runs."""
        return int(self.statistics.contrasts.shape[0])

    @property
    def effective_rounds(self) -> float:
        """The number of rounds: a one-pass history forgets nothing."""
        return float(self.rounds)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.statistics.contrasts.shape[1])

    def append(self, actions: ActionSet, duels: Duels, outcomes: IntArray) -> LastDuel:
        """The newest duel in place of the one before; outcomes (lanes,) are +1, -1, or 0 for a tie."""
        if duels.features.shape != (self.lanes, 2, self.dim) or outcomes.shape != (self.lanes,):
            raise InvalidInputError(
                f"duels must have features ({self.lanes}, 2, {self.dim}) and outcomes ({self.lanes},); got "
                f"{duels.features.shape} and {outcomes.shape}. Use the duels that choose returned."
            )
        check_outcomes(outcomes, self.lanes)
        sets, reach = np.zeros((self.lanes, 0, self.dim, 0)), 0.0
        if isinstance(actions, FiniteActions):
            sets = actions.columns[:, None]
        elif isinstance(actions, BallActions):
            reach = actions.radius
        else:
            raise InvalidInputError(f"a one-pass history takes finite sets and balls; got {type(actions).__name__}.")
        return LastDuel(
            self.rounds + 1,
            Statistics(
                contrasts=duels.contrast[:, :, None].copy(),
                totals=np.ones((self.lanes, 1)),
                losses=0.5 * (1.0 - outcomes.astype(np.float64))[:, None],
                n_rows=np.ones(self.lanes, dtype=np.int64),
                sets=sets,
                repeats=np.ones(sets.shape[1]),
                adversary=self.statistics.adversary + duels.features[:, ::-1],
                ball_reach=reach,
            ),
        )

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to rebuild this value, as plain arrays."""
        fields: dict[str, npt.NDArray[Any]] = {name: np.asarray(getattr(self.statistics, name)) for name in _SAVED}
        return {"rounds": np.array(self.rounds), **fields}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> LastDuel:
        """Rebuild from `to_arrays`."""
        parts: dict[str, FloatArray | IntArray | float] = {name: arrays[name] for name in _SAVED}
        return cls(int(arrays["rounds"]), Statistics(**{**parts, "ball_reach": float(arrays["ball_reach"])}))  # type: ignore[arg-type]
