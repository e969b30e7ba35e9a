"""Duels between trajectories of a decision process: plans are chosen, what they do is seen, and pairs of that are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.plans import PlanActions
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear_truth import LinearTruth, draw_models, random_directions
from duelist.environments.tables import Table, read_models
from duelist.history.duels import Duels
from duelist.typing import FloatArray

ProcessFactory = Callable[[int], PlanActions]


def river_swim(lanes: int, *, states: int = 6, horizon: int = 20) -> PlanActions:
    """The plans of RiverSwim: a chain with a current. Features are visit counts of states and actions.

    Swimming left always succeeds. Swimming right leads one state up with probability 0.35 and back with 0.05 (0.6 up from the
    left bank; at the right end 0.6 to stay and 0.4 back). Trajectories begin at the left bank.

    Reference: Strehl & Littman (2008), with the probabilities of Osband, Van Roy & Russo (2013).
    """
    n = whole_number("states", states, at_least=2)
    transitions = np.zeros((n, 2, n))
    for state in range(n):
        transitions[state, 0, max(state - 1, 0)] = 1.0
        back, stay, on = (0.4, 0.0, 0.6) if state in (0, n - 1) else (0.05, 0.6, 0.35)
        for place, chance in ((state - 1, back), (state, stay), (state + 1, on)):
            transitions[state, 1, min(max(place, 0), n - 1)] += chance
    return PlanActions(transitions, horizon, lanes=lanes)


def slippery_grid(lanes: int, *, side: int = 4, horizon: int = 8, slip: float = 0.2) -> PlanActions:
    """The plans on a square grid with four moves, of which a share `slip` are random ones. Features count visits of cells.

    Trajectories begin in a corner, and a move against a wall stays where it is.
    """
    n = whole_number("side", side, at_least=2)
    finite_number("slip", slip, at_least=0.0, at_most=1.0)
    moved = np.zeros((n * n, 4, n * n))
    for cell in range(n * n):
        for move, (down, right) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
            row, column = np.clip((cell // n + down, cell % n + right), 0, n - 1)
            moved[cell, move, row * n + column] = 1.0
    transitions = (1.0 - slip) * moved + slip * moved.mean(axis=1, keepdims=True)
    cells = np.repeat(np.eye(n * n)[:, None], 4, axis=1)
    return PlanActions(transitions, horizon, features=cells, lanes=lanes)


NAMED: dict[str, ProcessFactory] = {"river": river_swim, "grid": slippery_grid}


@dataclass(frozen=True, kw_only=True, eq=False)
class TrajectoryDuels:
    """Two plans are chosen per episode, each is followed once, and the two trajectories are compared.

    The first wins with log-odds <theta*, phi(tau_1) - phi(tau_2)>, and it is this contrast of what happened that a policy
    learns from. Regret is in values of plans, which are expectations: V* - (V(plan_1) + V(plan_2)) / 2.

    Args:
        process: "river" for `river_swim`, "grid" for `slippery_grid`; or a function that makes the plans of that many lanes,
            such as `lambda lanes: PlanActions(transitions, horizon, lanes=lanes)`.
        theta: (dim,) the truth; or (N, dim), of which every trial draws one; or a path; None for a random direction.
        theta_norm: norm of a random theta.

    Example:
        >>> import duelist
        >>> run = duelist.simulate(duelist.FGTS(alpha=0.0), TrajectoryDuels(), rounds=50, trials=2, seed=0)
        >>> run.regret.shape
        (2, 50)
    """

    process: Literal["river", "grid"] | ProcessFactory = "river"
    theta: Table | Sequence[float] | None = None
    theta_norm: float = 1.0

    def __post_init__(self) -> None:
        finite_number("theta_norm", self.theta_norm, above=0.0)
        if not callable(self.process):
            one_of("process", self.process, [*NAMED])
        if self._models is not None and self._models.shape[1] != self.dim:
            raise InvalidInputError(f"theta must have one entry per feature, {self.dim}; got {self._models.shape[1]}.")

    @cached_property
    def _models(self) -> FloatArray | None:
        return None if self.theta is None else read_models(self.theta)

    @cached_property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self.plans(1).dim

    def plans(self, lanes: int) -> PlanActions:
        """The set of every episode."""
        return self.process(lanes) if callable(self.process) else NAMED[self.process](lanes)

    def instance(self, streams: Streams) -> TrajectoryDuelsInstance:
        """One theta* per lane."""
        models = self._models
        theta = random_directions(streams, self.dim, self.theta_norm) if models is None else draw_models(models, streams)
        return TrajectoryDuelsInstance(self, theta, streams)


class TrajectoryDuelsInstance(LinearTruth):
    """One instance of `TrajectoryDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: TrajectoryDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams)
        self._plans = recipe.plans(len(streams))

    def actions(self, round_: int) -> PlanActions:  # noqa: ARG002 - an instance's signature
        """The same plans in every episode."""
        return self._plans

    def show(self, round_: int, duels: Duels) -> Duels:
        """One trajectory of each plan, with its own features. The numbers of a round are the same whatever the plans."""
        horizon = self._plans.shape[0]
        first = 4 * horizon * round_
        numbers = [self._streams.uniforms("trajectory", first + i) for i in range(4 * horizon)]
        uniforms = np.stack(numbers, axis=1).reshape(-1, 2, horizon, 2)
        return duels._replace(features=self._plans.roll_out(self._plans.plans_of(duels.features), uniforms))
