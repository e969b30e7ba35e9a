"""What rules for K arms without features share: places of arms, wins of every pair, and the way of a round.

A rule is made of four methods: `begin` and `widen` make and widen what it keeps beside the counts, `pick` chooses two arms by
their places, and `update` takes in a duel. The base class matches arms to places, counts wins, and keeps arms that are not
offered out of the choice. A tie is half a win each way; an arm that meets itself teaches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.kernels.philox import arm_uniforms
from duelist.kernels.rules.matrix import PlaceOrder, best_places, draw_places, first_places
from duelist.policies.base import Policy
from duelist.policies.parts.known_arms import KnownArms
from duelist.policies.parts.pair_table import PairTable
from duelist.policies.parts.same_arm import BOUNDS, SameArm, check_same_arm, require_finite, resolve_same_arm
from duelist.typing import BoolArray, FloatArray, IntArray, Keys

WINS, DUELS = 0, 1  # layers of the counts
_NO_NOTE = -1.0


@stored("matrix-state")
class MatrixState(NamedTuple):
    """What a rule for K arms has learnt.

    Attributes:
        arms: which arms there are.
        counts: wins and duels of every ordered pair, and what the rule keeps of it beside; None where it needs no pairs.
        memory: what the rule keeps beside the counts: a NamedTuple of its own.
        asked: pairs asked for so far; it names the next random numbers.
        learnt: duels learnt so far; t of a rule is one more.
        different: whether the two arms must differ.
    """

    arms: KnownArms
    counts: PairTable | None
    memory: Any
    asked: int
    learnt: int
    different: bool


class Field:
    """What a rule chooses from, by places.

    Attributes:
        wins: (lanes, K, K) how often the row's arm beat the column's; empty where the rule needs no pairs.
        duels: (lanes, K, K) how often the two met.
        offered: (lanes, K) the arms that may be chosen.
        everyone: whether all known arms are offered: what a rule keeps of all of them is then what it needs.
        prints: (lanes, K) numbers for the content of arms.
        order: (lanes, K) places in an order of contents, which does not depend on rows.
        rounds: t, duels learnt so far and one more.
        asked: names random numbers.
        streams: of the lanes.
        lanes: (lanes,) 0, 1, ...
    """

    def __init__(self, state: MatrixState, streams: Streams) -> None:
        self._counts = state.counts
        self.prints, self.order, self.everyone = state.arms.prints, state.arms.order, state.arms.everyone
        self.offered: BoolArray = state.arms.offered
        self.rounds, self.asked, self.streams = state.learnt + 1, state.asked, streams
        self.lanes = np.arange(len(streams))

    @property
    def cells(self) -> FloatArray:
        """(layers, lanes, K, K) wins, duels, and what the rule keeps beside them."""
        assert self._counts is not None
        return self._counts.cells

    @property
    def room(self) -> FloatArray:
        """The cells for kernels; see `PairTable.room`."""
        assert self._counts is not None
        return self._counts.room

    @property
    def wins(self) -> FloatArray:
        """(lanes, K, K) how often the row's arm beat the column's."""
        return np.asarray(self.cells[WINS])

    @property
    def duels(self) -> FloatArray:
        """(lanes, K, K) how often the two met."""
        return np.asarray(self.cells[DUELS])

    def rows_of(self, arms: IntArray) -> FloatArray:
        """(layers, lanes, K) the rows of the arms (lanes,)."""
        return self.cells[:, self.lanes, arms]

    def draw(self, mask: BoolArray, name: str) -> IntArray:
        """(lanes,) one place of the mask (lanes, K), at random; 0 where the mask is empty.

        One random number per lane says which of the mask's arms it is, in an order of their contents: a number of its own for
        every arm would cost more than all else in a round.
        """
        places = np.empty(len(self.lanes), dtype=np.int64)
        draw_places(places, mask, self._ties(name))
        return places

    def first_of(self, mask: BoolArray) -> IntArray:
        """(lanes,) the place of the mask (lanes, K) that is first in the order of contents."""
        places = np.empty(len(self.lanes), dtype=np.int64)
        first_places(places, mask, self.order)
        return places

    def best(self, scores: FloatArray, name: str) -> IntArray:
        """(lanes,) the offered place with the largest score (lanes, K), one at random among equals."""
        if not self.everyone:
            scores = np.where(self.offered, scores, -np.inf)
        places = np.empty(len(self.lanes), dtype=np.int64)
        best_places(places, scores, self._ties(name))
        return places

    def _ties(self, name: str) -> PlaceOrder:
        return PlaceOrder(self.order, self.streams.keys(name), self.asked)

    def uniforms(self, name: str, prints: Keys | None = None, lanes: IntArray | None = None) -> FloatArray:
        """One uniform number per content: of the arms, or of prints (n, m) in n lanes."""
        prints = self.prints if prints is None else prints
        keys = self.streams.keys(name)
        numbers = np.empty(prints.shape)
        arm_uniforms(numbers, prints, keys if lanes is None else keys[lanes], self.asked)
        return numbers


class Update(NamedTuple):
    """A duel that was learnt, by places.

    Attributes:
        first: (lanes,) place of the first arm.
        second: (lanes,) of the second.
        won: (lanes,) 1 where the first won, 0 where it lost, 1/2 for a tie.
        counts: (lanes,) False where an arm met itself.
        note: (lanes, n) what `pick` wanted back; None where the duel was not its own.
        before: (layers, 2, lanes) the cells of (first, second) and of (second, first); empty without pairs.
        after: the same after the duel.
    """

    first: IntArray
    second: IntArray
    won: FloatArray
    counts: BoolArray
    note: FloatArray | None
    before: FloatArray
    after: FloatArray


class Choice(NamedTuple):
    """What a rule picked: places (lanes,) of both arms, what it keeps, and what it wants back with the answer."""

    first: IntArray
    second: IntArray
    memory: Any
    note: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class MatrixPolicy(Policy[MatrixState]):
    """A rule for K arms that reads no features.

    Args:
        same_arm: whether an arm may meet itself: "allow", "different", or "auto": allow in simulation and not live.
    """

    linear_utilities: ClassVar[bool] = False
    blank: ClassVar[tuple[float, ...]] = (0.0, 0.0)  # wins, duels and further layers of a pair that never met

    same_arm: str = "auto"

    def __post_init__(self) -> None:
        check_same_arm(self.same_arm, BOUNDS)

    def begin(self, problem: Problem) -> Any:
        """What the rule keeps beside the counts, before any arm is known."""
        raise NotImplementedError

    def widen(self, state: MatrixState, new: BoolArray) -> Any:
        """What the rule keeps, with room for the arms that were just added: new (lanes, K)."""
        raise NotImplementedError

    def pick(self, memory: Any, field: Field) -> Choice:
        """Two of the offered arms."""
        raise NotImplementedError

    def update(self, state: MatrixState, duel: Update) -> Any:
        """What the rule keeps after a duel. The counts of the state have it already."""
        raise NotImplementedError

    def further_cells(self, duel: Update) -> FloatArray:
        """The further layers (n, 2, lanes) of the pair; `duel.after` has its wins and duels already."""
        return duel.after[2:]

    def start(self, problem: Problem, streams: Streams) -> MatrixState:  # noqa: ARG002 - a policy's signature
        """No arm known, nothing learnt."""
        different = resolve_same_arm(self.same_arm, BOUNDS, live=problem.live) is SameArm.DIFFERENT
        counts = PairTable.start(problem.lanes, *self.blank) if self.blank else None
        return MatrixState(KnownArms.start(problem.lanes), counts, self.begin(problem), 0, 0, different)

    def choose(self, state: MatrixState, actions: ActionSet, streams: Streams) -> tuple[Duels, MatrixState]:
        """The pair of the rule."""
        finite = require_finite(self, actions)
        state = self._know(state, state.arms.meet(finite))
        field = Field(state, streams)
        choice = self.pick(state.memory, field)
        rows, lanes = state.arms.rows, field.lanes
        second = self._challenger(state, field, choice) if state.different else choice.second
        duels = duels_between(finite, rows[lanes, choice.first], rows[lanes, second], choice.note)
        return duels, state._replace(memory=choice.memory, asked=state.asked + 1)

    def choose_with_pending(
        self, state: MatrixState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, MatrixState]:
        """`choose`, as if the duels that wait had ended in ties: so they count as asked, and speak for nobody."""
        _, after = self.choose(state, actions, streams)
        expected = after._replace(counts=None if after.counts is None else after.counts.fork())
        undecided = np.zeros(actions.lanes, dtype=np.int64)
        for duels in pending:
            known, places = expected.arms.place(FiniteActions(duels.features).fingerprints)
            expected = self._take(self._know(expected, known), places.T, undecided, duels.note)
        duels, _ = self.choose(expected._replace(asked=state.asked), actions, streams)
        return duels, after

    def learn(self, state: MatrixState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> MatrixState:
        """One more duel in every lane."""
        known, places = state.arms.find(actions, duels)
        return self._take(self._know(state, known), places, outcomes, duels.note)

    def estimated_utilities(self, state: MatrixState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) share of the other arms that each is expected to beat: the Copeland score, softened by doubt.

        mean over j of Phi((w_ij - w_ji) / sqrt(n_ij + 1))
        """
        state = self._know(state, state.arms.meet(actions))
        assert state.counts is not None
        wins, duels = state.counts.cells[:2]
        chance = ndtr((2.0 * wins - duels) / np.sqrt(duels + 1.0))
        others = state.arms.offered[:, None] & ~np.eye(state.arms.size, dtype=bool)
        # Sorted, so that the sum does not depend on the order of arms.
        scores = np.sort(np.where(others, chance, 0.0), axis=2).sum(axis=2) / np.maximum(others.sum(axis=2), 1)
        return np.take_along_axis(scores, state.arms.places, axis=1)

    def keeps_sets(self) -> bool:
        """The features of the pair say which arms met."""
        return False

    def _know(self, state: MatrixState, arms: KnownArms) -> MatrixState:
        if arms is state.arms:
            return state
        wider, before = state._replace(arms=arms), state.arms.number[:, None]
        places = np.arange(arms.size)
        new = (places >= before) & (places < arms.number[:, None])
        if not new.any():
            return wider
        if state.counts is not None and arms.size > state.arms.size:
            wider = wider._replace(counts=state.counts.grow(arms.size))
        return wider._replace(memory=self.widen(wider, new))

    def _take(self, state: MatrixState, places: IntArray, outcomes: IntArray, note: FloatArray | None) -> MatrixState:
        first, second = places
        counts = first != second
        won = 0.5 + 0.5 * outcomes.astype(np.float64)
        table = state.counts
        before = np.empty((0, 2, len(first))) if table is None else table.read(first, second)
        duel = Update(first, second, won, counts, note, before, before.copy())
        if table is not None:
            duel.after[WINS, 0] += won * counts
            duel.after[WINS, 1] += (1.0 - won) * counts
            duel.after[DUELS] += counts
            duel.after[2:] = self.further_cells(duel)
            table = table.write(first, second, duel.after)
        state = state._replace(counts=table, learnt=state.learnt + 1)
        return state._replace(memory=self.update(state, duel))

    def _challenger(self, state: MatrixState, field: Field, choice: Choice) -> IntArray:
        """The second arms; where an arm would meet itself, the one most likely to beat it by the mean of a Beta posterior."""
        equal = choice.first == choice.second
        if not equal.any():
            return choice.second
        if state.counts is None:
            scores = self.strengths(state)
        else:
            wins, duels = field.rows_of(choice.first)[:2]
            scores = (duels - wins + 1.0) / (duels + 2.0)
        others = field.offered.copy()
        others[field.lanes, choice.first] = False
        # With one arm on offer, twice over in its rows, there is no other.
        there = others.any(axis=1)
        best = field.best(np.where(others, scores, -np.inf), "challenger")
        return np.where(equal & there, best, choice.second)

    def strengths(self, state: MatrixState) -> FloatArray:
        """(lanes, K) an estimate of how good each arm is, of a rule without counts of pairs."""
        raise NotImplementedError


def noted_arm(duel: Update) -> IntArray:
    """(lanes,) the arm of the pair that a rule noted when it picked it; -1 where the duel was not its own.

    A note is the place of the arm in the state that chose. One that was built again without some votes may have the arm in
    another place; it is then the first of the two, which is the order in which rules pick.
    """
    if duel.note is None:
        return np.full(len(duel.first), int(_NO_NOTE))
    note = duel.note[:, 0]
    return np.where(note < 0.0, int(_NO_NOTE), np.where(note == duel.second, duel.second, duel.first))
