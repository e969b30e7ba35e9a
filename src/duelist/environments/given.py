"""Linear duels between given arms: the same arms every round, or a catalogue seen by another context in every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import ndtri

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear_truth import LinearTruth, draw_models, random_directions
from duelist.environments.nonlinear import normal_arms
from duelist.environments.tables import Table, read_array, read_models
from duelist.features import one_block_per_arm, outer
from duelist.kernels.philox import arm_uniforms
from duelist.preferences.links import win_law
from duelist.typing import FloatArray

# From contexts (lanes, n) and arms (n_arms, m) or (lanes, n_arms, m) to features (lanes, n_arms, dim).
Join = Callable[[FloatArray, FloatArray], FloatArray]
JOINS = ("outer", "blocks", "product")


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenDuels:
    """Arms and a truth of yours: utilities <theta, phi>, the same arms in every round and every trial.

    Args:
        features: (n_arms, dim), or the path of a file with them.
        theta: (dim,) the truth; or (N, dim), of which every trial draws one; or a path.
        link: law of who wins given the difference of utilities: "logistic", "probit" or "cauchit".
        flips: probability that a vote is flipped, below 0.5.

    Example:
        >>> env = GivenDuels(features=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], theta=[2.0, 1.0])
        >>> instance = env.instance(Streams(0, [0]))
        >>> instance.actions(0).utilities(instance.theta).tolist()
        [[2.0, 1.0, 1.5]]
    """

    features: Table
    theta: Table | Sequence[float]
    link: Literal["logistic", "probit", "cauchit"] = "logistic"
    flips: float = 0.0

    def __post_init__(self) -> None:
        win_law(self.link, self.flips)
        if len(self._arms) < 2:
            raise InvalidInputError(
                f"features must have at least two rows; got {len(self._arms)}. A duel needs two candidates."
            )
        if self._models.shape[1] != self.dim:
            raise InvalidInputError(
                f"theta must have one entry per feature, {self.dim}; got {self._models.shape[1]}. Check which table is which."
            )

    @cached_property
    def _arms(self) -> FloatArray:
        return read_array("features", self.features, "(n_arms, dim)", 2)

    @cached_property
    def _models(self) -> FloatArray:
        return read_models(self.theta)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self._arms.shape[1])

    def instance(self, streams: Streams) -> GivenDuelsInstance:
        """The same arms in every lane, and a row of theta."""
        return GivenDuelsInstance(self._arms, draw_models(self._models, streams), streams, self.link, self.flips)


class GivenDuelsInstance(LinearTruth):
    """One instance of `GivenDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, arms: FloatArray, theta: FloatArray, streams: Streams, link: str, flips: float) -> None:
        super().__init__(theta, streams, win_law(link, flips))
        self._actions = FiniteActions(np.broadcast_to(arms, (len(streams), *arms.shape)))

    def actions(self, round_: int) -> FiniteActions:  # noqa: ARG002 - an instance's signature
        """The same arms in every round."""
        return self._actions


@dataclass(frozen=True, kw_only=True, eq=False)
class ContextDuels:
    """A catalogue of arms and a context per round: the utility is <theta, join(context, arm)>.

    Args:
        contexts: (n, context_dim) of which every round draws one, or a path; None for standard normal contexts.
        context_dim: length of drawn contexts.
        catalogue: (n_arms, arm_dim) the arms, or a path; None for standard normal arms, others in every trial.
        arms: number of drawn arms.
        arm_dim: length of drawn arms.
        join: features of a context and the arms. "outer": all products, so that utilities are bilinear. "product": products of
            entries of the same place. "blocks": the context in the arm's own block, which needs no features of arms. Or a
            function of contexts (lanes, context_dim) and arms, such as a `duelist.features.BilinearMap`.
        theta: (dim,) the truth; or (N, dim), of which every trial draws one; or a path; None for a random direction.
        theta_norm: norm of a random theta.
        link: law of who wins, as in `LinearDuels`.
        flips: probability that a vote is flipped, below 0.5.

    Example:
        >>> env = ContextDuels(contexts=[[1.0, 0.0], [0.0, 1.0]], catalogue=[[1.0], [2.0], [3.0]])
        >>> env.dim, env.instance(Streams(0, [0, 1])).actions(5).features.shape
        (2, (2, 3, 2))
    """

    contexts: Table | None = None
    context_dim: int = 3
    catalogue: Table | None = None
    arms: int = 10
    arm_dim: int = 3
    join: Literal["outer", "blocks", "product"] | Join = "outer"
    theta: Table | Sequence[float] | None = None
    theta_norm: float = 1.0
    link: Literal["logistic", "probit", "cauchit"] = "logistic"
    flips: float = 0.0

    def __post_init__(self) -> None:
        for name, value in (("context_dim", self.context_dim), ("arm_dim", self.arm_dim)):
            whole_number(name, value, at_least=1)
        whole_number("arms", self.arms, at_least=2)
        finite_number("theta_norm", self.theta_norm, above=0.0)
        win_law(self.link, self.flips)
        check_join(self.join)
        if self.models is not None and self.models.shape[1] != self.dim:
            raise InvalidInputError(
                f"theta must have one entry per feature of the joined context and arm, {self.dim}; got {self.models.shape[1]}."
            )

    @cached_property
    def table(self) -> FloatArray | None:
        """(n, context_dim) the given contexts."""
        return None if self.contexts is None else read_array("contexts", self.contexts, "(n, context_dim)", 2)

    @cached_property
    def models(self) -> FloatArray | None:
        """(N, dim) the given truths."""
        return None if self.theta is None else read_models(self.theta)

    @cached_property
    def given_arms(self) -> FloatArray | None:
        """(n_arms, arm_dim) the given arms."""
        return None if self.catalogue is None else read_array("catalogue", self.catalogue, "(n_arms, arm_dim)", 2)

    @cached_property
    def dim(self) -> int:
        """Length of a feature vector."""
        one_context = np.zeros((1, self.context_dim)) if self.table is None else self.table[:1]
        arms = np.zeros((1, self.arms, self.arm_dim)) if self.given_arms is None else self.given_arms[None]
        return int(self.features(one_context, arms).shape[2])

    def features(self, contexts: FloatArray, arms: FloatArray) -> FloatArray:
        """(lanes, n_arms, dim) of contexts (lanes, context_dim) and arms (lanes, n_arms, arm_dim)."""
        return join_arms(self.join, contexts, arms)

    def instance(self, streams: Streams) -> ContextDuelsInstance:
        """One theta and one catalogue per lane, where they are not given."""
        theta = (
            random_directions(streams, self.dim, self.theta_norm) if self.models is None else draw_models(self.models, streams)
        )
        return ContextDuelsInstance(self, theta, streams)


class ContextDuelsInstance(LinearTruth):
    """One instance of `ContextDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: ContextDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams, win_law(recipe.link, recipe.flips))
        self.recipe = recipe
        given = recipe.given_arms
        if given is None:
            self.catalogue = normal_arms(streams, recipe.arms, recipe.arm_dim)
        else:
            self.catalogue = np.broadcast_to(given, (len(streams), *given.shape))

    def contexts(self, round_: int) -> FloatArray:
        """(lanes, context_dim) who is asked in this round."""
        table = self.recipe.table
        if table is not None:
            return table[(self._streams.uniforms("context", round_) * len(table)).astype(np.int64)]
        numbers = np.empty((len(self._streams), self.recipe.context_dim))
        places = np.broadcast_to(np.arange(numbers.shape[1], dtype=np.uint64), numbers.shape).copy()
        arm_uniforms(numbers, places, self._streams.keys("context"), round_)
        return np.asarray(ndtri(numbers))

    def actions(self, round_: int) -> FiniteActions:
        """The catalogue as this round's context sees it."""
        return FiniteActions(self.recipe.features(self.contexts(round_), self.catalogue))


def check_join(join: object) -> None:
    """Refuse a join that is neither a name nor a function."""
    if not callable(join):
        one_of("join", join, JOINS)


def join_arms(join: str | Join, contexts: FloatArray, arms: FloatArray) -> FloatArray:
    """(lanes, n_arms, dim) of contexts (lanes, context_dim) and arms (lanes, n_arms, arm_dim), as `join` says."""
    if callable(join):
        joined = np.asarray(join(contexts, arms))
        if joined.ndim != 3 or joined.shape[:2] != arms.shape[:2]:
            raise InvalidInputError(
                f"join must return features (lanes, n_arms, dim); for {arms.shape[0]} lane(s) and {arms.shape[1]} arms it "
                f"returned shape {joined.shape}."
            )
        return joined
    if join == "blocks":
        return one_block_per_arm(contexts, arms.shape[1])
    if join == "outer":
        return outer(contexts, arms)
    if contexts.shape[1] != arms.shape[2]:
        raise InvalidInputError(
            f'join="product" needs contexts as long as arms; got {contexts.shape[1]} and {arms.shape[2]}. Use "outer".'
        )
    return np.ascontiguousarray(contexts[:, None] * arms)
