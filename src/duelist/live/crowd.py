"""The voters of an agent: how reliable each is, what the side adds, and what all votes say with both taken into account.

The model is that of `duelist.posteriors.people`: the vote of voter v on the contrast z goes to the first with probability
s(r_v <theta, z> + beta b), b = +1 where the first stood on the left. Votes without a name count as those of one voter.

The slopes that a policy learns with are estimated again whenever the votes have grown by a quarter, and rounded to quarters, so
that two machines whose arithmetic differs in the last digit learn the same. A vote keeps the slope with which it was learnt.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from duelist.core.errors import NotConvergedError
from duelist.datasets.people import Estimates
from duelist.posteriors.people import PeopleFit, VoteTable, fit_people
from duelist.typing import FloatArray, IntArray

_FIRST = 50  # votes before anything is said of voters
_GROWTH = 4
_STEPS = 4  # of a slope, per unit
_LARGEST = 2.0
_POSITION_SCALE = 1.0


class Voters(NamedTuple):
    """What is believed of voters.

    Attributes:
        reliability: slope of every voter by name: 1 is the average one, 0 a vote at random, below 0 one who means the opposite.
        votes: (n,) how many each gave.
        position: what standing on the left adds, in log-odds; without names where no side is known.
        spread: standard deviation of slopes among voters.
    """

    reliability: Estimates
    votes: IntArray
    position: Estimates
    spread: float


class CrowdVotes(NamedTuple):
    """Votes on pairs, with who gave them.

    Attributes:
        contrasts: (n, dim) features of the first less those of the second.
        outcomes: (n,) +1 where the first won, -1 where the second did, 0 for a tie.
        sides: (n,) +1 where the first stood on the left, -1 where the second did, 0 where nobody knows.
        voters: (n,) their numbers.
        names: of the voters.
        precision: of the normal prior of theta.
    """

    contrasts: FloatArray
    outcomes: FloatArray
    sides: FloatArray
    voters: IntArray
    names: tuple[str, ...]
    precision: float

    def fit(self) -> PeopleFit:
        """Coefficients of theta and of the side, slopes and spread."""
        rows, dim = np.column_stack([self.contrasts, self.sides]), self.contrasts.shape[1]
        # A pair and its turn are alike, and votes of one voter on one pair are counted together.
        leading = np.take_along_axis(rows, (rows != 0.0).argmax(axis=1)[:, None], axis=1)[:, 0]
        turn = np.where(leading < 0.0, -1.0, 1.0)
        keys = np.column_stack([self.voters, rows * turn[:, None] + 0.0])
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        shares = [0.5 * (1.0 + sign * turn * self.outcomes) for sign in (1.0, -1.0)]
        wins, losses = (np.bincount(inverse.reshape(-1), share).astype(np.float64) for share in shares)
        deviation = np.append(np.full(dim, self.precision**-0.5), _POSITION_SCALE)
        judged, who = np.arange(dim + 1) < dim, distinct[:, 0].astype(np.int64)
        return fit_people(
            VoteTable(distinct[:, 1:], judged, np.zeros_like(judged), deviation, wins, losses, who, len(self.names))
        )

    def believe(self, level: float) -> Voters:
        """What the votes say of voters and side, with intervals of that probability."""
        reach = float(norm.ppf(0.5 + level / 2.0))

        def estimates(names: tuple[str, ...], mean: FloatArray, deviation: FloatArray) -> Estimates:
            return Estimates(names, mean, deviation, mean - reach * deviation, mean + reach * deviation)

        nothing = estimates((), np.zeros(0), np.zeros(0))
        if not len(self.outcomes):
            return Voters(nothing, np.zeros(0, dtype=np.int64), nothing, 0.0)
        fit, counts = self.fit(), np.bincount(self.voters, minlength=len(self.names))
        side = estimates(("left",), fit.coefficients[-1:], np.sqrt(fit.covariance[-1:, -1]))
        slopes = estimates(self.names, fit.slopes, fit.slope_deviations)
        return Voters(slopes, counts, side if self.sides.any() else nothing, fit.voter_spread)


class Crowd:
    """Votes with their voters, and the slopes that follow from them.

    Args:
        dim: length of a feature vector.
        precision: of the normal prior of theta.

    Example:
        >>> crowd = Crowd(dim=1, precision=1.0)
        >>> for n in range(120):
        ...     voter = ("ann", "bob", "eve")[n % 3]
        ...     crowd.add(np.array([2.0]), -1 if voter == "eve" else 1, voter, side=0)
        >>> [crowd.slope_of(voter) > 0.0 for voter in ("ann", "eve", "a stranger")]
        [True, False, True]
    """

    def __init__(self, dim: int, precision: float) -> None:
        self._dim, self._precision = dim, precision
        self._contrasts: list[FloatArray] = []
        self._voters, self._sides, self._outcomes = array("i"), array("b"), array("b")
        self._numbers: dict[str, int] = {}
        self._slopes = np.zeros(0)
        self._due = _FIRST

    def __len__(self) -> int:
        return len(self._outcomes)

    def slope_of(self, voter: str | None) -> float:
        """What the next vote of a voter is learnt with; 1 for one of whom nothing is known yet."""
        number = self._numbers.get(voter or "", len(self._slopes))
        return float(self._slopes[number]) if number < len(self._slopes) else 1.0

    def add(self, contrast: FloatArray, outcome: int, voter: str | None, side: int) -> None:
        """Take in a vote: +1, -1 or 0 for a tie. The side is +1 where the first stood on the left, 0 where nobody knows."""
        self._contrasts.append(np.array(contrast, dtype=np.float64))
        self._voters.append(self._numbers.setdefault(voter or "", len(self._numbers)))
        self._sides.append(side)
        self._outcomes.append(outcome)
        if len(self) >= self._due:
            with contextlib.suppress(NotConvergedError):  # the slopes stay what they were
                slopes = self.votes().fit().slopes
                self._slopes = np.clip(np.round(_STEPS * slopes) / _STEPS, -_LARGEST, _LARGEST)
            self._due = len(self) + len(self) // _GROWTH

    def votes(self) -> CrowdVotes:
        """All votes so far."""
        return CrowdVotes(
            contrasts=np.array(self._contrasts).reshape(len(self), self._dim),
            outcomes=np.array(self._outcomes, dtype=np.float64),
            sides=np.array(self._sides, dtype=np.float64),
            voters=np.array(self._voters, dtype=np.int64),
            names=tuple(self._numbers),
            precision=self._precision,
        )

    def draw(self, n_draws: int, generator: np.random.Generator) -> FloatArray:
        """(n_draws, dim) draws of theta from the normal approximation, whatever the slopes and the side."""
        noise = generator.standard_normal((n_draws, self._dim))
        if not len(self):
            return np.asarray(noise * self._precision**-0.5)
        fit = self.votes().fit()
        factor = np.linalg.cholesky(fit.covariance[: self._dim, : self._dim])
        return np.asarray(fit.coefficients[: self._dim] + noise @ factor.T)

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        return {
            "contrasts": np.array(self._contrasts).reshape(len(self), self._dim),
            "voters": np.array(self._voters, dtype=np.int32),
            "sides": np.array(self._sides, dtype=np.int8),
            "outcomes": np.array(self._outcomes, dtype=np.int8),
            "names": np.array(list(self._numbers), dtype=np.str_),
            "slopes": self._slopes.copy(),
            "due": self._due,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go to where `to_saved` was called."""
        self._contrasts = list(saved["contrasts"])
        self._voters = array("i", saved["voters"].astype(np.int32).tobytes())
        self._sides, self._outcomes = (array("b", saved[name].astype(np.int8).tobytes()) for name in ("sides", "outcomes"))
        self._numbers = {name: number for number, name in enumerate(saved["names"].tolist())}
        self._slopes, self._due = saved["slopes"].copy(), int(saved["due"])
