"""BEXP3: exponential weights on estimated Borda scores, for answers whose law may change in every round.

    q        = (1 - gamma) softmax(eta <x_i, S>) + gamma / K          both arms are drawn from it, one after the other
    Q        = E z z^T over the pairs (x, y) so drawn,   z = x - y
    S       += Q^-1 z o / 2                                           o = 1 for a win, -1 for a loss, 0 for a tie

The new term of <x_i - mean_j x_j, S> is an unbiased estimate of the Borda score of x_i minus 1/2 in that round, if
P(x beats y) = 1/2 + <theta_t, x - y>; nothing is assumed of how theta_t moves. With T rounds and K arms of dimension d

    eta = rate (log K)^(2/3) d^(-1/3) T^(-2/3),   gamma = explore (log K)^(1/3) d^(1/3) T^(-1/3) lambda_0^(-1/2),

lambda_0 the least eigenvalue above 0 of the mean of z z^T over all pairs.

Reference: Wu, Jin, Di, Lou, Farnoud & Gu (2024), Borda Regret Minimization for Generalized Linear Dueling Bandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy
from duelist.policies.parts.same_arm import BOUNDS, SameArm, check_same_arm, require_finite, resolve_same_arm
from duelist.typing import FloatArray, IntArray

_NOTHING = 1e-9  # eigenvalues below this part of the largest are rounding: the arms do not span that direction


@stored("bexp3-state")
class BEXP3State(NamedTuple):
    """What was learnt.

    Attributes:
        total: (lanes, dim) S.
        asked: pairs asked for so far; it names the next random numbers.
        learnt: duels learnt so far.
        horizon: T, 0 where it is not known.
        different: whether the two arms must differ.
        digest: of the set that was offered last, as text.
        least: (lanes,) lambda_0 of that set.
    """

    total: FloatArray
    asked: int
    learnt: int
    horizon: int
    different: bool
    digest: str
    least: FloatArray


@dataclass(frozen=True, kw_only=True)
class BEXP3(Policy[BEXP3State]):
    """Draw both arms by exponential weights on estimated Borda scores.

    Args:
        rate: factor of eta.
        explore: factor of gamma, which is at most 1.
        horizon: T; None takes the simulation's, and where it is unknown the rounds asked so far.
        same_arm: "allow" lets an arm meet itself, "different" draws the second from the others; "auto" allows it in simulation
            and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import BEXP3
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> runs = [duelist.simulate(p, env, rounds=1000, trials=4, seed=0) for p in (BEXP3(), duelist.Uniform())]
        >>> borda = [float(run.regrets["borda"][:, -1].mean()) for run in runs]
        >>> borda[0] < 0.8 * borda[1]
        True
    """

    knows_arms_by_content: ClassVar[bool] = True

    rate: float = 1.0
    explore: float = 1.0
    horizon: int | None = None
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        finite_number("rate", self.rate, above=0.0)
        finite_number("explore", self.explore, above=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)
        check_same_arm(self.same_arm, BOUNDS)

    def start(self, problem: Problem, streams: Streams) -> BEXP3State:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: all arms are as likely."""
        different = resolve_same_arm(self.same_arm, BOUNDS, live=problem.live) is SameArm.DIFFERENT
        total, least = np.zeros((problem.lanes, problem.dim)), np.ones(problem.lanes)
        return BEXP3State(total, 0, 0, self.horizon or problem.horizon or 0, different, "", least)

    def choose(self, state: BEXP3State, actions: ActionSet, streams: Streams) -> tuple[Duels, BEXP3State]:
        """Two draws; what the answer will teach travels in the note: Q^-1 z."""
        finite = require_finite(self, actions)
        state = self._look(state, finite)
        weights = self.arm_weights(state, finite)
        first = _draw(weights, finite.random_priority(streams, "bexp3 first", state.asked))
        chances = weights
        if state.different:
            chances = weights.copy()
            chances[np.arange(finite.lanes), first] = 0.0
        second = _draw(chances, finite.random_priority(streams, "bexp3 second", state.asked))
        duels = duels_between(finite, first, second)
        spread = self._spread(weights, finite, state.different)
        note = np.asarray(np.linalg.solve(spread, duels.contrast[:, :, None])[:, :, 0], dtype=np.float64)
        return duels._replace(note=note), state._replace(asked=state.asked + 1)

    def learn(
        self,
        state: BEXP3State,
        actions: ActionSet,  # noqa: ARG002 - a policy's signature
        duels: Duels,
        outcomes: IntArray,
    ) -> BEXP3State:
        """Add the estimate of this round. A duel that the rule did not draw had no probability and teaches nothing."""
        if duels.note is None:
            return state
        if duels.note.shape != state.total.shape:
            raise InvalidInputError(
                f"the note of a BEXP3 duel must be {state.total.shape} numbers; got an array of shape {duels.note.shape}. "
                f"Return the duels that choose gave."
            )
        # The note belongs to the pair in the order in which it was drawn.
        turned = np.where(np.einsum("ld,ld->l", duels.note, duels.contrast) < 0.0, -0.5, 0.5)
        return state._replace(total=state.total + (turned * outcomes)[:, None] * duels.note, learnt=state.learnt + 1)

    def arm_weights(self, state: BEXP3State, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) q of the next round, for the set that was offered last."""
        rounds, many = state.horizon or state.asked + 1, math.log(actions.n_arms)
        eta = self.rate * many ** (2 / 3) * actions.dim ** (-1 / 3) * rounds ** (-2 / 3)
        gamma = np.minimum(1.0, self.explore * (many * actions.dim / rounds) ** (1 / 3) / np.sqrt(state.least))[:, None]
        scores = eta * actions.utilities(state.total)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - gamma) * weights + gamma / actions.n_arms)

    def pair_probability(self, state: BEXP3State, actions: ActionSet, duels: Duels) -> FloatArray:
        """(lanes,) exactly: q of the first times q of the second, given that they differ where they must."""
        finite, lanes = require_finite(self, actions), np.arange(len(duels.first))
        # The state after `choose`, which counts the question already.
        weights = self.arm_weights(self._look(state._replace(asked=max(state.asked - 1, 0)), finite), finite)
        first, second = weights[lanes, duels.first], weights[lanes, duels.second]
        if not state.different:
            return np.asarray(first * second)
        return np.where(duels.first == duels.second, 0.0, first * second / (1.0 - first))

    def estimated_utilities(self, state: BEXP3State, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the mean estimate of P(the arm beats an arm of utility 0) - 1/2."""
        return actions.utilities(state.total) / max(state.learnt, 1)

    def report(self, state: BEXP3State) -> dict[str, FloatArray]:
        """The least eigenvalue on which gamma rests."""
        return {"least_eigenvalue": state.least}

    def keeps_sets(self) -> bool:
        """The note says all."""
        return False

    def _look(self, state: BEXP3State, actions: FiniteActions) -> BEXP3State:
        digest = actions.digest.hex()
        if digest == state.digest:
            return state
        # Of all pairs, an arm with itself among them: twice the covariance of the arms.
        values = np.linalg.eigvalsh(_twice_covariance(np.full((actions.lanes, actions.n_arms), 1.0 / actions.n_arms), actions))
        spanned = np.where(values > _NOTHING * values[:, -1:], values, np.inf).min(axis=1)
        return state._replace(digest=digest, least=np.where(np.isfinite(spanned), spanned, 1.0))

    def _spread(self, weights: FloatArray, actions: FiniteActions, different: bool) -> FloatArray:
        """(lanes, dim, dim) Q; a little on the diagonal leaves directions that the arms do not span where they are, at 0."""
        if different:
            pairs = weights[:, :, None] * weights[:, None] / (1.0 - weights)[:, :, None]
            pairs[:, np.arange(actions.n_arms), np.arange(actions.n_arms)] = 0.0
            laplacian = -(pairs + pairs.transpose(0, 2, 1))
            laplacian[:, np.arange(actions.n_arms), np.arange(actions.n_arms)] = pairs.sum(axis=1) + pairs.sum(axis=2)
            spread = actions.features.transpose(0, 2, 1) @ laplacian @ actions.features
        else:
            spread = _twice_covariance(weights, actions)
        size = np.einsum("ldd->l", spread) / actions.dim
        little = np.where(size > 0.0, _NOTHING * size, 1.0)
        return np.asarray(spread + little[:, None, None] * np.eye(actions.dim))


def _twice_covariance(weights: FloatArray, actions: FiniteActions) -> FloatArray:
    """(lanes, dim, dim) E (x - y)(x - y)^T for two independent draws by the weights (lanes, n_arms)."""
    mean = np.einsum("lk,lkd->ld", weights, actions.features)
    centred = actions.features - mean[:, None]
    return np.asarray(2.0 * (centred * weights[:, :, None]).transpose(0, 2, 1) @ centred)


def _draw(weights: FloatArray, uniforms: FloatArray) -> IntArray:
    """(lanes,) one arm per lane by the weights (lanes, n_arms): the first of exponential clocks of these rates.

    Example:
        >>> _draw(np.array([[0.5, 0.0, 0.5]]), np.array([[0.3, 0.9, 0.6]])).tolist()
        [2]
    """
    with np.errstate(divide="ignore"):
        return np.asarray((-np.log(uniforms) / weights).argmin(axis=1))
