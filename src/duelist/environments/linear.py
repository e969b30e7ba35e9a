"""The paper's synthetic problem: a random direction theta*, arms at corners of a cube, Bradley-Terry-Luce outcomes.

Arms may lie otherwise and votes may follow another law, which gives the problem families of docs/which-policy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.core.streams import Streams
from duelist.environments.geometries import check_geometry, draw_arms
from duelist.environments.linear_truth import LinearTruth, random_directions
from duelist.preferences.links import win_law
from duelist.typing import FloatArray


@dataclass(frozen=True, kw_only=True)
class LinearDuels:
    """Linear utilities and random arms; with the defaults logistic duels between corners, as in the paper's experiments.

    Args:
        dim: length of feature vectors; the paper uses 5, 10 and 15.
        arms: number of distinct arms; at most 2^dim in a cube, and dim along axes.
        fresh_arms: draw new arms every round; False keeps one set for the whole run, as in the experiments.
        unit_norm: scale arms to norm 1, as the theory asks; False keeps norm sqrt(dim), that of corners of {-1, 1}^dim, as in
            the experiments.
        theta_norm: norm of theta*; the experiments use 1.
        geometry: how arms lie, all of one norm. "cube": corners of {-1, 1}^dim, as in the experiments. "sphere": uniform
            directions. "clusters": near-duplicates around four uniform directions. "axes": multiples of unit vectors, arms
            that say nothing about each other, at most dim of them. Fresh arms are drawn anew altogether, centres included.
        link: law of who wins given the difference of utilities: "logistic", or "probit" or "cauchit", scaled to the logistic's
            slope of 1/4 at zero (`duelist.preferences.links`). Policies that fit the logistic are then wrong about the law.
        flips: probability that a vote is flipped, below 0.5.

    Example:
        >>> from duelist.core import Streams
        >>> instance = LinearDuels(dim=3, arms=4).instance(Streams(0, [0, 1]))
        >>> instance.actions(0).features.shape
        (2, 4, 3)
    """

    dim: int = 10
    arms: int = 32
    fresh_arms: bool = False
    unit_norm: bool = False
    theta_norm: float = 1.0
    geometry: Literal["cube", "sphere", "clusters", "axes"] = "cube"
    link: Literal["logistic", "probit", "cauchit"] = "logistic"
    flips: float = 0.0

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("arms", self.arms, at_least=2)
        finite_number("theta_norm", self.theta_norm, above=0.0)
        check_geometry(self.geometry, dim=self.dim, arms=self.arms)
        win_law(self.link, self.flips)

    def instance(self, streams: Streams) -> LinearDuelsInstance:
        """One theta* and one set of arms per lane."""
        return LinearDuelsInstance(self, random_directions(streams, self.dim, self.theta_norm), streams)


class LinearDuelsInstance(LinearTruth):
    """One instance of `LinearDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: LinearDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams, win_law(recipe.link, recipe.flips))
        self.recipe = recipe

    def _draw_arms(self, round_: int) -> FiniteActions:
        recipe = self.recipe
        return FiniteActions(
            draw_arms(recipe.geometry, self._streams, round_, dim=recipe.dim, arms=recipe.arms, unit_norm=recipe.unit_norm)
        )

    @cached_property
    def _fixed(self) -> FiniteActions:
        return self._draw_arms(0)

    def actions(self, round_: int) -> FiniteActions:
        """The arms of this round."""
        return self._draw_arms(round_) if self.recipe.fresh_arms else self._fixed
