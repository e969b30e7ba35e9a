"""What a policy is: frozen hyper-parameters, and three verbs over a separate state.

`start` makes the state of a block of lanes; `choose` picks a pair in every lane; `learn` takes who won. A policy never
sees the environment, the clock, the disk or a global generator: the same state, action set and streams give the same pair.

Write a policy as a frozen, keyword-only dataclass that inherits from `Policy[ItsState]`. The three verbs are its own; the other
methods say more about it, and have answers that mean "unknown".

A state is a NamedTuple in three parts, of which a simple policy needs only the first:

    its own fields   what was learnt, and how many pairs were asked for: all that the next step reads
    `settings`       hyper-parameters as `start` resolved them, one number per lane: never changed afterwards
    `info`           numbers for people, such as fits that did not converge: no step reads them, only `report`

Every field is an array, a number, text, None, or a class with a stored name (`duelist.core.stored_names`), so that a state can
be saved. A policy need not check outcomes: `simulate` and the live lane do so before they call `learn`.

A `SlatePolicy` shows slates of several candidates instead of pairs and learns from rankings. It is a policy with the same
verbs, and is told by its `choices`, which are more than two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.slates import Answer, Slates
from duelist.posteriors.priors import Gaussian, Prior
from duelist.typing import FloatArray, IntArray

State = TypeVar("State")
Round = tuple[ActionSet, Duels, IntArray]  # what `learn` takes beside the state
# A question without an answer counts as one that is on its way until so many more were asked; then it counts as lost. Without a
# limit, questions that nobody ever answers would pass for knowledge.
FRESH_QUESTIONS = 64


class Policy(Protocol[State]):
    """A rule for choosing the next pair. States are values: `choose` and `learn` return new ones.

    Attributes:
        extra: the extra of duelist that the policy needs to play, such as "jax"; empty for none.
        linear_utilities: whether it takes utilities to be linear in the features.
        knows_arms_by_content: whether permuting the arms permutes the choice and changes nothing else, because ties and random
            numbers go by what an arm is and not by its row.
    """

    extra: ClassVar[str] = ""
    linear_utilities: ClassVar[bool] = True
    knows_arms_by_content: ClassVar[bool] = True

    def start(self, problem: Problem, streams: Streams) -> State:
        """The state before the first round, one lane per stream."""
        ...

    def choose(self, state: State, actions: ActionSet, streams: Streams) -> tuple[Duels, State]:
        """A pair for every lane, and the state after asking. Asking again without learning is allowed."""
        ...

    def learn(self, state: State, actions: ActionSet, duels: Duels, outcomes: IntArray) -> State:
        """The state after learning outcomes (lanes,): +1 where the first candidate won, -1 where it lost, 0 where they tied."""
        ...

    def choose_with_pending(
        self,
        state: State,
        actions: ActionSet,
        streams: Streams,
        pending: Sequence[Duels],  # noqa: ARG002 - for policies that draw at random, people get different pairs anyway
    ) -> tuple[Duels, State]:
        """`choose`, knowing which duels wait for an answer: at least one, oldest first.

        The live lane calls it where something is pending. The state that it returns is that after asking, and knows nothing of
        pending duels: who answers and when is not known, so they are counted anew for every pair. A policy that would choose
        the same pair again until it learns something must override this; `duelist.policies.parts.open_duels` has what it needs.
        """
        return self.choose(state, actions, streams)

    def learn_many(self, state: State, rounds: Iterable[Round]) -> State:
        """The state after learning votes that came together: one by one, unless the policy can save itself fits in between."""
        for actions, duels, outcomes in rounds:
            state = self.learn(state, actions, duels, outcomes)
        return state

    def report(self, state: State) -> dict[str, FloatArray]:  # noqa: ARG002 - what a policy without numbers answers
        """Numbers about how the policy is doing, for people: each (lanes,)."""
        return {}

    def pair_probability(self, state: State, actions: ActionSet, duels: Duels) -> FloatArray:  # noqa: ARG002
        """(lanes,) how likely these pairs were, in this order, in the state after `choose`; NaN if unknown."""
        return np.full(len(duels.first), np.nan)

    def unordered_probability(self, state: State, actions: ActionSet, duels: Duels) -> FloatArray:
        """(lanes,) how likely these pairs were in either order; NaN if unknown. An arm beside itself has one order."""
        turned = Duels(duels.second, duels.first, duels.features[:, ::-1], duels.note)
        other = np.where(duels.first == duels.second, 0.0, self.pair_probability(state, actions, turned))
        return np.asarray(self.pair_probability(state, actions, duels) + other)

    def estimated_utilities(self, state: State, actions: FiniteActions) -> FloatArray:  # noqa: ARG002
        """(lanes, n_arms) the policy's point estimate of every arm's utility; NaN where it has none."""
        return np.full((actions.lanes, actions.n_arms), np.nan)

    def recommend(self, state: State, actions: FiniteActions) -> IntArray:
        """(lanes,) row of the arm to play from now on, if nothing more were learnt; -1 where the policy has no estimate."""
        utilities = self.estimated_utilities(state, actions)
        return np.where(np.isnan(utilities).any(axis=1), -1, np.argmax(utilities, axis=1))

    def drawn_utilities(self, state: State, features: FloatArray) -> FloatArray:  # noqa: ARG002
        """(lanes, n_draws, n) utilities of features (lanes, n, dim) under the draws behind the last pair; none by default."""
        return np.empty((features.shape[0], 0, features.shape[1]))

    def weighs_offsets(self) -> bool:
        """Whether `choose` plays by the utilities of `OffsetActions`: those of the features plus what is added to them."""
        return False

    def believed_prior(self) -> Prior:
        """The prior over theta that the policy holds, or a standard normal one where it has none of its own."""
        return Gaussian()

    def running_belief(self, state: State) -> tuple[FloatArray, FloatArray] | None:  # noqa: ARG002
        """Mean (lanes, dim) and whitener (lanes, dim, dim) of the Gaussian that is all the policy keeps of its votes.

        None where it keeps more. With one, memory does not grow with the votes, and what is believed is read from it.
        """
        return None

    def posterior_draws(self, state: State, streams: Streams, n_draws: int) -> FloatArray | None:  # noqa: ARG002
        """(lanes, n_draws, dim) draws of theta given all answers, from the prior; None where they follow from who won in pairs.

        A policy with another model of answers than Bradley-Terry overrides this, and what is believed is read from it.
        """
        return None

    def keeps_sets(self) -> bool:
        """Whether `learn` reads the arms of the action set. If not, the pair and the set's digest are enough to learn from."""
        return True

    def follows_sets(self) -> bool:
        """Whether the state after `choose` depends on the arms that were offered, and not only on their being offered."""
        return True

    def forgetting(self) -> float:
        """What every vote multiplies the weight of the votes before it by; 1 where nothing is forgotten."""
        return 1.0


def check_choice(policy: object, chosen: Any, actions: ActionSet) -> tuple[Duels, Any]:
    """Return what `choose` returned, a pair per lane and a state, or say what it must return."""
    where = f"{type(policy).__name__}.choose"
    if not isinstance(chosen, tuple) or isinstance(chosen, Duels) or len(chosen) != 2 or not isinstance(chosen[0], Duels):
        raise InvalidInputError(
            f"{where} must return (duels, state), with duels from duelist.history.duels_between(actions, first, second); "
            f"got {_described(chosen)}. For rows (i, j) of one run at a time, inherit from duelist.policies.SingleRun."
        )
    duels: Duels = chosen[0]
    lanes, dim = actions.lanes, actions.dim
    if np.shape(duels.features) != (lanes, 2, dim):
        raise InvalidInputError(
            f"{where} must return features of shape ({lanes}, 2, {dim}), both candidates of every lane; got "
            f"{np.shape(duels.features)}. Make the pair with duelist.history.duels_between(actions, first, second)."
        )
    least, most = (0, actions.n_arms - 1) if isinstance(actions, FiniteActions) else (-1, -1)
    for name, rows in (("first", duels.first), ("second", duels.second)):
        whole = isinstance(rows, np.ndarray) and rows.dtype.kind in "iu" and rows.shape == (lanes,)
        if not whole or rows.min() < least or rows.max() > most:
            wanted = f"row numbers from 0 to {most}" if most >= 0 else "all -1, as points of a continuous set have no rows"
            raise InvalidInputError(
                f"{where} must return whole numbers `{name}` of shape ({lanes},), {wanted}; got {_described(rows)}."
            )
    return duels, chosen[1]


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape} with values {value.ravel()[:4].tolist()}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return f"a tuple of {', '.join(type(part).__name__ for part in value) or 'nothing'}"
    return f"{value!r:.60} of type {type(value).__name__}"


class SlatePolicy(Policy[State], Protocol[State]):
    """A rule for choosing the next slate of `choices` candidates, more than two. States are values, as those of a `Policy`."""

    @property
    def choices(self) -> int:
        """Candidates per slate."""
        ...

    def choose(self, state: State, actions: ActionSet, streams: Streams) -> tuple[Any, State]:
        """`Slates`, one per lane, and the state after asking. Asking again without learning is allowed."""
        ...

    def learn(self, state: State, actions: ActionSet, shown: Slates | Duels, answers: Sequence[Answer] | IntArray) -> State:
        """The state after learning one answer per lane: places in the slate, best first, or "tie"."""
        ...
