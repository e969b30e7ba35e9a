"""COLDB: users who turn out to want the same share their votes.

    G          a graph of all users, complete at first
    C          the users whom a path of G connects with the one who asks
    theta_C    = argmin lambda_fit/2 |theta|^2 + sum over votes of C of log(1 + exp(-o_i <theta, z_i>))
    V_C        = lambda I + sum over votes of C of z_i z_i^T
    x          = argmax <theta_C, x>
    y          = argmax <theta_C, y - x> + radius |y - x|_{V_C^-1}

After the vote of user i, theta_i is fitted to the votes of i alone, and the edge between i and j is cut where

    |theta_i - theta_j| > edge (f(T_i) + f(T_j)),   f(T) = sqrt((1 + log(1 + T)) / (1 + T)),   T_i the votes of i.

With edge = 0 nobody shares with anybody, one policy per user; with a very large edge everybody with everybody, one for all.
Who asks is said by the action set (`duelist.actions.UserActions`) and travels in the duel's note.

Reference: Wang, Sun, Kong, Xie, Hu, Lui & Dai (2025), Online Clustering of Dueling Bandits; f as in Gentile, Li & Zappella
(2014), Online Clustering of Bandits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.actions.users import users_of
from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.kernels.rules.clusters import Shared, Users, drop_edges, fit_clusters, fit_users
from duelist.kernels.rules.pairs import Bounds, colstim_lanes
from duelist.policies.parts.confidence import (
    FittedPolicy,
    UCBSettings,
    beside_offsets,
    check_ucb,
    duel_counts,
    must_differ,
    new_pairs,
    offer_candidates,
)
from duelist.policies.parts.same_arm import require_finite
from duelist.typing import BoolArray, FloatArray, IntArray


@stored("coldb-state")
class COLDBState(NamedTuple):
    """What was learnt.

    Attributes:
        history: every duel, in a layer per user.
        thetas: (lanes, users, dim) the estimate of every user alone.
        grams: (lanes, users, dim, dim) sum of z z^T of every user.
        edges: (lanes, users, users) who is still taken to want the same.
        votes: (lanes, users) T.
        asked: pairs asked for so far; it names the next random numbers.
        settings: one number per lane.
        unconverged: (lanes,) fits that did not converge.
    """

    history: History
    thetas: FloatArray
    grams: FloatArray
    edges: BoolArray
    votes: FloatArray
    asked: int
    settings: UCBSettings
    unconverged: FloatArray

    @property
    def known(self) -> Users:
        """What kernels read."""
        return Users(self.thetas, self.grams, self.edges)


@dataclass(frozen=True, kw_only=True)
class COLDB(FittedPolicy[COLDBState]):
    """Learn for each user from the votes of all who seem to want the same.

    Args:
        users: how many users there may be, numbered from 0.
        radius: weight of the challenger's width; a sequence is one per lane.
        edge: how far apart two estimates must be to part their users; 0 gives every user a policy of their own, and a very
            large one is one policy for all. A sequence is one per lane.
        ridge: lambda, of V.
        same_arm: "allow" lets the best arm be its own challenger, "different" does not; "auto" allows it in simulation only.
        fit_ridge: lambda_fit, of the fits; None for that of V.

    Example:
        >>> import duelist
        >>> from duelist.environments import UserDuels
        >>> from duelist.policies import COLDB
        >>> env = UserDuels(dim=3, arms=8, users=8, clusters=2, theta_norm=3.0)
        >>> runs = [duelist.simulate(COLDB(users=8, edge=e), env, rounds=600, trials=4, seed=0) for e in (1.0, 1e9)]
        >>> bool(runs[0].final_regret.mean() < 0.8 * runs[1].final_regret.mean())
        True
    """

    users: int = 20
    radius: PerLane = 5.0
    edge: PerLane = 1.0
    ridge: PerLane = 2.0
    same_arm: str = "auto"
    fit_ridge: PerLane | None = None

    def __post_init__(self) -> None:
        whole_number("users", self.users, at_least=1)
        check_ucb(self.radius, self.ridge, self.same_arm, self.fit_ridge)
        check_per_lane("edge", self.edge, at_least=0.0)

    def start(self, problem: Problem, streams: Streams) -> COLDBState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt: everybody may want the same."""
        lanes, dim, users = problem.lanes, problem.dim, self.users
        ridge = per_lane("ridge", self.ridge, lanes)
        fit_ridge = ridge.copy() if self.fit_ridge is None else per_lane("fit_ridge", self.fit_ridge, lanes)
        per_lane("edge", self.edge, lanes)
        return COLDBState(
            history=History.start(lanes=lanes, dim=dim, layers=users),
            thetas=np.zeros((lanes, users, dim)),
            grams=np.zeros((lanes, users, dim, dim)),
            edges=np.ones((lanes, users, users), dtype=np.bool_),
            votes=np.zeros((lanes, users)),
            asked=0,
            settings=UCBSettings(ridge, per_lane("radius", self.radius, lanes), must_differ(self.same_arm, problem), fit_ridge),
            unconverged=np.zeros(lanes),
        )

    def choose(self, state: COLDBState, actions: ActionSet, streams: Streams) -> tuple[Duels, COLDBState]:
        """The best arm by the votes of the cluster, and its challenger."""
        return self.choose_with_pending(state, actions, streams, ())

    def choose_with_pending(
        self, state: COLDBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, COLDBState]:
        """`choose` with the widths that there will be when the pending duels are answered."""
        finite, users = require_finite(self, actions), self._users(users_of(actions))
        expected = state
        if pending:
            grams, lanes = state.grams.copy(), np.arange(finite.lanes)
            for duels in pending:
                grams[lanes, self._asked(duels, None)] += duels.contrast[:, :, None] * duels.contrast[:, None]
            expected = state._replace(grams=grams)
        candidates = offer_candidates(self, actions, state.thetas, streams, state.asked)
        bounds = beside_offsets(finite, self._believe(expected, users))
        first, second = new_pairs(finite.lanes)
        colstim_lanes(first, second, candidates, bounds, np.zeros_like(candidates.priority), state.settings.different)
        return duels_between(finite, first, second, users[:, None].astype(np.float64)), state._replace(asked=state.asked + 1)

    def learn(self, state: COLDBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> COLDBState:
        """Append the outcomes, fit the users who voted, and cut the edges that this refutes."""
        users, lanes = self._asked(duels, actions), np.arange(len(outcomes))
        history = state.history.append(actions, duels, outcomes, layers=users)
        contrast = duels.contrast
        grams, votes, thetas, edges = state.grams.copy(), state.votes.copy(), state.thetas.copy(), state.edges.copy()
        grams[lanes, users] += contrast[:, :, None] * contrast[:, None]
        votes[lanes, users] += contrast.any(axis=1)
        fit = Shared(thetas[lanes, users], np.empty((0, 0, 0)), state.unconverged.copy())
        fit_users(fit, users, duel_counts(history), state.settings.fit_ridge)
        thetas[lanes, users] = fit.theta
        doubt = np.reshape(self.edge, (-1, 1)) * np.sqrt((1.0 + np.log1p(votes)) / (1.0 + votes))
        drop_edges(edges, users, thetas, doubt)
        return state._replace(
            history=history, thetas=thetas, grams=grams, edges=edges, votes=votes, unconverged=fit.unconverged
        )

    def estimated_utilities(self, state: COLDBState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) by the votes of the cluster of the user whom the set names."""
        return actions.utilities(self._believe(state, self._users(users_of(actions))).theta)

    def clusters(self, state: COLDBState) -> IntArray:
        """(lanes, users) the lowest number of a user in the same cluster.

        Example:
            >>> policy = COLDB(users=3)
            >>> policy.clusters(policy.start(Problem(dim=2), Streams(0, [0]))).tolist()
            [[0, 0, 0]]
        """
        reach = state.edges | np.eye(self.users, dtype=np.bool_)
        for _ in range(self.users.bit_length()):
            reach = np.asarray(reach.astype(np.float64) @ reach.astype(np.float64) > 0.0)
        lowest: IntArray = reach.argmax(axis=2)
        return lowest

    def keeps_sets(self) -> bool:
        """The set says whose vote it was, where the policy did not ask."""
        return True

    def report(self, state: COLDBState) -> dict[str, FloatArray]:
        """How many clusters there are, and fits that did not converge."""
        first = self.clusters(state) == np.arange(self.users)
        return {"clusters": first.sum(axis=1).astype(np.float64), "unconverged_fits": state.unconverged}

    def _believe(self, state: COLDBState, users: IntArray) -> Bounds:
        lanes, _, dim = state.thetas.shape
        fit = Shared(np.zeros((lanes, dim)), np.zeros((lanes, dim, dim)), np.zeros(lanes))
        settings = state.settings
        fit_clusters(fit, users, state.known, duel_counts(state.history), settings.fit_ridge, settings.ridge)
        return Bounds(fit.theta, fit.whitener, settings.radius)

    def _asked(self, duels: Duels, actions: ActionSet | None) -> IntArray:
        """(lanes,) who was asked: as the note says, or the set of a duel that the policy did not ask for."""
        note = duels.note
        if note is None:
            return self._users(np.zeros(len(duels.first), dtype=np.int64) if actions is None else users_of(actions))
        if note.shape != (len(duels.first), 1) or (note != np.floor(note)).any():
            raise InvalidInputError(
                f"the note of a COLDB duel must be ({len(duels.first)}, 1) numbers of users; got {note!r}. Return the duels "
                f"that choose gave, or duels without a note."
            )
        return self._users(note[:, 0].astype(np.int64))

    def _users(self, users: IntArray) -> IntArray:
        if users.min() < 0 or users.max() >= self.users:
            raise InvalidInputError(
                f"users must be numbered from 0 to {self.users - 1}; got {users.tolist()}. Start COLDB with users= as many as "
                f"may come."
            )
        return users
