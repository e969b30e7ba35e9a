"""The paper's synthetic problem: a random direction theta*, arms at corners of a cube, Bradley-Terry-Luce outcomes.

Arms may lie otherwise and votes may follow another law, which gives the problem families of docs/which-policy.md; and theta*
may come from a list, which is what `FiniteModels` assumes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.environments.linear_truth import LinearTruth, draw_models, random_directions
from duelist.environments.matrix import arm_costs
from duelist.environments.tables import Table, read_array
from duelist.history.duels import Duels
from duelist.history.slates import Slates
from duelist.kernels.actions import draw_axes, draw_clusters, draw_corners, draw_on_sphere
from duelist.preferences.links import win_law
from duelist.typing import FloatArray

GEOMETRIES = ("cube", "sphere", "clusters", "axes")
# Few enough centres that most arms have near-duplicates from 16 arms up; arms of a cluster are about 0.28 of the norm apart.
CLUSTER_CENTRES = 4
CLUSTER_SPREAD = 0.2


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
    """One instance of `LinearDuels` per lane; `theta` (lanes, dim) is the truth.

    Where the arms stay, `Run.regrets` has the Borda regret too: the best mean probability of beating another arm minus that of
    the arm, as in `MatrixDuels`. With new arms in every round it would cost more than the round.
    """

    def __init__(self, recipe: LinearDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams, win_law(recipe.link, recipe.flips))
        self.recipe = recipe
        self._borda: tuple[FloatArray, FloatArray] | None = None

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

    def regret(self, actions: ActionSet, duels: Duels | Slates) -> Regret:
        """What these duels or slates cost; of duels between arms that stay, in the kind "borda" too."""
        regret = super().regret(actions, duels)
        if self.recipe.fresh_arms or not isinstance(duels, Duels):
            return regret
        costs, lanes = self._borda_costs(), np.arange(len(duels.first))
        return Regret(*regret, {"borda": 0.5 * (costs[lanes, duels.first] + costs[lanes, duels.second])})

    def _borda_costs(self) -> FloatArray:
        """(lanes, arms), worked out again where a wrapper has put another truth in place."""
        if self._borda is None or self._borda[0] is not self.theta:
            utilities = self._fixed.utilities(self.theta)
            self._borda = self.theta, arm_costs(self._law(utilities[:, :, None] - utilities[:, None]))["borda"]
        return self._borda[1]


@dataclass(frozen=True, kw_only=True)
class ListedDuels:
    """The paper's problem with theta* drawn uniformly from a list, one per lane: what `FiniteModels` assumes.

    Args:
        models: (N, dim) the list, or the path of a file with it.
        arms: number of distinct arms, at most 2^dim, corners of {-1, 1}^dim.
        fresh_arms: draw new arms every round.

    Example:
        >>> instance = ListedDuels(models=((3.0, 4.0), (0.0, 1.0)), arms=4).instance(Streams(0, range(6)))
        >>> sorted({float(theta[0]) for theta in instance.theta})
        [0.0, 3.0]
    """

    models: Table
    arms: int = 32
    fresh_arms: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.models, str):  # a path stays one: a spec writes it down
            object.__setattr__(self, "models", tuple(map(tuple, self.table.tolist())))
        _ = self.linear  # which checks the rest

    @cached_property
    def table(self) -> FloatArray:
        """(N, dim) the models."""
        return read_array("models", self.models, "(N, dim)", 2)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.table.shape[1])

    @property
    def linear(self) -> LinearDuels:
        """The problem without its truth."""
        return LinearDuels(dim=self.dim, arms=self.arms, fresh_arms=self.fresh_arms)

    def instance(self, streams: Streams) -> LinearDuelsInstance:
        """One model and one set of arms per lane."""
        return LinearDuelsInstance(self.linear, draw_models(self.table, streams), streams)


def check_geometry(geometry: str, *, dim: int, arms: int) -> None:
    """Refuse a geometry that has too few distinct arms in this dimension."""
    one_of("geometry", geometry, GEOMETRIES)
    if geometry == "cube" and dim < 63 and arms > 2**dim:
        raise InvalidInputError(
            f"arms must be at most 2^dim = {2**dim}, the distinct corners of a cube in dimension {dim}; "
            f"got {arms}. Raise dim or lower arms."
        )
    if geometry == "axes" and arms > dim:
        raise InvalidInputError(
            f'arms must be at most dim = {dim} with geometry="axes", one arm per axis; got {arms}. Raise dim or lower arms.'
        )
    if geometry in ("sphere", "clusters") and dim < 2:
        raise InvalidInputError(
            f'geometry="{geometry}" needs dim of at least 2; got {dim}. A sphere in dimension 1 is two points: use "cube".'
        )


def draw_arms(geometry: str, streams: Streams, round_: int, *, dim: int, arms: int, unit_norm: bool) -> FloatArray:
    """(lanes, arms, dim) arms of a round, all of norm sqrt(dim), or 1 with `unit_norm`.

    Example:
        >>> float(abs(draw_arms("axes", Streams(0, [0]), 0, dim=4, arms=3, unit_norm=False)).sum())
        6.0
    """
    drawn = np.empty((len(streams), arms, dim))
    keys = streams.keys("arms")
    norm = 1.0 if unit_norm else math.sqrt(dim)
    if geometry == "cube":
        draw_corners(drawn, keys, round_, 1 / math.sqrt(dim) if unit_norm else 1.0)
    elif geometry == "sphere":
        draw_on_sphere(drawn, keys, round_, norm)
    elif geometry == "clusters":
        draw_clusters(drawn, keys, round_, norm, CLUSTER_CENTRES, CLUSTER_SPREAD)
    else:
        draw_axes(drawn, keys, round_, norm)
    return drawn
