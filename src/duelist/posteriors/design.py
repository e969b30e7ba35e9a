"""Which pairs to ask about before any answer is known: a budget of n votes, spent where they tell most.

With z = x - y the contrast of a pair and w = s'(<theta, z>) the information of one vote on it at a guess of theta (1/4 without
one), a design of pairs has the information matrix

    H = lambda I + sum_i w_i z_i z_i^T.

"D" makes log det H large, which is the information about theta as a whole; "A" makes the mean variance of a difference of two
utilities, the mean of z^T H^-1 z over all pairs, small. Pairs are added one by one, each the best given those before, and then
each is exchanged once for the best given all others. Every step works on K x K matrices that follow by rank one: n K^2 in all.

Reference: Pukelsheim (2006), Optimal Design of Experiments, for the criteria; Fedorov (1972) for the exchange.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray, IntArray

CRITERIA = ("D", "A")
MOST_ITEMS = 3000  # four matrices of so many squared are 290 MB


class _Information:
    """What the pairs so far tell: G = X H^-1 X^T, and for "A" also B = X H^-1 C H^-1 X^T, C the covariance of the items."""

    def __init__(self, features: FloatArray, weights: FloatArray, ridge: float, criterion: str) -> None:
        self.criterion, self.weights = criterion, weights
        self.gram = features @ features.T / ridge
        middle = features - features.mean(axis=0)
        spread = middle.T @ middle / len(features)
        self.spread = features @ spread @ features.T / ridge**2 if criterion == "A" else self.gram

    def gains(self) -> FloatArray:
        """(K, K) what one more vote on each pair is worth; nothing for an item against itself."""
        variance = _of_pairs(self.gram)
        if self.criterion == "D":
            gain = np.log1p(self.weights * variance)
        else:
            gain = self.weights * _of_pairs(self.spread) / (1.0 + self.weights * variance)
        np.fill_diagonal(gain, -np.inf)
        return gain

    def add(self, first: int, second: int, sign: float = 1.0) -> None:
        """Take a vote on the pair in, or with sign -1 out again."""
        along = self.gram[:, first] - self.gram[:, second]
        share = sign * self.weights[first, second]
        factor = share / (1.0 + share * (along[first] - along[second]))
        if self.criterion == "A":
            across = self.spread[:, first] - self.spread[:, second]
            own = across[first] - across[second]
            self.spread = (
                self.spread
                - factor * (np.outer(along, across) + np.outer(across, along))
                + factor**2 * own * np.outer(along, along)
            )
        self.gram = self.gram - factor * np.outer(along, along)


def _of_pairs(matrix: FloatArray) -> FloatArray:
    """(K, K) z^T M z of every pair, from X M X^T."""
    own = np.diag(matrix)
    return np.asarray(np.maximum(own[:, None] + own[None, :] - 2.0 * matrix, 0.0))


def design_pairs(
    features: npt.ArrayLike,
    n: int,
    *,
    criterion: Literal["D", "A"] = "D",
    theta: npt.ArrayLike | None = None,
    ridge: float = 1.0,
) -> IntArray:
    """The next n pairs to ask about, chosen before any answer: rows (n, 2) of the items. Pairs may repeat.

    Args:
        features: (K, dim) of the items.
        n: how many votes there will be.
        criterion: "D" for what is known about theta, "A" for what is known about differences of utilities.
        theta: (dim,) a guess; None for none. Where a guess is sure who wins, a vote tells little.
        ridge: lambda, precision of the prior on theta.

    Example:
        >>> design_pairs([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.1]], 2).tolist()
        [[0, 1], [0, 1]]
    """
    items = finite_array("features", features, "(K, dim)", 2)
    one_of("criterion", criterion, CRITERIA)
    whole_number("n", n, at_least=1)
    finite_number("ridge", ridge, above=0.0)
    if not 2 <= len(items) <= MOST_ITEMS:
        raise InvalidInputError(
            f"a design of pairs needs 2 to {MOST_ITEMS} items; got {len(items)}. Design on a sample of them."
        )
    guess = np.zeros(items.shape[1]) if theta is None else finite_array("theta", theta, "(dim,)", 1)
    if guess.shape != (items.shape[1],):
        raise InvalidInputError(f"theta must be ({items.shape[1]},), as long as a feature vector; got {guess.shape}.")
    utilities = items @ guess
    small = np.exp(-np.abs(utilities[:, None] - utilities[None, :]))
    known = _Information(items, small / (1.0 + small) ** 2, ridge, criterion)
    pairs = np.empty((n, 2), dtype=np.int64)
    for vote in range(n):
        pairs[vote] = _best_pair(known)
        known.add(pairs[vote, 0], pairs[vote, 1])
    for vote in range(n):
        known.add(pairs[vote, 0], pairs[vote, 1], -1.0)
        pairs[vote] = _best_pair(known)
        known.add(pairs[vote, 0], pairs[vote, 1])
    return pairs


def _best_pair(known: _Information) -> tuple[int, int]:
    """The pair that is worth most, the first in the order of rows where several are."""
    gains = known.gains()
    first, second = np.unravel_index(int(np.argmax(gains)), gains.shape)
    return int(min(first, second)), int(max(first, second))
