"""LDB-DF: linear duels whose answers come late or never, each answer weighed by how likely it was to come.

    theta_hat = argmin lambda_fit/2 |theta|^2 + sum over answers within the window of log(1 + exp(-o_i <theta, z_i>)) / tau
    V         = lambda I + sum over all pairs asked of z_i z_i^T,   z_i = x_i - y_i
    x         = argmax <theta_hat, x>
    y         = argmax <theta_hat, y - x> + radius |y - x|_{V^-1}

tau is the probability that an answer comes within the window. An answer that came stands for 1 / tau that were asked for, so
the loss has the mean of the loss of all answers.
V knows every pair from the moment of the question, so questions asked while answers are on their way differ.

Reference: Wang, Lu, Mao, Kong, Hong, Wang & Dai (2026), Linear and Neural Dueling Bandits with Delayed Feedback.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.kernels.rules.pairs import Bounds, Candidates, Fit, Ridges, colstim_lanes, extend_widths, refit_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import FitInfo, UCBPolicy, UCBState, duel_counts
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class LDBDF(UCBPolicy):
    """Play the best arm by the estimate against its challenger; weigh answers by how likely they were to come.

    Args:
        radius: weight of the challenger's width; a sequence is one per lane.
        arrival: tau, the probability that an answer comes within the window; a sequence is one per lane. 1 where all come.
        window: answers that come after more than so many further questions are left out, as tau says nothing of them; None
            takes every answer.
        ridge: lambda, of V.
        same_arm: "allow" lets the best arm be its own challenger, "different" does not; "auto" allows it in simulation only.
        fit_ridge: lambda_fit, of the fit; None for that of V.
        warmup: rounds of random pairs first; "theory" for d K.

    Example:
        >>> import duelist
        >>> from duelist.environments import Delayed
        >>> from duelist.policies import LDBDF
        >>> env = Delayed(base=duelist.LinearDuels(dim=5, arms=8), delay=10)
        >>> run = duelist.simulate(LDBDF(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 5.0
    arrival: PerLane = 1.0
    window: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("arrival", self.arrival, above=0.0)
        if np.max(self.arrival) > 1.0:
            raise InvalidInputError(f"arrival must be a probability above 0 and at most 1; got {self.arrival!r}.")
        if self.window is not None:
            whole_number("window", self.window)

    def start(self, problem: Problem, streams: Streams) -> UCBState:
        """Nothing asked, nothing learnt: theta = 0 and V = lambda I."""
        per_lane("arrival", self.arrival, problem.lanes)
        return super().start(problem, streams)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The best arm and its challenger. V takes the pair in; its note says which question it was."""
        duels, after = self.choose_by(_challenge, state, actions, streams)
        widths = Fit(state.theta, state.whitener.copy(), state.gram.copy(), state.info.unconverged)
        extend_widths(widths, np.ascontiguousarray(duels.contrast))
        noted = duels._replace(note=np.full((actions.lanes, 1), float(state.asked)))
        return noted, after._replace(whitener=widths.whitener, gram=widths.gram)

    def choose_with_pending(
        self,
        state: UCBState,
        actions: ActionSet,
        streams: Streams,
        pending: Sequence[Duels],  # noqa: ARG002 - a policy's signature
    ) -> tuple[Duels, UCBState]:
        """`choose`: what waits for an answer is in V already."""
        return self.choose(state, actions, streams)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the answers that came within the window and fit again. A pair that was not its own question joins V now."""
        weights = self._weights(state, duels.note)
        if duels.note is not None and not weights.any():
            return state
        history = state.history.append(actions, duels, outcomes, weights=weights)
        fit = Fit(state.theta.copy(), state.whitener.copy(), state.gram.copy(), state.info.unconverged.copy())
        ridges = Ridges(state.settings.fit_ridge, state.settings.ridge)
        refit_lanes(fit, np.ascontiguousarray(duels.contrast), duel_counts(history), ridges, False)
        learnt = state._replace(history=history, theta=fit.theta, info=FitInfo(fit.unconverged))
        return learnt if duels.note is not None else learnt._replace(whitener=fit.whitener, gram=fit.gram)

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """One by one: an answer is late or not by itself."""
        for actions, duels, outcomes in rounds:
            state = self.learn(state, actions, duels, outcomes)
        return state

    def follows_sets(self) -> bool:
        """A pair that was asked is in V, whether it is answered or not."""
        return True

    def _weights(self, state: UCBState, note: FloatArray | None) -> FloatArray:
        """(lanes,) 1 / tau, or 0 for an answer that came too late."""
        weights = 1.0 / per_lane("arrival", self.arrival, len(state.theta))
        if note is None:
            return weights
        if note.shape != (len(weights), 1) or not ((note >= 0.0) & (note < state.asked)).all():
            raise InvalidInputError(
                f"the note of an LDBDF duel must be ({len(weights)}, 1) numbers of questions below {state.asked}; got "
                f"{note!r}. Return the duels that choose gave, or duels without a note."
            )
        if self.window is None:
            return weights
        return np.where(state.asked - 1 - note[:, 0] <= self.window, weights, 0.0)


def _challenge(first: IntArray, second: IntArray, candidates: Candidates, bounds: Bounds, different: bool) -> None:
    """CoLSTIM's pair without its noise: the leader is the best by the estimate."""
    colstim_lanes(first, second, candidates, bounds, np.zeros_like(candidates.priority), different)
