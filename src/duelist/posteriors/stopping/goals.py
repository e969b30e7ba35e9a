"""What one wants to know, and how far the votes have come: goals and verdicts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError

GOALS = ("best", "top", "ranking", "promote")


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What one wants to know of the arms.

    Args:
        kind: "best" for the best arm, "top" for the set of the best k, "ranking" for the order of all, "promote" for which of
            challenger and champion is better.
        delta: largest probability of a wrong verdict, over all times at which one may look and stop.
        k: size of the set for "top".
        challenger: row of the challenger for "promote".
        champion: row of the champion.

    Example:
        >>> Goal(kind="top", k=3).pairs([4, 0, 2, 1, 3])
        [(4, 1), (4, 3), (0, 1), (0, 3), (2, 1), (2, 3)]
    """

    kind: str = "best"
    delta: float = 0.05
    k: int = 1
    challenger: int = 1
    champion: int = 0

    def __post_init__(self) -> None:
        one_of("kind", self.kind, GOALS)
        finite_number("delta", self.delta, above=0.0, at_most=0.5)
        whole_number("k", self.k, at_least=1)
        for name in ("challenger", "champion"):
            whole_number(name, getattr(self, name))
        if self.kind == "promote" and self.challenger == self.champion:
            raise InvalidInputError(f"challenger and champion must be different rows; both are {self.champion}.")

    def check_arms(self, n_arms: int) -> None:
        """Refuse a goal that this many arms cannot have."""
        if n_arms < 2:
            raise InvalidInputError(f"a verdict needs at least two arms; got {n_arms}.")
        if self.kind == "top" and self.k >= n_arms:
            raise InvalidInputError(f"k must be less than the number of arms, {n_arms}; got {self.k}. All of them are the top.")
        if self.kind == "promote" and max(self.challenger, self.champion) >= n_arms:
            raise InvalidInputError(
                f"challenger and champion must be rows below {n_arms}; got {self.challenger, self.champion}."
            )

    def claim(self, order: list[int]) -> tuple[int, ...]:
        """What would be said of arms in this order, best first: the arms that the verdict names."""
        if self.kind == "ranking":
            return tuple(order)
        if self.kind == "promote":
            return (min(self.challenger, self.champion, key=order.index),)
        return tuple(order[: self.k if self.kind == "top" else 1])

    def pairs(self, order: list[int]) -> list[tuple[int, int]]:
        """Pairs (i, j) of rows of which i must be better than j for the claim to be right, and that suffice for it."""
        if self.kind == "ranking":
            return list(itertools.pairwise(order))
        if self.kind == "promote":
            (winner,) = self.claim(order)
            return [(winner, self.challenger + self.champion - winner)]
        top = len(self.claim(order))
        return [(i, j) for i in order[:top] for j in order[top:]]


class Verdict(NamedTuple):
    """How far the votes have come towards a goal.

    Attributes:
        arms: rows that would be named now: the best, the top k, all in order, or the better one of two; best first.
        error_probability: the smallest delta at which they could be named now. If one stops as soon as it is at most delta, the
            claim is wrong with probability at most delta, however often one looked before.
        votes_expected: votes that are still needed, if the rest looks like the votes so far; infinite where nothing points
            to an end.
        decided: whether error_probability is at most the goal's delta.
    """

    arms: tuple[int, ...]
    error_probability: float
    votes_expected: float
    decided: bool


def verdict_from(goal: Goal, arms: tuple[int, ...], log_evidence: float, votes_expected: float) -> Verdict:
    """The verdict at this much evidence: the logarithm of 1 / error_probability, where that is below 1."""
    decided = log_evidence >= -math.log(goal.delta)
    return Verdict(arms, math.exp(-max(log_evidence, 0.0)), 0.0 if decided else votes_expected, decided)
