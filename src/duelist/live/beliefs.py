"""What is believed of utilities, from draws of the posterior that are renewed as votes grow.

The posterior is that of the Bradley-Terry model with linear utilities: the policy's prior times the likelihood of every vote,
old votes faded where the policy forgets. It has no Feel-Good tilt and is not tempered, and how the pairs were chosen does not
matter to it. The agent and the leaderboard of the service use this one code.

Draws come from an exact sampler (`duelist.live.ensemble`). They are kept until the votes have grown by a twentieth, and
then follow the posterior from where they stand; every answer says how many votes came since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.history.history import History
from duelist.live.ensemble import Ensemble, renew_ensemble, start_ensemble
from duelist.live.lane import Lane, LiveLane, own_history
from duelist.policies.base import Policy
from duelist.posteriors.linear import LinearPotential
from duelist.typing import FloatArray, IntArray

N_DRAWS = 512
LEVEL = 0.95
_GROWTH = 20


class Draws(NamedTuple):
    """Draws of theta.

    Attributes:
        theta: (n_draws, dim).
        votes: how many votes they were drawn from.
        age: votes that came, or were taken back, since.
    """

    theta: FloatArray
    votes: int
    age: int


class Standing(NamedTuple):
    """A policy and where it stands in its lane: all that its own draws depend on."""

    policy: Policy[Any]
    state: Any
    streams: Streams
    dim: int

    @classmethod
    def of(cls, lane: Lane[Any]) -> Standing:
        """Where a lane stands now. States are values, so it stays there."""
        policy: Any = lane.policy
        return cls(policy, lane.state, lane.streams, lane.dim)


class Beliefs:
    """Draws from a posterior that are renewed as votes grow. It may be used from several threads.

    Args:
        seed: names the random numbers.

    Attributes:
        lock: held while draws are renewed.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.lock = threading.Lock()
        self._ensemble: Ensemble | None = None
        self._theta = np.empty((0, 0))
        self._by_policy: Draws | None = None

    def draws(self, news: Callable[[int], int], potential: Callable[[], LinearPotential], *, dim: int, memory: float) -> Draws:
        """The draws, renewed first if they are too old.

        Args:
            news: given the number of votes behind the present draws, how many came or were taken back since.
            potential: -log of the posterior now, one lane.
            dim: length of theta; other draws than that are thrown away.
            memory: what all votes add up to; less than their number where old ones are forgotten.
        """
        with self.lock:
            known = self._ensemble
            if known is not None and known.whitened.shape[1] == dim:
                votes = known.curvature.observations
                age = news(votes)
                if age <= min(votes, int(memory)) // _GROWTH:
                    return Draws(self._theta, votes, age)
                known = renew_ensemble(known, potential(), news=age, seed=self._seed)
            else:
                known = start_ensemble(potential(), n_draws=N_DRAWS, seed=self._seed)
            self._keep(known)
            return Draws(self._theta, known.curvature.observations, 0)

    def drawn_by_policy(self, votes: int, standing: Standing, news: int | None = None) -> Draws | None:
        """Draws by a policy with a model of answers of its own, kept like any others; None where it has none.

        Args:
            votes: how many were learnt.
            standing: the policy that has learnt them.
            news: how many came or were taken back since the present draws; None for what the numbers of votes say.
        """

        def draw() -> FloatArray | None:
            theta = standing.policy.posterior_draws(standing.state, standing.streams, N_DRAWS)
            return None if theta is None else theta[0]

        with self.lock:
            return self._drawn_by(draw, votes, standing.dim, news)

    def drawn_by(self, votes: int, dim: int, draw: Callable[[], FloatArray]) -> Draws:
        """Draws from elsewhere, kept like any others.

        Args:
            votes: how many were learnt.
            dim: length of theta.
            draw: makes new ones, (N_DRAWS, dim).
        """
        with self.lock:
            drawn = self._drawn_by(draw, votes, dim, None)
            assert drawn is not None  # `draw` makes some
            return drawn

    def _drawn_by(self, draw: Callable[[], FloatArray | None], votes: int, dim: int, news: int | None) -> Draws | None:
        known = self._by_policy
        if known is not None and known.theta.shape[1] == dim:
            age = abs(votes - known.votes) if news is None else news
            if age <= known.votes // _GROWTH:
                return known._replace(age=age)
        theta = draw()
        self._by_policy = None if theta is None else Draws(theta, votes, 0)
        return self._by_policy

    def clear(self) -> None:
        """Draw from scratch the next time: what was learnt is no longer what it was."""
        with self.lock:
            self._ensemble = self._by_policy = None

    def to_saved(self) -> Ensemble | None:
        """The draws, as a value that `duelist.core.serialize` takes."""
        return self._ensemble

    def restore(self, saved: Ensemble | None) -> None:
        """Go on from `to_saved`."""
        with self.lock:
            self._ensemble = None
            if saved is not None:
                self._keep(saved)

    def _keep(self, ensemble: Ensemble) -> None:
        self._ensemble, self._theta = ensemble, ensemble.theta
        self._theta.setflags(write=False)


def posterior_draws(potential: LinearPotential, seed: int) -> FloatArray:
    """(n_draws, dim) independent draws from scratch."""
    return start_ensemble(potential, n_draws=N_DRAWS, seed=seed).theta


def votes_of(lane: LiveLane) -> History:
    """Every vote that a lane has learnt."""
    if not lane.policy.linear_utilities:
        raise InvalidInputError(
            f"utilities of {type(lane.policy).__name__} are not linear in the features, so there is no posterior of weights to "
            f"predict from. It can choose and learn. To predict, put squares and products into the features and use FGTS()."
        )
    history = own_history(lane.state) or lane.votes
    if history is None:
        raise InvalidInputError("this lane keeps no votes. Make it with keep_votes=True.")
    return history


def running_draws(lane: LiveLane, rounds: int) -> Draws | None:
    """Draws from the Gaussian that is all a lane keeps of its votes; None where it keeps the votes themselves."""
    belief = None if lane.votes is not None else lane.policy.running_belief(lane.state)
    if belief is None:
        return None
    (mean,), (whitener,) = belief
    noise = lane.streams.generator("running belief", 0, rounds).standard_normal((N_DRAWS, lane.dim))
    return Draws(mean + noise @ whitener, rounds, 0)


def potential_of_lane(lane: LiveLane) -> LinearPotential:
    """-log of the posterior given all that a lane has learnt: prior and likelihood, no tilt. It stays what it is."""
    history = votes_of(lane)
    return LinearPotential.of(
        lane.policy.believed_prior(),
        history.statistics,
        eta=np.ones(1),
        observations=history.rounds,
        memory=history.effective_rounds,
    )


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """What is believed of some candidates, one number per row. Utilities are log-odds relative to the mean of the rows.

    Attributes:
        utility: (n,) posterior mean.
        low: (n,) lower end of the central interval of probability `level`.
        high: (n,) upper end.
        probability_best: (n,) probability to be the best of these rows. Rows that tie share it.
        expected_loss: (n,) by how much the best of these rows is better, on average: what choosing this row costs.
        level: of the intervals.
        votes: how many votes the draws were made from; 0 is the prior.
        age: votes learnt since the draws were made.
    """

    utility: FloatArray
    low: FloatArray
    high: FloatArray
    probability_best: FloatArray
    expected_loss: FloatArray
    level: float
    votes: int
    age: int

    @property
    def is_prior(self) -> bool:
        """Whether nothing was learnt yet, so that this is the prior."""
        return self.votes == 0

    def __str__(self) -> str:
        lines = ["row  utility      low     high  P(best)     loss"]
        columns = zip(self.utility, self.low, self.high, self.probability_best, self.expected_loss, strict=True)
        lines += [f"{row:3d}" + "".join(f"{number:9.3f}" for number in numbers) for row, numbers in enumerate(columns)]
        return "\n".join([*lines, _origin(self.votes, self.age)])


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Candidates in order.

    Attributes:
        order: (n,) rows, the highest posterior mean of utility first.
        rank: (n,) posterior mean of the rank of each row, counted from 1.
        low: (n,) lower end of the interval of the rank of each row: it is at least this with probability (1 + level) / 2.
        high: (n,) upper end.
        level: of the intervals.
        votes: how many votes the draws were made from; 0 is the prior.
        age: votes learnt since the draws were made.
    """

    order: IntArray
    rank: FloatArray
    low: IntArray
    high: IntArray
    level: float
    votes: int
    age: int


@dataclass(frozen=True, kw_only=True)
class Preference:
    """How likely one candidate is to beat another.

    Attributes:
        probability: posterior mean of the probability that the first wins a vote.
        low: lower end of the central interval of that probability.
        high: upper end.
        level: of the interval.
        votes: how many votes the draws were made from; 0 is the prior.
        age: votes learnt since the draws were made.
    """

    probability: float
    low: float
    high: float
    level: float
    votes: int
    age: int = field(default=0)


def predict_rows(draws: Draws, features: FloatArray, level: float = LEVEL) -> Prediction:
    """What draws say of features (n, dim)."""
    utilities = relative_utilities(draws, features)
    top = utilities.max(axis=1, keepdims=True)
    low, high = _interval(utilities, level)
    return Prediction(
        utility=utilities.mean(axis=0),
        low=low,
        high=high,
        probability_best=probability_best(utilities),
        expected_loss=(top - utilities).mean(axis=0),
        level=level,
        votes=draws.votes,
        age=draws.age,
    )


def rank_rows(draws: Draws, features: FloatArray, level: float = LEVEL) -> Ranking:
    """The ranks of features (n, dim). Rows that tie take the lower row first."""
    utilities = relative_utilities(draws, features)
    order = np.argsort(-utilities, axis=1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(1, len(features) + 1)[None], axis=1)
    tails = [0.5 - level / 2, 0.5 + level / 2]
    low, high = np.quantile(ranks, tails, axis=0, method="inverted_cdf").astype(np.int64)
    return Ranking(
        order=np.argsort(-utilities.mean(axis=0), kind="stable"),
        rank=ranks.mean(axis=0),
        low=low,
        high=high,
        level=level,
        votes=draws.votes,
        age=draws.age,
    )


def win_probability(draws: Draws, first: FloatArray, second: FloatArray, level: float = LEVEL) -> Preference:
    """How likely features (dim,) are to beat others."""
    wins = 1.0 / (1.0 + np.exp(-np.clip(draws.theta @ (first - second), -700.0, 700.0)))
    low, high = _interval(wins, level)
    return Preference(
        probability=float(wins.mean()), low=float(low), high=float(high), level=level, votes=draws.votes, age=draws.age
    )


def best_row(draws: Draws, features: FloatArray, cost: FloatArray | None = None) -> int:
    """The row of the highest expected utility minus cost; the lowest of those that tie."""
    utility = relative_utilities(draws, features).mean(axis=0)
    return int(np.argmax(utility if cost is None else utility - cost))


def relative_utilities(draws: Draws, features: FloatArray) -> FloatArray:
    """(n_draws, n) utility of every row under every draw, less the mean of the rows."""
    centred = features - features.mean(axis=0)
    return np.asarray(draws.theta @ centred.T)


def probability_best(utilities: FloatArray) -> FloatArray:
    """(n,) share of draws (n_draws, n) in which each is the best; those that tie share the draw."""
    leads = utilities == utilities.max(axis=1, keepdims=True)
    return np.asarray((leads / leads.sum(axis=1, keepdims=True)).mean(axis=0))


def check_rows(features: npt.ArrayLike | FiniteActions, dim: int) -> FloatArray:
    """Features (n, dim) of at least one candidate."""
    given = features.features[0] if isinstance(features, FiniteActions) else features
    rows = finite_array("features", given, "(n, dim)", 2)
    if rows.shape[1] != dim or not len(rows):
        raise InvalidInputError(
            f"features must be (n, {dim}), one row per candidate, n at least 1; got {rows.shape}. This agent compares feature "
            f"vectors of length {dim}."
        )
    return rows


def check_vector(name: str, features: npt.ArrayLike, dim: int) -> FloatArray:
    """Features (dim,) of one candidate."""
    row = finite_array(name, features, "(dim,)", 1)
    if row.shape != (dim,):
        raise InvalidInputError(f"{name} must be the features ({dim},) of one candidate; got {row.shape}. Pass features[row].")
    return row


def check_cost(cost: npt.ArrayLike | None, n: int) -> FloatArray | None:
    """One number per row, in units of utility."""
    if cost is None:
        return None
    numbers = finite_array("cost", cost, "(n,)", 1)
    if numbers.shape != (n,):
        raise InvalidInputError(f"cost must be ({n},), one number per row of features; got {numbers.shape}. Use 0 for free.")
    return numbers


def check_level(level: float) -> float:
    """The probability that an interval holds."""
    number = finite_number("level", level, above=0.0)
    if number >= 1.0:
        raise InvalidInputError(f"level must be below 1; got {number:g}. Use 0.95 for 95 %.")
    return number


def _interval(values: FloatArray, level: float) -> tuple[Any, Any]:
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
    return low, high


def _origin(votes: int, age: int) -> str:
    if not votes:
        return "nothing learnt yet: this is the prior" if not age else f"drawn from the prior, {age} vote(s) ago"
    return f"drawn from {votes} vote(s)" + (f", {age} more came since" if age else "")
