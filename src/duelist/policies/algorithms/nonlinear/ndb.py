"""NDB-UCB and NDB-TS: a network learns utilities, and its gradients say how well they are known (extra `jax`).

    theta_t  = the fit of the network h to all duels, with a ridge towards its initial parameters theta_0
    phi(x)   = gradient of h(x; theta) in theta, at theta_0,        V = lambda I + sum_i z_i z_i^T,  z_i = phi(x_i) - phi(x'_i)
    first    = argmax h(x; theta_t)
    second   = argmax h(x; theta_t) + nu w(x)                                NDB-UCB
               argmax of draws from N(h(x; theta_t), nu^2 w(x)^2)            NDB-TS

with w(x) = sqrt(lambda) |phi(x) - phi(first)| in the norm of V^-1.

Reference: Verma, Dai, Lin, Jaillet & Low (2024), Neural Dueling Bandits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duel_table import DuelTable
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy, Round
from duelist.policies.parts.confidence import must_differ
from duelist.policies.parts.kernel_features import pick_largest
from duelist.policies.parts.reward_fit import all_arms, contrasts_of, fit_reward, gradients_of
from duelist.policies.parts.same_arm import BOUNDS, check_same_arm, require_finite
from duelist.rewards.base import Reward, require_jax
from duelist.rewards.models import TwoLayerNetwork
from duelist.typing import FloatArray, IntArray

GRADIENTS = ("initial", "current", "last-layer")


@stored("ndb-state")
class NDBState(NamedTuple):
    """What was learnt.

    Attributes:
        table: every duel learnt so far.
        theta: (lanes, parameters) the fit.
        centre: (lanes, parameters) theta_0.
        asked: pairs asked for so far; it names the next random numbers.
        radius: (lanes,) nu.
        ridge: (lanes,) lambda.
        different: whether the two arms must differ.
    """

    table: DuelTable
    theta: FloatArray
    centre: FloatArray
    asked: int
    radius: FloatArray
    ridge: FloatArray
    different: bool


@dataclass(frozen=True, kw_only=True)
class _NeuralDuels(Policy[NDBState]):
    """What NDB-UCB and NDB-TS share: all but how the second arm is scored.

    Args:
        radius: nu, weight of the width; a sequence is one per lane.
        ridge: lambda; a sequence is one per lane.
        reward: the network h.
        gradients: whose gradients are the features: "initial" parameters (the paper), the "current" fit, or the "last-layer"
            of the current fit alone, for a `TwoLayerNetwork`.
        steps: Gauss-Newton steps per duel learnt, from the last fit.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
    """

    extra: ClassVar[str] = "jax"
    linear_utilities: ClassVar[bool] = False

    radius: PerLane = 1.0
    ridge: PerLane = 1.0
    reward: Reward = field(default_factory=lambda: TwoLayerNetwork(hidden=16))
    gradients: str = "initial"
    steps: int = 1
    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_per_lane("radius", self.radius, at_least=0.0)
        check_per_lane("ridge", self.ridge, above=0.0)
        whole_number("steps", self.steps, at_least=1)
        one_of("gradients", self.gradients, GRADIENTS)
        check_same_arm(self.same_arm, BOUNDS)
        if not callable(self.reward) or not hasattr(self.reward, "parameters"):
            raise InvalidInputError(
                f"reward must be a reward with parameters(dim) and bound; got {self.reward!r}. "
                f"Wrap a function of your own: CustomReward(function, n_parameters=...)."
            )
        if self.gradients == "last-layer" and not isinstance(self.reward, TwoLayerNetwork):
            raise InvalidInputError(
                f"gradients='last-layer' needs a reward whose last layer is known, a TwoLayerNetwork; got {self.reward!r}. "
                f"Use gradients='current'."
            )

    def widened(self, widths: FloatArray, actions: FiniteActions, streams: Streams, asked: int) -> FloatArray:
        """What is added to the utility of every candidate for the second arm: (lanes, n_arms), from nu w(x)."""
        raise NotImplementedError

    def start(self, problem: Problem, streams: Streams) -> NDBState:
        """No duels yet, and standard normal initial parameters."""
        require_jax()
        centre = streams.normals("initial network", 0, self.reward.parameters(problem.dim))
        return NDBState(
            table=DuelTable.start(lanes=problem.lanes, dim=problem.dim, horizon=problem.horizon or 0),
            theta=centre,
            centre=centre,
            asked=0,
            radius=per_lane("radius", self.radius, problem.lanes),
            ridge=per_lane("ridge", self.ridge, problem.lanes),
            different=must_differ(self.same_arm, problem),
        )

    def choose(self, state: NDBState, actions: ActionSet, streams: Streams) -> tuple[Duels, NDBState]:
        """The best arm by the fit, and the arm with the best score against it."""
        return self.choose_with_pending(state, actions, streams, ())

    def choose_with_pending(
        self, state: NDBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, NDBState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        finite = require_finite(self, actions)
        utilities = self.estimated_utilities(state, finite)
        priority = finite.random_priority(streams, "ties", state.asked)
        everything = np.ones(priority.shape, dtype=bool)
        first = pick_largest(utilities, everything, priority)
        widths = self._widths(state, finite, first, pending)
        scores = utilities + self.widened(state.radius[:, None] * widths, finite, streams, state.asked)
        others = np.arange(finite.n_arms) != first[:, None]
        second = pick_largest(scores, others if state.different else everything, priority)
        return duels_between(finite, first, second), state._replace(asked=state.asked + 1)

    def _widths(self, state: NDBState, actions: FiniteActions, first: IntArray, pending: Sequence[Duels]) -> FloatArray:
        """(lanes, n_arms) w(x)."""
        lanes = np.arange(actions.lanes)
        phi = self._features(state, actions.features)
        matrix = state.ridge[:, None, None] * np.eye(phi.shape[2])
        past = contrasts_of(state.table, self._features(state, all_arms(state.table)))
        waiting = [np.diff(self._features(state, duels.features), axis=1) for duels in pending]
        z = np.concatenate([past, *waiting], axis=1)
        away = phi - phi[lanes, first][:, None]
        solved = np.linalg.solve(matrix + np.swapaxes(z, 1, 2) @ z, np.swapaxes(away, 1, 2))
        squares = np.einsum("lkp,lpk->lk", away, solved)
        return np.asarray(np.sqrt(state.ridge[:, None] * np.maximum(squares, 0.0)))

    def _features(self, state: NDBState, features: FloatArray) -> FloatArray:
        """(lanes, n, size) gradients as features of arms (lanes, n, dim)."""
        theta = state.centre if self.gradients == "initial" else state.theta
        slopes = gradients_of(self.reward, theta, features).slopes
        if self.gradients == "last-layer" and isinstance(self.reward, TwoLayerNetwork):
            return slopes[:, :, -self.reward.hidden :]  # the weights of the outputs stand last
        return slopes

    def learn(self, state: NDBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> NDBState:
        """Append the outcomes, and some steps of the fit from where it stood."""
        return self.learn_many(state, [(actions, duels, outcomes)])

    def learn_many(self, state: NDBState, rounds: Iterable[Round]) -> NDBState:
        """Append all outcomes, and as many steps as for one."""
        table = state.table
        for actions, duels, outcomes in rounds:
            table = table.append(require_finite(self, actions), duels, outcomes)
        theta = fit_reward(self.reward, table, state.theta, state.centre, state.ridge, steps=self.steps)
        return state._replace(table=table, theta=theta)

    def follows_sets(self) -> bool:
        """Asking only counts."""
        return False

    def estimated_utilities(self, state: NDBState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the network's output less its initial one, which is 0 in the paper."""
        now, before = (gradients_of(self.reward, theta, actions.features) for theta in (state.theta, state.centre))
        return now.values - before.values


@dataclass(frozen=True, kw_only=True)
class NDBUCB(_NeuralDuels):
    """NDB-UCB: the best arm by a network meets the most promising other. Needs the extra `jax`.

    Args:
        radius: nu, weight of the width; a sequence is one per lane.
        ridge: lambda; a sequence is one per lane.
        reward: the network h.
        gradients: whose gradients are the features: "initial" parameters (the paper), the "current" fit, or the "last-layer"
            of the current fit alone, for a `TwoLayerNetwork`.
        steps: Gauss-Newton steps per duel learnt, from the last fit.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
    """

    radius: PerLane = 3.0

    def widened(self, widths: FloatArray, actions: FiniteActions, streams: Streams, asked: int) -> FloatArray:  # noqa: ARG002
        """The upper end."""
        return widths


@dataclass(frozen=True, kw_only=True)
class NDBTS(_NeuralDuels):
    """NDB-TS: the best arm by a network meets the best of random draws. Needs the extra `jax`.

    Args:
        radius: nu, standard deviation of a draw in widths; a sequence is one per lane.
        ridge: lambda; a sequence is one per lane.
        reward: the network h.
        gradients: whose gradients are the features: "initial" parameters (the paper), the "current" fit, or the "last-layer"
            of the current fit alone, for a `TwoLayerNetwork`.
        steps: Gauss-Newton steps per duel learnt, from the last fit.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
    """

    def widened(self, widths: FloatArray, actions: FiniteActions, streams: Streams, asked: int) -> FloatArray:
        """A normal draw per arm, named by its content."""
        return np.asarray(widths * ndtri(actions.random_priority(streams, "thompson", asked)))
