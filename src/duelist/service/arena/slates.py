"""Arenas that show slates: several candidates at once, answered with the best of them, with a ranking, or with a tie.

The decision log has a row for every slate as for every pair; its first and second item are the first two of the slate. What a
row cannot hold, the items and how they were ranked, is with the learner.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from duelist.core.errors import NonFiniteError
from duelist.history.duels import duels_between
from duelist.history.slates import slates_of
from duelist.live.beliefs import Standing
from duelist.live.lane import Limits, Proposal
from duelist.live.seen_pairs import SeenPairs
from duelist.live.slate import SlateLane
from duelist.policies.base import Policy
from duelist.policies.codec import policy_from_mapping
from duelist.policies.registry import plays_slates
from duelist.service.arena.decisions import Decision
from duelist.service.arena.items import ItemTable
from duelist.service.arena.learner import Learner, Offer, RequestedFeatures, ShownSlate
from duelist.service.arena.outcomes import SIGNS, Outcome
from duelist.service.arena.spec import ArenaSpec
from duelist.service.errors import ConflictError, RefusedError


class SlateLearner(Learner):
    """The lane of an arena that shows slates."""

    def __init__(self, spec: ArenaSpec, table: ItemTable, policy: Any) -> None:
        super().__init__(spec, table, policy)
        self.choices = policy.choices
        if self._may_repeat:
            raise RefusedError('people would be shown an item beside itself with same_arm="allow". Leave it out.')
        if spec.exploration:
            raise RefusedError(f"exploration is for pairs; got {spec.exploration:g} for an arena of slates. Leave it out.")

    def new_lane(self, *, dim: int, generation: int) -> Any:
        """A lane of slates that has learnt nothing yet."""
        policy: Any = self._policy
        return SlateLane(policy, self._problem(dim), seed=self._spec.seed, generation=generation)

    def offer(self, features: RequestedFeatures | None, members: tuple[int, ...] | None = None) -> Offer:
        """What an ask may choose from: at least as many items as are shown."""
        offer = super().offer(features, members)
        if len(offer.members) < self.choices:
            raise ConflictError(
                f"arena {self._spec.id!r} shows {self.choices} items at once and has {len(offer.members)} to show. "
                f"Add items first."
            )
        return offer

    def propose(self, offer: Offer, limits: Limits | None = None) -> Any:  # noqa: ARG002 - see `unseen`
        """The slate to show next. Changes nothing until `commit`."""
        try:
            return self.lane.propose(offer.actions)
        except NonFiniteError as error:
            raise self._cannot_choose(error) from error

    def unseen(self, offer: Offer, seen: SeenPairs, voter: str) -> Limits | None:  # noqa: ARG002
        """A voter may see a slate again: draws differ from ask to ask."""
        return None

    def slate_facts(self, proposal: Proposal[Any], offer: Offer, token: int) -> dict[str, Any]:
        """What an `asked` event says of a slate. The order on the screen is drawn, from the token."""
        items = [offer.members[row] for row in proposal.shown.rows[0]]
        order = np.random.default_rng(token).permutation(len(items)).tolist()
        return {
            "first": items[0],
            "second": items[1],
            "flipped": False,
            "probability": None,
            "explored": None,
            "drawn": [],
            "slate": items,
            "order": order,
        }

    def learn(self, decision: Decision) -> None:
        """Learn the answer to a slate, or an imported vote on a pair."""
        slate = self.slates.get(decision.number)
        numbers = (decision.first, decision.second) if slate is None else slate.items
        actions, members, _ = self._offer_of(decision)
        lane: Any = self.lane  # of slates
        rows = np.array([[members.index(number) for number in numbers]])
        if slate is None:
            lane.learn(actions, duels_between(actions, rows[:, 0], rows[:, 1]), np.array([SIGNS[decision.outcome]]))
            return
        answer: Any = list(self.rankings[decision.number]) if decision.outcome is Outcome.RANKED else "tie"
        lane.learn(actions, slates_of(actions, rows), [answer])


def make_learner(spec: ArenaSpec, table: ItemTable) -> Learner:
    """The learner of an arena, of slates where its policy shows them."""
    policy = policy_from_mapping(spec.policy)
    return SlateLearner(spec, table, policy) if plays_slates(policy) else Learner(spec, table, policy)


def places_of(learner: Learner, decision: Decision, numbers: Sequence[int], names: Sequence[str]) -> tuple[int, ...]:
    """The places, best first, that a ranking of item numbers means; `names` are what a refusal calls them."""
    slate = learner.slates.get(decision.number)
    shown = (decision.first, decision.second) if slate is None else slate.items
    if len(set(numbers)) != len(numbers) or not set(numbers) <= set(shown):
        raise RefusedError(
            f"an answer to ask {decision.id} names items that it shows, best first and each once; got {', '.join(names)}."
        )
    return tuple(shown.index(number) for number in numbers)


def own_standing(learner: Learner, undoable: Iterable[Decision]) -> Standing | None:
    """Where the policy would stand with the answers that can still be undone, if it draws its own posterior; None else."""
    if type(learner.lane.policy).posterior_draws is Policy.posterior_draws:
        return None
    trial = copy.copy(learner)  # states are values: what the copy learns, the learner does not
    trial.lane = copy.copy(learner.lane)
    for decision in undoable:
        trial.learn(decision)
    return Standing.of(trial.lane)


def slates_to_saved(learner: Learner) -> dict[str, Any]:
    """The slates and their rankings, as a value that `duelist.core.serialize` takes."""
    return {
        "shown": [[number, list(slate.items), list(slate.order)] for number, slate in learner.slates.items()],
        "rankings": [[number, list(places)] for number, places in learner.rankings.items()],
    }


def restore_slates(learner: Learner, saved: dict[str, Any]) -> None:
    """The inverse of `slates_to_saved`."""
    learner.slates = {number: ShownSlate(tuple(items), tuple(order)) for number, items, order in saved["shown"]}
    learner.rankings = {number: tuple(places) for number, places in saved["rankings"]}
