"""RUCB agrees with a loop over all pairs, round by round."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.policies import RUCB
from tests.policies.matrix.slow import SlowRule, play_beside


class SlowRUCB(SlowRule):
    """Algorithm 1 of Zoghi et al. (2014)."""

    best_arm: int | None = None
    alpha = 0.51

    def choose(self) -> tuple[int, int]:
        k = range(self.k)
        candidates = [i for i in k if all(self.upper(i, j, self.alpha) >= 0.5 for j in k)]
        if self.best_arm not in candidates:
            self.best_arm = None
        if len(candidates) == 1:
            self.best_arm = first = candidates[0]
        elif not candidates:
            first = self.draw(k, "rucb first")
        elif self.best_arm is not None and self.coin("rucb coin") < 0.5:
            first = self.best_arm
        else:
            first = self.draw([i for i in candidates if i != self.best_arm], "rucb first")
        bounds = {j: self.upper(j, first, self.alpha, never=2.0) for j in k if j != first}
        if max(bounds.values()) < 0.5:
            return first, first
        return first, self.best(bounds, "rucb second")


@pytest.mark.parametrize("arms", [2, 5, 9])
def test_every_pair_is_that_of_the_plain_loop(arms: int) -> None:
    state = play_beside(RUCB(), SlowRUCB, arms=arms, rounds=1500)
    met_itself = state.learnt - state.counts.cells[1].sum(axis=(1, 2)) / 2
    assert (met_itself > 0).any() or arms == 9  # the winner was found and played against itself


def test_a_level_that_grows_takes_sure_losses_back() -> None:
    """Without duels that speak against it, an arm that surely lost is a candidate again once log t is large enough."""
    state = play_beside(RUCB(), SlowRUCB, arms=3, rounds=3000)
    sure = state.memory.sure
    wins, duels = state.counts.cells
    size = (wins - duels / 2) ** 2 / np.maximum(duels, 1.0)
    is_sure = size > 0.51 * np.log(state.learnt + 1)
    np.testing.assert_array_equal(sure.lost, (is_sure & (wins < duels / 2)).sum(axis=2))
    np.testing.assert_array_equal(sure.won, (is_sure & (wins > duels / 2)).sum(axis=2))


def test_bounds_without_width_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="alpha"):
        RUCB(alpha=0.0)
