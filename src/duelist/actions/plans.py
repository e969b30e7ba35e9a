"""The plans of a finite-horizon Markov decision process as an action set: the best one is found by dynamic programming.

Whole trajectories are compared, and a trajectory tau = (s_1, a_1, ..., s_H, a_H) has the features sum_h f(s_h, a_h). A *plan*
says which action to take in every state at every step (the field calls it a policy, a word that is taken here). An arm is a
plan, and its features are the expected ones of its trajectories,

    phi(plan) = sum_h sum_{s,a} d_h(s, a) f(s, a),      d_h(s, a) the probability of being in s at step h and doing a.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.actions.continuous import MEMBERSHIP, ContinuousActions
from duelist.core.checks import finite_array, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray, IntArray

_SUMS_TO_ONE = 1e-9
_REMEMBERED = 2**16  # plans; more are forgotten together, and found again by a linear programme


@stored("plan-actions")
class PlanActions(ContinuousActions):
    """The plans of a tabular decision process with known transitions, the same in every lane.

    Its support function is the value of the best plan for rewards <theta, f(s, a)>, from backward induction. There are
    A^(H S) plans, none of which is listed. Points of the convex hull belong to the set: plans that act at random have them.

    Args:
        transitions: (n_states, n_actions, n_states) probability of the next state.
        horizon: H, steps of a trajectory.
        start: (n_states,) probability of the first state; None for state 0.
        features: (n_states, n_actions, dim) what a step adds to the features of its trajectory; None for visit counts, one
            feature per state and action.
        lanes: number of independent runs.

    Attributes:
        shape: (horizon, n_states, n_actions).

    Example:
        >>> stay_or_go = [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]
        >>> plans = PlanActions(stay_or_go, horizon=3)
        >>> plans.best(np.array([[[0.0, 0.0, 1.0, 0.0]]])).features  # go once, then stay in state 1
        array([[[0., 1., 2., 0.]]])
    """

    def __init__(
        self,
        transitions: npt.ArrayLike,
        horizon: int,
        start: npt.ArrayLike | None = None,
        features: npt.ArrayLike | None = None,
        lanes: int = 1,
    ) -> None:
        self.transitions = finite_array("transitions", transitions, "(n_states, n_actions, n_states)", 3).copy()
        n_states, n_actions, n_next = self.transitions.shape
        if n_states != n_next or 0 in self.transitions.shape:
            raise InvalidInputError(
                f"transitions must be (n_states, n_actions, n_states) with at least one of each; got {self.transitions.shape}."
            )
        self.shape = (whole_number("horizon", horizon, at_least=1), n_states, n_actions)
        self.start = np.eye(n_states)[0] if start is None else finite_array("start", start, "(n_states,)", 1).copy()
        table = np.eye(n_states * n_actions).reshape(n_states, n_actions, -1) if features is None else features
        self.features = finite_array("features", table, "(n_states, n_actions, dim)", 3).copy()
        for name, found, wanted in (("start", self.start.shape, 1), ("features", self.features.shape[:2], 2)):
            if found != (n_states, n_actions)[:wanted]:
                raise InvalidInputError(f"{name} must fit {n_states} state(s) and {n_actions} action(s); got shape {found}.")
        for name, law in (("transitions", self.transitions), ("start", self.start)):
            if (law < 0.0).any() or (np.abs(law.sum(axis=-1) - 1.0) > _SUMS_TO_ONE).any():
                raise InvalidInputError(f"{name} must be probabilities that add up to 1 over their last axis; got {law!r}.")
        self.dim, self.lanes = self.features.shape[2], whole_number("lanes", lanes, at_least=1)
        self._met: dict[bytes, IntArray] = {}  # plans by their features, so that they need not be solved for

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same set again."""
        names = ("transitions", "start", "features", "lanes")
        return {**{name: getattr(self, name) for name in names}, "horizon": self.shape[0]}

    def plan(self, theta: FloatArray) -> IntArray:
        """(lanes, draws, horizon, n_states) the best action by backward induction, lowest first among equals."""
        rewards = np.einsum("xad,lkd->lkxa", self.features, theta)
        actions = np.empty((*theta.shape[:2], *self.shape[:2]), dtype=np.int64)
        value = np.zeros(rewards.shape[:3])
        for step in reversed(range(self.shape[0])):
            ahead = rewards + np.einsum("xas,lks->lkxa", self.transitions, value)
            actions[:, :, step], value = ahead.argmax(axis=3), ahead.max(axis=3)
        return actions

    def features_of(self, actions: IntArray) -> FloatArray:
        """(lanes, n, dim) expected features of plans (lanes, n, horizon, n_states)."""
        visits = np.zeros((*actions.shape[:2], *self.shape[1:]))
        here = np.broadcast_to(self.start, (*actions.shape[:2], self.shape[1]))
        for step in range(self.shape[0]):
            chosen = here[..., None] * (actions[:, :, step, :, None] == np.arange(self.shape[2]))
            visits += chosen
            here = np.einsum("lkxa,xas->lks", chosen, self.transitions)
        return np.asarray(np.einsum("lkxa,xad->lkd", visits, self.features))

    def plans_of(self, features: FloatArray) -> FloatArray:
        """(lanes, n, horizon, n_states, n_actions) probabilities of actions under a plan with these features (lanes, n, dim).

        Plans with the same expected features are one arm, so any of them will do. For features that `best` or `sample` gave it
        is the plan that they came from; for others one that a linear programme finds, which may act at random.
        """
        probabilities = np.empty((*features.shape[:2], *self.shape))
        for lane, n in np.ndindex(*features.shape[:2]):
            point = np.ascontiguousarray(features[lane, n])
            met = self._met.get(point.tobytes())
            probabilities[lane, n] = self._solve(point) if met is None else met[..., None] == np.arange(self.shape[2])
        return probabilities

    def roll_out(self, plans: FloatArray, uniforms: FloatArray) -> FloatArray:
        """Features (lanes, n, dim) of one trajectory per plan (lanes, n, horizon, n_states, n_actions).

        Args:
            plans: probabilities of actions, as from `plans_of`.
            uniforms: (lanes, n, horizon, 2) numbers in (0, 1): which state and which action at each step.
        """
        lane, n = np.ogrid[: plans.shape[0], : plans.shape[1]]
        features = np.zeros((*plans.shape[:2], self.dim))
        law = np.broadcast_to(self.start, (*plans.shape[:2], self.shape[1]))
        for step in range(self.shape[0]):
            state = _draw(law, uniforms[:, :, step, 0])
            action = _draw(plans[lane, n, step, state], uniforms[:, :, step, 1])
            features += self.features[state, action]
            law = self.transitions[state, action]
        return features

    def sample(self, generator: np.random.Generator) -> FloatArray:
        """The features of one plan per lane whose every action is uniformly random, (lanes, dim)."""
        return self._remember(generator.integers(self.shape[2], size=(self.lanes, 1, *self.shape[:2])))[:, 0]

    def _best(self, theta: FloatArray) -> FloatArray:
        return self._remember(self.plan(theta))

    def _contains(self, points: FloatArray) -> npt.NDArray[np.bool_]:
        inside = [[self._occupancy(point) is not None for point in lane] for lane in points]
        return np.array(inside, dtype=bool).reshape(points.shape[:2])

    def _remember(self, actions: IntArray) -> FloatArray:
        features = self.features_of(actions)
        if len(self._met) >= _REMEMBERED:
            self._met.clear()
        for point, plan in zip(features.reshape(-1, self.dim), actions.reshape(-1, *self.shape[:2]), strict=True):
            self._met.setdefault(point.tobytes(), plan)
        return features

    def _solve(self, point: FloatArray) -> FloatArray:
        occupancy = self._occupancy(point)
        if occupancy is None:
            raise InvalidInputError(f"no plan has the expected features {point}. Use those that best(theta) gives.")
        reached = occupancy.sum(axis=2, keepdims=True)
        return np.where(reached > 0.0, occupancy / np.where(reached > 0.0, reached, 1.0), 1.0 / self.shape[2])

    def _occupancy(self, point: FloatArray) -> FloatArray | None:
        """(horizon, n_states, n_actions) d_h(s, a) of a plan with these features (dim,); None if there is none."""
        from scipy.optimize import linprog  # here, as it is slow to import and seldom needed

        wanted = np.concatenate([self.start, np.zeros((self.shape[0] - 1) * self.shape[1]), point])
        options: Any = {"primal_feasibility_tolerance": MEMBERSHIP}
        solved = linprog(np.zeros(self._equations.shape[1]), A_eq=self._equations, b_eq=wanted, options=options)
        return None if solved.x is None else np.maximum(solved.x.reshape(self.shape), 0.0)

    @cached_property
    def _equations(self) -> FloatArray:
        """What occupancies satisfy: as much leaves a state as came into it, and the features are those of the point."""
        horizon, n_states, n_actions = self.shape
        leave = np.kron(np.eye(n_states), np.ones(n_actions))
        enter = self.transitions.reshape(n_states * n_actions, n_states).T
        flow = np.kron(np.eye(horizon), leave) - np.kron(np.eye(horizon, k=-1), enter)
        return np.concatenate([flow, np.tile(self.features.reshape(-1, self.dim).T, horizon)])


def _draw(law: FloatArray, uniforms: FloatArray) -> IntArray:
    """Numbers (lanes, n) drawn from laws (lanes, n, size) by the inverse of their distribution function."""
    below = (np.cumsum(law, axis=2) <= uniforms[..., None]).sum(axis=2)
    return np.asarray(np.minimum(below, law.shape[2] - 1))
