"""The terms that a posterior adds up. Each says what it contributes to the potential, -log density.

prior         precision/2 |theta|^2 inside a ball, infinite outside
likelihood    eta * sum_i log(1 + exp(-y_i <theta, z_i>))
Feel-Good     -mu * sum_i ( max_{a' in A_i} <theta, phi(a')> - <theta, phi(a_i^{3-j})> ),  j = 1, 2 the two draws
"""

from __future__ import annotations

from dataclasses import dataclass

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.core.statistics import Statistics
from duelist.core.support import Support
from duelist.posteriors.priors import Prior


@dataclass(frozen=True)
class PreferenceTerm:
    """The likelihood of the outcomes, tempered.

    Attributes:
        statistics: contrasts and their counts.
        eta: (lanes,) temper; 1 is the Bayesian likelihood, 0 ignores the data.
    """

    statistics: Statistics
    eta: FloatArray


@dataclass(frozen=True)
class FeelGoodTerm:
    """The Feel-Good tilt towards parameters under which past rounds held a better arm than the adversary's.

    It favours large maxima, so it is *subtracted* from the potential; -max is concave, so the sum is not log-concave.

    Attributes:
        sets: (lanes, n_sets, dim, n_arms) the distinct action sets of past rounds.
        repeats: (n_sets,) how often each was offered.
        adversary: (lanes, chains, dim) sum over rounds of the features of the arm that the *other* draw chose.
        mu: (lanes,) weight.
        ball_reach: sum of the radii of the balls among the action sets of past rounds: their support functions add up to
            ball_reach * |theta|.
        support: the sum of the support functions of other continuous sets; None for none.
    """

    sets: FloatArray
    repeats: FloatArray
    adversary: FloatArray
    mu: FloatArray
    ball_reach: float = 0.0
    support: Support | None = None

    @classmethod
    def of(cls, statistics: Statistics, mu: FloatArray) -> FeelGoodTerm:
        """The tilt of both draws of a duel, from a history that keeps its action sets."""
        kept = statistics.repeats.sum() > 0 or statistics.ball_reach > 0 or statistics.support is not None
        if not kept and statistics.adversary.any():
            raise InvalidInputError(
                "the Feel-Good term needs the action set of every past round, and this history did not keep them. "
                "Start it with History.start(..., keep_sets=True)."
            )
        return cls(statistics.sets, statistics.repeats, statistics.adversary, mu, statistics.ball_reach, statistics.support)


@dataclass(frozen=True)
class PriorTerm:
    """The prior, the same for every lane and chain."""

    prior: Prior
