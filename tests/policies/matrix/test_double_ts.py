"""Double Thompson sampling agrees with a loop that draws every pair, round by round."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta

from duelist.core.errors import InvalidInputError
from duelist.kernels.philox import arm_uniforms
from duelist.policies import DoubleTS
from tests.policies.matrix.slow import SlowRule, play_beside


class SlowDoubleTS(SlowRule):
    """Algorithm 1 of Wu & Liu (2016), with every draw worked out."""

    alpha = 0.51
    least_regret = False

    def content(self, name: str, print_: int) -> float:
        """The uniform number that belongs to a content."""
        out = np.empty((1, 1))
        prints = np.array([[print_]], dtype=np.uint64)
        arm_uniforms(out, prints, self._streams.keys(name)[[self._lane]], self.t - 1)
        return float(out[0, 0])

    def theta(self, i: int, j: int) -> float:
        """The draw of the first step."""
        if self._prints[i] > self._prints[j]:
            return 1.0 - self.theta(j, i)
        level = self.content("double ts first", self._prints[i] ^ self._prints[j])
        return float(beta.ppf(level, 1.0 + self.wins[i][j], 1.0 + self.wins[j][i]))

    def choose(self) -> tuple[int, int]:
        k = range(self.k)
        score = [sum(self.upper(i, j, self.alpha) >= 0.5 for j in k if j != i) for i in k]
        candidates = [i for i in k if score[i] == max(score)]
        if len(candidates) == 1:
            first = candidates[0]
        else:
            theta = [[0.5 if i == j else self.theta(i, j) for j in k] for i in k]
            zeta = [sum(theta[i][j] > 0.5 for j in k) for i in k]
            top = max(zeta[i] for i in candidates)
            tied = [i for i in candidates if zeta[i] == top]
            if self.least_regret and len(tied) > 1:
                cost = {
                    i: sum((max(zeta) - (zeta[i] + zeta[j]) / 2) / divergence(theta[i][j]) for j in k if j != i) for i in tied
                }
                low = min(cost.values())
                tied = [i for i in tied if math.isclose(cost[i], low, rel_tol=1e-9, abs_tol=1e-12)]
            first = self.draw(tied, "double ts tie")
        drawn = {first: 0.5}
        for j in k:
            # l_j,first <= 1/2 where u_first,j >= 1/2.
            if j != first and self.upper(first, j, self.alpha) >= 0.5:
                level = self.content("double ts second", self._prints[j])
                drawn[j] = float(beta.ppf(level, 1.0 + self.wins[j][first], 1.0 + self.wins[first][j]))
        return first, self.best(drawn, "double ts second tie")


class SlowDoubleTSPlus(SlowDoubleTS):
    """D-TS+."""

    least_regret = True


def divergence(theta: float) -> float:
    return theta * math.log(2.0 * theta) + (1.0 - theta) * math.log(2.0 * (1.0 - theta))


@pytest.mark.slow
@pytest.mark.parametrize("arms", [2, 6])
def test_every_pair_is_that_of_the_plain_loop(arms: int) -> None:
    play_beside(DoubleTS(), SlowDoubleTS, arms=arms, rounds=250, lanes=2)


def test_with_ties_broken_by_regret_too() -> None:
    play_beside(DoubleTS(tie_break="regret"), SlowDoubleTSPlus, arms=5, rounds=150, lanes=2)


def test_the_chance_of_a_pair_follows_its_wins() -> None:
    state = play_beside(DoubleTS(), SlowDoubleTS, arms=4, rounds=60, lanes=2)
    wins, duels, chance = state.counts.cells
    expected = beta.sf(0.5, 1.0 + wins, 1.0 + duels - wins)
    np.testing.assert_allclose(chance, expected, atol=1e-12)


def test_other_ways_to_break_ties_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="tie_break"):
        DoubleTS(tie_break="first")
