"""Beat the Mean: arms that lose to the average of those that are left are dropped, one after the other.

Each arm b of those that are left, W, has its share of wins P_b = w_b / n_b against random arms of W. In a round

    first    = the arm of W with the fewest duels n_b
    second   = any other arm of W; only n and w of the first arm count the duel

and when the worst and the best share are apart, min P + c <= max P - c with c = width gamma^2 sqrt(log(2 T K) / min n), the
worst arm leaves W and all duels against it are forgotten. With one arm left, that is played against itself.

Reference: Yue & Joachims (2011), Beat the Mean Bandit, with the confidence interval of its online setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import Choice, Field, MatrixPolicy, MatrixState, Update, noted_arm
from duelist.typing import BoolArray, FloatArray

_FIRST_WINS, _FIRST_DUELS = 2, 3  # layers: duels in which the row's arm came first
UNKNOWN_HORIZON = 1_000_000


@stored("beat-the-mean-memory")
class BeatTheMeanMemory(NamedTuple):
    """W (lanes, K), and w and n (lanes, K) of every arm against the arms of W; T."""

    active: BoolArray
    won: FloatArray
    met: FloatArray
    horizon: int


@dataclass(frozen=True, kw_only=True)
class BeatTheMean(MatrixPolicy):
    """Drop the arm that loses most against the average, until one is left. It explores first, and then commits.

    Args:
        gamma: how far the preferences may be from a total order; 1 for none, as where utilities decide.
        width: factor of the confidence interval: 3 in the paper; 1 is what later papers play it with.
        horizon: T; None takes the simulation's, and a million where it is unknown.
        same_arm: when one arm is left: "allow" plays it against itself, "different" against the one most likely to beat it;
            "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.bradley_terry([2.0, 0.0, 0.0, -1.0])
        >>> run = duelist.simulate(BeatTheMean(width=1.0), env, rounds=3000, trials=4, seed=0)
        >>> bool((run.first[:, -1] == 0).all())
        True
    """

    blank: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.0, 0.0)

    gamma: float = 1.0
    width: float = 3.0
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("gamma", self.gamma, at_least=1.0)
        finite_number("width", self.width, above=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def begin(self, problem: Problem) -> BeatTheMeanMemory:
        """No arms."""
        nothing = np.zeros((problem.lanes, 0))
        horizon = self.horizon or problem.horizon or UNKNOWN_HORIZON
        return BeatTheMeanMemory(nothing.astype(bool), nothing, nothing, horizon)

    def widen(self, state: MatrixState, new: BoolArray) -> BeatTheMeanMemory:
        """New arms are among those that are left."""
        memory: BeatTheMeanMemory = state.memory
        won, met = (padded(column, state.arms.size, 0.0) for column in (memory.won, memory.met))
        return memory._replace(active=padded(memory.active, state.arms.size, 0) | new, won=won, met=met)

    def pick(self, memory: BeatTheMeanMemory, field: Field) -> Choice:
        """The arm with the fewest duels, and any other."""
        active = memory.active & field.offered
        active = np.where(active.any(axis=1, keepdims=True), active, field.offered)
        first = field.best(np.where(active, -memory.met, -np.inf), "beat the mean first")
        others = active.copy()
        others[field.lanes, first] = False
        alone = ~others.any(axis=1)
        second = np.where(alone, first, field.draw(others, "beat the mean second"))
        return Choice(first, second, memory, first[:, None].astype(np.float64))

    def further_cells(self, duel: Update) -> FloatArray:
        """Duels in which the first arm, by the rule's note and whichever way round it was shown, met the second."""
        arm, cells = noted_arm(duel), duel.before[2:].copy()
        for side, (mine, won) in enumerate(((duel.first, duel.won), (duel.second, 1.0 - duel.won))):
            counts = duel.counts & (arm == mine)
            cells[0, side] += counts * won
            cells[1, side] += counts
        return cells

    def update(self, state: MatrixState, duel: Update) -> BeatTheMeanMemory:
        """Count the duel for its first arm; drop the worst arm if it is surely worse than the best."""
        memory: BeatTheMeanMemory = state.memory
        assert state.counts is not None
        arm, lanes = noted_arm(duel), np.arange(len(duel.first))
        other = np.where(arm == duel.first, duel.second, duel.first)
        counts = duel.counts & (arm >= 0) & memory.active[lanes, arm] & memory.active[lanes, other]
        won, met = memory.won.copy(), memory.met.copy()
        won[lanes, arm] += counts * np.where(arm == duel.first, duel.won, 1.0 - duel.won)
        met[lanes, arm] += counts
        share = np.where(met > 0.0, won / np.maximum(met, 1.0), 0.5)
        fewest = np.where(memory.active, met, np.inf).min(axis=1)
        arms = np.count_nonzero(memory.active, axis=1)
        log = np.log(2.0 * memory.horizon * state.arms.number)
        radius = self.width * self.gamma**2 * np.sqrt(log / np.maximum(fewest, 1.0))
        low = np.where(memory.active, share, np.inf)
        apart = low.min(axis=1) + radius <= np.where(memory.active, share, -np.inf).max(axis=1) - radius
        drop = np.flatnonzero(apart & (fewest > 0.0) & (arms > 1))
        if len(drop) == 0:
            return memory._replace(won=won, met=met)
        order = state.arms.order[drop]
        worst = order[np.arange(len(drop)), np.take_along_axis(low[drop], order, axis=1).argmin(axis=1)]
        active = memory.active.copy()
        active[drop, worst] = False
        against = state.counts.cells[:, drop, :, worst]  # (drop, layers, K)
        won[drop] -= against[:, _FIRST_WINS]
        met[drop] -= against[:, _FIRST_DUELS]
        return memory._replace(active=active, won=won, met=met)
