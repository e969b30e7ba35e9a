"""Who can be trusted, what the side and the style of an answer add, and how good the items are: one fit to all votes.

The vote of voter v on first item a against second item b, in group g, goes to the first with probability

    s(r_v (u_a - u_b + d_ga - d_gb + <style, difference>) + position).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.stats import norm

from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.datasets.comparisons import Comparisons
from duelist.posteriors.people import PeopleFit, VoteTable, fit_people, predict_logits
from duelist.posteriors.priors import MultivariateNormal
from duelist.preferences.logistic import log_loss
from duelist.typing import BoolArray, FloatArray, IntArray

_FIRST_GUESS = 0.5  # of how much groups differ


class Estimates(NamedTuple):
    """Numbers with intervals.

    Attributes:
        names: (k,) of what is estimated.
        mean: (k,) the estimates.
        deviation: (k,) their posterior standard deviations.
        low: (k,) lower ends of the central intervals.
        high: (k,) upper ends.
    """

    names: tuple[str, ...]
    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray

    def __str__(self) -> str:
        width = max((len(name) for name in self.names), default=0)
        rows = sorted(zip(*self, strict=True), key=lambda row: -row[1])
        return "\n".join(f"{name:{width}s} {mean:+.3f}  [{low:+.3f}, {high:+.3f}]" for name, mean, _, low, high in rows)


class VoteEncoding(NamedTuple):
    """How comparisons become rows: what a fit has to remember to read other comparisons.

    Attributes:
        items: (K,) names.
        features: (K, d) what utilities are linear in.
        feature_names: (d,) of the coefficients.
        position: whether there is one for the side.
        style: (s,) columns of the context.
        style_scale: (s,) what they are divided by.
        group: the column of the groups; None for none.
        groups: their names.
        voters: names; empty where every slope is 1.
    """

    items: tuple[str, ...]
    features: FloatArray
    feature_names: tuple[str, ...]
    position: bool
    style: tuple[str, ...]
    style_scale: FloatArray
    group: str | None
    groups: tuple[str, ...]
    voters: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """(p,) of the coefficients."""
        pooled = tuple(f"{group}: {name}" for group in self.groups for name in self.feature_names)
        return (*self.feature_names, *pooled, *self.style, *(("position",) if self.position else ()))

    @property
    def judged(self) -> BoolArray:
        """(p,) all but the position."""
        return np.arange(len(self.names)) < len(self.names) - self.position

    @property
    def pooled(self) -> BoolArray:
        """(p,) what groups add."""
        places, d = np.arange(len(self.names)), self.features.shape[1]
        return np.asarray((places >= d) & (places < d * (1 + len(self.groups))))

    @property
    def style_places(self) -> slice:
        """Where the coefficients of the style stand."""
        start = self.features.shape[1] * (1 + len(self.groups))
        return slice(start, start + len(self.style))

    def rows(self, pairs: IntArray, groups: IntArray, style: FloatArray) -> Any:
        """(n, p) sparse factors of pairs (n, 2) of items, in groups (n,), -1 for none that is known."""
        features = csr_array(self.features)
        contrast = features[pairs[:, 0]] - features[pairs[:, 1]]
        blocks = [contrast]
        for group in range(len(self.groups)):
            inside = csr_array((groups == group).astype(np.float64)[:, None])
            blocks.append(csr_array(contrast.multiply(inside)))
        if self.style:
            blocks.append(csr_array(style))
        if self.position:
            blocks.append(csr_array(np.ones((len(pairs), 1))))
        return csr_array(hstack(blocks, format="csr"))


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteFit:
    """What votes say of items, of voters, and of what else moves a vote. Numbers are log-odds; see `fit_votes`.

    Attributes:
        encoding: how comparisons become rows of the model.
        fit: mode and covariance of all coefficients, and the slopes of the voters.
        level: probability of an interval.
        n_votes: how many votes were fitted.
    """

    encoding: VoteEncoding
    fit: PeopleFit
    level: float
    n_votes: int

    @cached_property
    def utilities(self) -> Estimates:
        """Of the items, relative to their mean."""
        return self._of_items(self._overall)

    def group_utilities(self, group: str) -> Estimates:
        """Of the items in one group, relative to their mean there.

        Args:
            group: a value of the column that was given as `groups`.
        """
        place = self.encoding.groups.index(one_of("group", group, self.encoding.groups))
        added = self._overall.copy()
        d = self.encoding.features.shape[1]
        added[:, d * (1 + place) : d * (2 + place)] = self.encoding.features
        return self._of_items(added)

    @property
    def position(self) -> Estimates:
        """What being shown first adds; without names where that was not asked."""
        return self._coefficients(np.flatnonzero(~self.encoding.judged))

    @property
    def style(self) -> Estimates:
        """What one standard deviation more of each covariate adds."""
        return self._coefficients(np.arange(len(self.encoding.names))[self.encoding.style_places])

    @property
    def reliability(self) -> Estimates:
        """Slope of every voter: 1 is the average voter, 0 a vote at random, below 0 a voter who means the opposite."""
        return self._estimates(self.encoding.voters, self.fit.slopes, self.fit.slope_deviations)

    @property
    def voter_spread(self) -> float:
        """Standard deviation of the slopes in the population of voters; 0 where they were not asked for."""
        return self.fit.voter_spread

    @property
    def group_spread(self) -> float:
        """Standard deviation of what a group adds to a utility; 0 without groups."""
        return self.fit.pooled_spread

    def draws(self, n_draws: int = 1000, seed: int = 0) -> FloatArray:
        """(n_draws, K) draws of the items' utilities, relative to their mean: for ranks and the probability to be best."""
        rng = np.random.default_rng(whole_number("seed", seed))
        factor = np.linalg.cholesky(self.fit.covariance)
        noise = rng.standard_normal((whole_number("n_draws", n_draws, at_least=1), len(factor)))
        utilities = (self.fit.coefficients + noise @ factor.T) @ self._overall.T
        return np.asarray(utilities - utilities.mean(axis=1, keepdims=True))

    def as_prior(self) -> MultivariateNormal:
        """The coefficients as a prior of `duelist.sample_posterior`, in the order of `encoding.names`."""
        return MultivariateNormal(self.fit.coefficients, self.fit.covariance)

    def win_probability(self, comparisons: Comparisons) -> FloatArray:
        """(n,) that the first wins, for every comparison, with what is uncertain averaged over.

        A voter who is not known has the slope of the average one, as uncertain as voters differ; a group that is not known
        adds nothing. An item that is not known is refused.
        """
        own = self.encoding
        places = {name: row for row, name in enumerate(own.items)}
        unknown = [
            name for name in np.array(comparisons.items, dtype=object)[np.unique(comparisons.shown)] if name not in places
        ]
        if unknown:
            raise InvalidInputError(f"comparisons must be of items that were fitted; got {unknown[0]!r}, which was not.")
        rows = np.array([places.get(name, -1) for name in comparisons.items])
        pairs = rows[_pairs_of(comparisons)]
        groups = _number(own.groups, _column(comparisons, own.group)) if own.group else np.zeros(len(pairs), dtype=np.int64)
        factors = own.rows(pairs, groups, _style_of(comparisons, own.style, own.style_scale))
        slopes, deviations = np.ones(len(pairs)), np.zeros(len(pairs))
        if own.voters:
            unnamed = np.full(len(pairs), -1)
            who = unnamed if comparisons.voters is None else _number(own.voters, comparisons.voters)
            slopes = np.append(self.fit.slopes, 1.0)[who]
            deviations = np.append(self.fit.slope_deviations, self.fit.voter_spread)[who]
        mean, deviation = predict_logits(factors, own.judged, self.fit, slopes, deviations)
        # MacKay's approximation of the mean of s(u) under a normal u.
        return np.asarray(1.0 / (1.0 + np.exp(-mean / np.sqrt(1.0 + np.pi / 8.0 * deviation**2))))

    def losses(self, comparisons: Comparisons) -> FloatArray:
        """(n,) log loss of every vote; of a tie, the mean of both outcomes. Give votes that were not fitted."""
        chance = self.win_probability(comparisons)
        logit = np.log(chance) - np.log1p(-chance)
        won = 0.5 * (1.0 + comparisons.outcomes)
        return np.asarray(won * log_loss(logit) + (1.0 - won) * log_loss(-logit))

    def log_loss(self, comparisons: Comparisons) -> float:
        """Mean log loss of votes, each as often as it counts. Give votes that were not fitted."""
        return float(np.average(self.losses(comparisons), weights=comparisons.weights))

    @cached_property
    def _overall(self) -> FloatArray:
        """(K, p) what utilities are made of."""
        others = len(self.encoding.names) - self.encoding.features.shape[1]
        return np.pad(self.encoding.features, ((0, 0), (0, others)))

    def _of_items(self, rows: FloatArray) -> Estimates:
        centred = rows - rows.mean(axis=0)
        variance = np.einsum("ij,jk,ik->i", centred, self.fit.covariance, centred, optimize=True)
        return self._estimates(self.encoding.items, centred @ self.fit.coefficients, np.sqrt(variance))

    def _coefficients(self, places: IntArray) -> Estimates:
        names = tuple(self.encoding.names[place] for place in places)
        return self._estimates(names, self.fit.coefficients[places], np.sqrt(np.diag(self.fit.covariance)[places]))

    def _estimates(self, names: tuple[str, ...], mean: FloatArray, deviation: FloatArray) -> Estimates:
        reach = float(norm.ppf(0.5 + self.level / 2.0)) * deviation
        return Estimates(names, mean, deviation, mean - reach, mean + reach)

    def __str__(self) -> str:
        parts = [
            f"{self.n_votes:,} votes on {len(self.encoding.items):,} items, intervals of {self.level:.0%}",
            str(self.utilities),
        ]
        parts += [str(estimates) for estimates in (self.position, self.style) if estimates.names]
        if self.encoding.groups:
            parts.append(f"{len(self.encoding.groups)} groups, which differ by {self.group_spread:.2f}")
        if self.encoding.voters:
            slopes = np.quantile(self.fit.slopes, [0.0, 0.5, 1.0])
            parts.append(
                f"{len(self.encoding.voters):,} voters, slopes {slopes[0]:.2f} to {slopes[2]:.2f}, median {slopes[1]:.2f}, "
                f"spread {self.voter_spread:.2f}"
            )
        return "\n".join(parts)


def fit_votes(
    comparisons: Comparisons,
    *,
    items: Literal["identity", "features"] = "identity",
    position: bool | None = None,
    style: Sequence[str] = (),
    groups: str | None = None,
    reliability: bool = False,
    scale: float = 2.0,
    level: float = 0.95,
) -> VoteFit:
    """Fit utilities, position, style, groups and the reliability of voters to votes on pairs.

    The first wins with probability s(r_v (u_a - u_b + what the group adds + <style, difference>) + position): s the logistic
    sigmoid, r_v ~ N(1, tau^2) the slope of the voter. A tie is half a win each way. Coefficients have a normal prior; what a
    group adds has one whose spread, like tau, is learnt from the votes. Intervals are those of the Laplace approximation.

    Args:
        comparisons: votes on pairs.
        items: "identity" for a utility per item; "features" for a weight per feature, with mean 0 and deviation 1.
        position: whether being shown first may matter; None for wherever the order is known.
        style: columns of the context, each the covariate of the first answer minus that of the second, such as `tokens`. They
            are divided by their root mean square.
        groups: a column of the context: utilities differ between its values, by as much as the votes say.
        reliability: whether voters have slopes of their own.
        scale: prior standard deviation of utilities, of position and of style, in log-odds.
        level: probability of an interval.

    Example:
        >>> shown, chosen = [[0, 1]] * 8 + [[1, 0]] * 8, [0] * 7 + [1] * 6 + [0] * 3
        >>> votes = Comparisons(name="v", items=("a", "b"), shown=shown, chosen=chosen, order_known=True)
        >>> fit = fit_votes(votes)
        >>> fit.utilities.names[int(fit.utilities.mean.argmax())], bool(fit.position.mean[0] > 0)
        ('a', True)
    """
    finite_number("scale", scale, above=0.0)
    if finite_number("level", level, above=0.0) >= 1.0:
        raise InvalidInputError(f"level must be below 1; got {level:g}. Use 0.95 for 95 %.")
    pairs = _pairs_of(comparisons)
    encoding = _encode(comparisons, one_of("items", items, ("identity", "features")), position, style, groups, reliability)
    which_group = _number(encoding.groups, _column(comparisons, groups)) if groups else np.zeros(len(pairs), dtype=np.int64)
    who = _number(encoding.voters, comparisons.voters) if comparisons.voters is not None and reliability else None
    difference = _style_of(comparisons, encoding.style, encoding.style_scale)
    counts = np.ones(len(pairs)) if comparisons.weights is None else comparisons.weights
    wins = 0.5 * (1.0 + comparisons.outcomes) * counts
    losses = counts - wins
    if not encoding.style:  # votes on one pair by one voter in one group are alike: count them together
        keys = np.column_stack([pairs, which_group, np.zeros_like(which_group) if who is None else who])
        distinct, inverse = np.unique(keys, axis=0, return_inverse=True)
        wins, losses = (np.bincount(inverse.ravel(), column).astype(np.float64) for column in (wins, losses))
        pairs, which_group, who = distinct[:, :2], distinct[:, 2], None if who is None else distinct[:, 3]
        difference = np.zeros((len(pairs), 0))
    deviation = np.where(encoding.pooled, _FIRST_GUESS, scale)
    rows = encoding.rows(pairs, which_group, difference)
    table = VoteTable(rows, encoding.judged, encoding.pooled, deviation, wins, losses, who, len(encoding.voters))
    return VoteFit(encoding=encoding, fit=fit_people(table), level=level, n_votes=len(comparisons))


def _encode(
    comparisons: Comparisons, items: str, position: bool | None, style: Sequence[str], groups: str | None, reliability: bool
) -> VoteEncoding:
    if position and not comparisons.order_known:
        raise InvalidInputError(
            f"position must be None or False for {comparisons.name}, whose order on the screen is not known. Where `shown` is "
            f"that order, make the comparisons with order_known=True."
        )
    if reliability and comparisons.voters is None:
        raise InvalidInputError(f"reliability needs to know who voted, and {comparisons.name} does not. Give voters.")
    if items == "features" and comparisons.features is None:
        raise InvalidInputError(f'{comparisons.name} has no features. Use items="identity".')
    names = (style,) if isinstance(style, str) else tuple(style)
    raw = _style_of(comparisons, names, np.ones(len(names)))
    size = np.sqrt((raw**2).mean(axis=0))
    identity = items == "identity"
    return VoteEncoding(
        items=comparisons.items,
        features=np.eye(len(comparisons.items)) if identity else comparisons.scaled_features,
        feature_names=comparisons.items if identity else comparisons.feature_names,
        position=comparisons.order_known if position is None else position,
        style=names,
        style_scale=np.where(size > 0.0, size, 1.0),
        group=groups,
        groups=() if groups is None else tuple(dict.fromkeys(sorted(map(str, _column(comparisons, groups))))),
        voters=tuple(sorted(set(comparisons.voters))) if reliability and comparisons.voters is not None else (),
    )


def _pairs_of(comparisons: Comparisons) -> IntArray:
    if comparisons.most_options != 2:
        raise InvalidInputError(
            f"votes must be on pairs; {comparisons.name} has choices from up to {comparisons.most_options} items, whose pairs "
            f"are not independent."
        )
    return comparisons.shown


def _column(comparisons: Comparisons, name: str) -> Any:
    one_of("column of the context", name, tuple(comparisons.context))
    return comparisons.context[name]


def _number(names: tuple[str, ...], column: Any) -> IntArray:
    """(n,) places of text in `names`; -1 for what is not there."""
    places = {name: place for place, name in enumerate(names)}
    return np.array([places.get(str(cell), -1) for cell in column], dtype=np.int64)


def _style_of(comparisons: Comparisons, names: Sequence[str], scale: FloatArray) -> FloatArray:
    """(n, s) covariates, first minus second, in units of their scale."""
    columns = [_column(comparisons, name) for name in names]
    wrong = [name for name, column in zip(names, columns, strict=True) if column.dtype.kind not in "fiub"]
    if wrong:
        raise InvalidInputError(f"style must be columns of numbers; {wrong[0]!r} is text. For categories use groups.")
    numbers = np.array(columns, dtype=np.float64).reshape(len(names), -1 if names else len(comparisons)).T
    if not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"style must be finite; {int((~np.isfinite(numbers)).sum())} value(s) are missing. Use 0 there."
        )
    return np.asarray(numbers / scale)
