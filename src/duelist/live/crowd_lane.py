"""A live lane that learns the votes of every voter with a slope: what `Agent(reliability=True)` has.

A vote with slope r on the contrast z is a vote on the contrast r z: s(r <theta, z>) is its probability either way. So a policy
of linear utilities learns it as a vote on the pair with features times |r|, flipped where r is below 0, and needs to know
nothing of voters. A vote with slope 0 says nothing, and is not learnt. What is believed comes from the whole model of
`duelist.live.crowd`; the choice leaves the side out, for sides are drawn by a coin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.lanes import Problem
from duelist.history.duels import Duels, check_outcomes, duels_between
from duelist.live.crowd import Crowd
from duelist.live.lane import Ballot, LiveLane
from duelist.policies.base import Policy, Round
from duelist.typing import IntArray


class CrowdLane(LiveLane):
    """A lane of duels whose voters differ.

    Args:
        policy: hyper-parameters.
        problem: what the policy may know beforehand; one lane, live.
        seed: names all random numbers.
        generation: how often the lane was started again from nothing.
    """

    tells_voters_apart = True

    def __init__(self, policy: Policy[Any], problem: Problem, *, seed: int, generation: int = 0) -> None:
        _check_policy(policy)
        super().__init__(policy, problem, seed=seed, generation=generation, keep_votes=True)
        self.crowd = Crowd(self.dim, float(policy.believed_prior().precision))

    def fresh(self, policy: Policy[Any]) -> Self:
        """A lane like this one before the first question."""
        return type(self)(policy, self.problem, seed=self.seed, generation=self.generation)

    def learn(self, actions: ActionSet, shown: Duels, answers: IntArray, ballot: Ballot | None = None) -> None:
        """Learn who won, as much as the voter can be trusted."""
        check_outcomes(answers, 1)
        if ballot is None:
            self._learn_from(actions, shown, answers, None, 0)
        else:
            self._learn_from(actions, shown, answers, ballot.voter, 1 if self.left_is_first(ballot.number) else -1)

    def learn_many(self, rounds: Sequence[Round], voters: Sequence[str] = ()) -> None:
        """Learn votes that came together, in their order. On which side their candidates stood is not known."""
        before = self.state, self.votes, self.crowd.to_saved()
        try:
            for (actions, shown, answers), voter in zip(rounds, voters or [""] * len(rounds), strict=True):
                self._learn_from(actions, shown, answers, voter, 0)
        except BaseException:
            self.state, self.votes = before[:2]
            self.crowd.restore(before[2])
            raise

    def voters_to_saved(self) -> dict[str, Any]:
        """The voters and their votes."""
        return self.crowd.to_saved()

    def restore_voters(self, saved: Any) -> None:
        """The inverse of `voters_to_saved`."""
        if saved is None:
            raise SavedStateError("the saved agent has no voters, and reliability=True needs them. Load it without.")
        self.crowd.restore(saved)

    def _learn_from(self, actions: ActionSet, shown: Duels, answers: IntArray, voter: str | None, side: int) -> None:
        slope = self.crowd.slope_of(voter)
        if slope == 1.0:
            super().learn(actions, shown, answers)
        elif slope != 0.0:
            first, second = abs(slope) * shown.features[0]
            # In one order, whichever way round they were shown, so that votes on one pair are counted together.
            rows = (0, 1) if first.tobytes() <= second.tobytes() else (1, 0)
            pair = FiniteActions(np.array([first, second])[[*rows]])
            duels = duels_between(pair, np.array(rows[:1]), np.array(rows[1:]))
            super().learn(pair, duels, answers if slope > 0.0 else -answers)
        self.crowd.add(shown.contrast[0], int(answers[0]), voter, side)


def _check_policy(policy: Policy[Any]) -> None:
    name = type(policy).__name__
    if not policy.linear_utilities:
        raise InvalidInputError(
            f"reliability=True needs utilities that are linear in the features, and those of {name} are not."
        )
    if policy.forgetting() != 1.0:
        raise InvalidInputError(f"reliability=True counts all votes alike, and {name} forgets old ones. Use discount=1.")
    prior = policy.believed_prior()
    if not (prior.precision > 0.0 and math.isinf(prior.radius)):
        raise InvalidInputError(f"reliability=True needs a normal prior, such as Gaussian(); {name} has {prior!r}.")
