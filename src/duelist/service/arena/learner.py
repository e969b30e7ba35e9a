"""What an arena has learnt: its live lane, and the action sets that the lane chooses from and learns from."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.errors import NonFiniteError
from duelist.core.lanes import Problem
from duelist.history.duels import Duels, duels_between
from duelist.live.lane import FRESH_QUESTIONS, NOTHING_PENDING, Limits, LiveLane, Proposal
from duelist.live.seen_pairs import Codes, SeenPairs
from duelist.policies.base import Policy
from duelist.service.arena.decisions import Decision
from duelist.service.arena.items import ItemTable
from duelist.service.arena.outcomes import SIGNS
from duelist.service.arena.spec import ArenaSpec
from duelist.service.errors import ConflictError, RefusedError
from duelist.typing import FloatArray

RequestedFeatures = Mapping[str, Sequence[float]]
MOST_WAITING = 10_000
_KEPT_SUBSETS = 1024


class Offer(NamedTuple):
    """What an ask may choose from.

    Attributes:
        actions: a row per item.
        members: the number of the item of each row.
        codes: a number for what voters see of each; None for the items' own.
    """

    actions: FiniteActions
    members: tuple[int, ...]
    codes: Codes | None = None


class OpenAsk(NamedTuple):
    """An ask whose answer was not learnt yet: the numbers of its items, and the roster that it was chosen from."""

    first: int
    second: int
    roster: int


class ShownSlate(NamedTuple):
    """What an ask for a slate shows.

    Attributes:
        items: their numbers, in the order of the policy.
        order: places in `items`, as they stand on the screen.
    """

    items: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def screen(self) -> tuple[int, ...]:
        """Numbers of the items in the order of the screen."""
        return tuple(self.items[place] for place in self.order)


class RequestFeatures:
    """Arenas whose features come with each ask: features of the asks that wait, of the pairs answered, and means of items."""

    def __init__(self, dim: int, most_waiting: int = MOST_WAITING) -> None:
        self.dim, self.most_waiting = dim, most_waiting
        self.waiting: dict[int, tuple[FiniteActions, tuple[int, ...]]] = {}
        self.pairs: dict[int, FloatArray] = {}  # answered decision -> (2, dim) features of its first and second item
        self.sums: dict[int, FloatArray] = {}
        self.counts: dict[int, int] = {}
        self.members: dict[int, tuple[int, ...]] = {}  # decision -> the items that it was chosen from
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}  # asks offer the same items again and again: one tuple for all

    def offered(self, table: ItemTable, features: Mapping[str, Sequence[float]]) -> tuple[FiniteActions, tuple[int, ...]]:
        """The action set of these features, rows in the order of the items' numbers."""
        if len(features) < 2:
            raise RefusedError(f"an ask needs the features of at least two items; got {len(features)}.")
        by_number = {table.number_of(item_id): row for item_id, row in features.items()}
        members = tuple(sorted(by_number))
        for number in members:
            item = table.items[number]
            if number in table.retired:
                raise ConflictError(f"item {item.id!r} is retired. Leave it out, or bring it back first.")
            if len(by_number[number]) != self.dim:
                raise RefusedError(f"features of item {item.id!r} must have length {self.dim}; got {len(by_number[number])}.")
        return FiniteActions([by_number[number] for number in members]), members

    def keep(self, number: int, members: tuple[int, ...], actions: FiniteActions) -> None:
        """Keep what an ask offered; beyond `most_waiting` the oldest is dropped."""
        self.waiting[number] = (actions, members)
        self.members[number] = self._known.setdefault(members, members)
        if len(self.waiting) > self.most_waiting:
            del self.waiting[next(iter(self.waiting))]
        for item, row in zip(members, actions.features[0], strict=True):
            self.sums[item] = self.sums[item] + row if item in self.sums else row.copy()
            self.counts[item] = self.counts.get(item, 0) + 1

    def settle(self, decision: Decision) -> None:
        """Keep only the pair of an answered ask."""
        self.pairs[decision.number] = self.pair_of(decision)
        del self.waiting[decision.number]

    def pair_of(self, decision: Decision) -> FloatArray:
        """Features (2, dim) of the first and the second item; zeros where the ask was dropped."""
        if decision.number in self.pairs:
            return self.pairs[decision.number]
        if decision.number not in self.waiting:
            return np.zeros((2, self.dim))
        actions, members = self.waiting[decision.number]
        rows: FloatArray = actions.features[0]
        return rows[[members.index(decision.first), members.index(decision.second)]]

    def means(self, numbers: tuple[int, ...]) -> FloatArray:
        """Mean features (len(numbers), dim) with which each item was offered; zeros for an item that never was."""
        nothing = np.zeros(self.dim)
        return np.array([self.sums.get(n, nothing) / max(self.counts.get(n, 0), 1) for n in numbers]).reshape(-1, self.dim)

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        places = {members: place for place, members in enumerate(dict.fromkeys(self.members.values()))}
        return {
            "waiting": [[number, actions, list(members)] for number, (actions, members) in self.waiting.items()],
            "answered": np.array(list(self.pairs), dtype=np.int64),
            "pairs": np.array(list(self.pairs.values())).reshape(-1, 2, self.dim),
            "items": np.array(list(self.sums), dtype=np.int64),
            "sums": np.array(list(self.sums.values())).reshape(-1, self.dim),
            "counts": np.array([self.counts[item] for item in self.sums], dtype=np.int64),
            "members": [list(members) for members in places],
            "asked": np.array(list(self.members), dtype=np.int64),
            "members_of": np.array([places[members] for members in self.members.values()], dtype=np.int64),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """The inverse of `to_saved`."""
        self.waiting = {number: (actions, tuple(members)) for number, actions, members in saved["waiting"]}
        self.pairs = {int(n): pair for n, pair in zip(saved["answered"], saved["pairs"], strict=True)}
        self.sums = {int(n): row for n, row in zip(saved["items"], saved["sums"], strict=True)}
        self.counts = {int(n): int(c) for n, c in zip(saved["items"], saved["counts"], strict=True)}
        if "members" in saved:  # version 0.1.0 did not keep them
            known = [tuple(members) for members in saved["members"]]
            self._known = {members: members for members in known}
            places = zip(saved["asked"], saved["members_of"], strict=True)
            self.members = {int(n): known[place] for n, place in places}


class Learner:
    """The live lane of an arena, with the action set of every roster.

    Args:
        spec: settings of the arena.
        table: its items.
        policy: the one of the settings.

    Attributes:
        choices: how many items an ask shows.
        slates: what asks for slates show, by decision; empty where pairs are shown.
        rankings: places in the slate, best first, of the answers that rank.
        subsets: the items that asks were chosen from, by decision, where those were not all active ones.
    """

    choices = 2

    def __init__(self, spec: ArenaSpec, table: ItemTable, policy: Policy[Any]) -> None:
        self._spec, self._table, self._policy = spec, table, policy
        self.slates: dict[int, ShownSlate] = {}
        self.rankings: dict[int, tuple[int, ...]] = {}
        self.subsets: dict[int, tuple[int, ...]] = {}
        self.lane = self.new_lane(dim=spec.dim_for(0), generation=0)
        self.asks = 0  # in this generation of the lane
        self.learnt: list[int] = []  # decisions in the order in which the lane learnt them
        self.request_features = RequestFeatures(spec.dim) if spec.features == "request" else None
        # The arena shows a neighbour instead of the same item twice, which no policy includes in its probabilities.
        self._may_repeat = spec.policy.get("same_arm") == "allow"
        self._offers: dict[int, Offer] = {}
        self._subset_offers: dict[tuple[int, ...], Offer] = {}
        # The latest asks whose answers were not learnt yet, oldest first. Kept where the policy counts them.
        self.open: dict[int, OpenAsk] = {}

    def new_lane(self, *, dim: int, generation: int) -> LiveLane:
        """A lane that has learnt nothing yet."""
        return LiveLane(self._policy, self._problem(dim), seed=self._spec.seed, generation=generation)

    def _problem(self, dim: int) -> Problem:
        return Problem(dim=dim, live=True)

    def offer(self, features: RequestedFeatures | None, members: tuple[int, ...] | None = None) -> Offer:
        """What an ask may choose from: `members`, ascending, or all active items."""
        if self.request_features is None:
            if features is not None:
                raise RefusedError("this arena knows its items' features; an ask must not bring its own.")
            if members is not None:
                return self._subset(members)
            version = len(self._table.rosters) - 1
            return self._offers.get(version) or self._roster(version)
        if features is None:
            raise RefusedError("this arena needs the features of at least two items with every ask.")
        if members is not None and {self._table.number_of(item) for item in features} != set(members):
            raise RefusedError("an ask must bring the features of its candidates, and of no other items.")
        return Offer(*self.request_features.offered(self._table, features))

    def _roster(self, version: int) -> Offer:
        """The active items of that version."""
        members = self._table.rosters[version]
        if len(members) < 2:
            raise ConflictError(
                f"arena {self._spec.id!r} has {len(members)} active item(s); a duel needs two. Add items first."
            )
        offer = self._offers[version] = Offer(FiniteActions(self._table.features(members, self.lane.dim)), members)
        return offer

    def _subset(self, members: tuple[int, ...]) -> Offer:
        """These items alone."""
        offer = self._subset_offers.get(members)
        if offer is None:
            offer = self._subset_offers[members] = Offer(FiniteActions(self._table.features(members, self.lane.dim)), members)
            if len(self._subset_offers) > _KEPT_SUBSETS:
                del self._subset_offers[next(iter(self._subset_offers))]
        return offer

    def propose(self, offer: Offer, limits: Limits | None = None) -> Proposal[Duels]:
        """The pair to show next, within limits if there are any. Changes nothing until `commit`."""
        try:
            if self.open:
                proposal = self.lane.propose_distinct(offer.actions, self._pending(), limits)
            else:
                proposal = self.lane.propose_distinct(offer.actions, limits=limits)
        except NonFiniteError as error:
            raise self._cannot_choose(error) from error
        share = self._spec.exploration
        return self.lane.explore(proposal, share, self.asks) if share else proposal

    def _cannot_choose(self, error: NonFiniteError) -> ConflictError:
        return ConflictError(f"{self._spec.policy['kind']} cannot choose with these features and settings: {error}")

    def unseen(self, offer: Offer, seen: SeenPairs, voter: str) -> Limits | None:
        """What keeps a voter from seeing a pair of this offer again; None where there is nothing to avoid."""
        contents = self._contents(offer)
        refused = seen.refused(voter, contents)
        return Limits(contents, refused) if len(refused) else None

    def contents_of(self, offer: Offer, *items: int) -> list[int]:
        """What voters see of these items, each as a number."""
        contents = self._contents(offer)
        return [int(contents[offer.members.index(item)]) for item in items]

    def _contents(self, offer: Offer) -> Codes:
        """(n_arms,) an item is its number; where features or contents come with each ask, it is what they say."""
        if offer.codes is not None:
            return offer.codes
        if self.request_features is not None:
            return np.asarray(offer.actions.fingerprints[0])
        return np.array(offer.members, dtype=np.uint64)

    def commit(self, offer: Offer) -> None:
        """Move the lane along: a pair of this offer was shown.

        The event says which pair. It is computed again only for the random state that follows; a newer version may not be able
        to repeat an old choice.
        """
        with contextlib.suppress(NonFiniteError):
            pending = self._pending() if self.open else NOTHING_PENDING
            self.lane.commit(self.lane.propose(offer.actions, pending))
            self.asks += 1

    def keep_open(self, number: int, ask: OpenAsk) -> None:
        """Count an ask as open until its answer is learnt, or so many later asks came that it counts as lost."""
        self.open[number] = ask
        while self.open and next(iter(self.open)) <= number - FRESH_QUESTIONS:
            del self.open[next(iter(self.open))]

    def _pending(self) -> dict[int, Duels]:
        """The open asks as duels, in the features that answers would be learnt with."""
        pending = {}
        for number, ask in self.open.items():
            offer = self._offer_with(number, ask)
            if offer is not None:
                rows = np.array([offer.members.index(ask.first)]), np.array([offer.members.index(ask.second)])
                pending[number] = duels_between(offer.actions, *rows)
        return pending

    def _offer_with(self, number: int, ask: OpenAsk) -> Offer | None:
        """What an open ask was chosen from; None where it was dropped."""
        if self.request_features is None:
            if number in self.subsets:
                return self._subset(self.subsets[number])
            return self._offers.get(ask.roster) or self._roster(ask.roster)
        kept = self.request_features.waiting.get(number)
        return None if kept is None else Offer(*kept)

    def candidates(self, decision: Decision) -> tuple[int, ...]:
        """Numbers of the items that a decision was chosen from; none where that was not kept, as at version 0.1.0."""
        if self.request_features is None:
            return self.subsets.get(decision.number) or self._table.rosters[decision.roster]
        return self.request_features.members.get(decision.number, ())

    def probability(self, proposal: Proposal[Duels]) -> float | None:
        """Probability of the unordered pair: exact with exploration, else as the policy estimates it; None where unknown."""
        if proposal.exploration:
            return self.lane.propensity(proposal)
        if self._may_repeat or proposal.intervened:
            return None
        both = self.lane.policy.unordered_probability(proposal.state, proposal.actions, proposal.shown)[0]
        return None if math.isnan(both) else round(float(both), 9)

    def explored(self, proposal: Proposal[Duels], offer: Offer) -> float | None:
        """Share of the pair that is not among the two leading items; None where the policy has no estimate."""
        utilities = self.lane.policy.estimated_utilities(proposal.state, offer.actions)[0]
        if np.isnan(utilities).any():
            return None
        leading = np.argsort(-utilities, kind="stable")[:2]
        return 1.0 - 0.5 * ((proposal.shown.first[0] in leading) + (proposal.shown.second[0] in leading))

    def learn(self, decision: Decision) -> None:
        """Learn an answer."""
        first, second = decision.first, decision.second
        offer = None if decision.number in self.subsets else self._offers.get(decision.roster)
        if offer is None or first not in offer.members or second not in offer.members:
            offer = self._offer_of(decision)
        actions, members, _ = offer
        self.lane.learn_rows(actions, members.index(first), members.index(second), SIGNS[decision.outcome])

    def start_again(self, dim: int, learnt: Sequence[Decision]) -> None:
        """Learn everything again in a larger dimension: items without features have one dimension each."""
        self.lane = self.new_lane(dim=dim, generation=self.lane.generation + 1)
        self.asks = 0
        self._offers.clear()
        self._subset_offers.clear()
        for decision in learnt:
            self.learn(decision)

    def _offer_of(self, decision: Decision) -> Offer:
        """What a decision was chosen from; an imported vote may be about retired items, which then join in."""
        if self.request_features is not None:
            return self._requested(decision, self.request_features)
        if decision.number in self.subsets:
            return self._subset(self.subsets[decision.number])
        members = self._table.rosters[decision.roster]
        if decision.first in members and decision.second in members:
            return self._roster(decision.roster)
        members = tuple(sorted({*members, decision.first, decision.second}))
        return Offer(FiniteActions(self._table.features(members, self.lane.dim)), members)

    def _requested(self, decision: Decision, kept: RequestFeatures) -> Offer:
        """What an ask with features was chosen from; once it was answered, the pair is all that is kept of it."""
        if decision.number in kept.waiting:
            return Offer(*kept.waiting[decision.number])
        order = sorted((decision.first, decision.second))
        rows = kept.pair_of(decision)
        return Offer(FiniteActions(rows if order[0] == decision.first else rows[::-1].copy()), tuple(order))
