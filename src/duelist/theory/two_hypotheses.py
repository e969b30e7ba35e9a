"""The best that any rule can do where only two truths are possible: backward induction over the probability of the first.

In every round an action is taken, a cost is paid that depends on the truth, and an outcome is seen whose chances do. With `m`
rounds left the least expected cost, as a function of the probability `p` of truth 0, is `V_0 = 0` and

    V_m(p) = min over actions of   p c_0 + (1 - p) c_1 + sum over outcomes y of  P(y | p)  V_(m-1)(p after y).

`V_m` is concave, being a minimum over rules of costs that are linear in `p`. It is computed on a grid that contains 0 and
1, with linear interpolation between grid points; the chord of a concave function lies below it, so by induction every value
found is **at most** the true one, whatever the grid. Where every `p after y` is a grid point the value is exact.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from duelist.typing import FloatArray

Experiment = tuple[tuple[float, ...], tuple[float, ...]]  # chances of the outcomes under truth 0, and under truth 1


def least_costs(
    costs: FloatArray, chances: FloatArray, log_odds: FloatArray, rounds: int, *, symmetric: bool = False
) -> FloatArray:
    """(rounds,) the least expected cost of 1, 2, ... rounds, from a fair coin for the truth; never too high.

    Args:
        costs: (2, n_actions) under truth 0 and 1, at least 0.
        chances: (2, n_actions, n_outcomes) of the outcomes; 0 for outcomes that an action does not have.
        log_odds: the grid, ascending and symmetric around 0, which is one of its points.
        rounds: how many.
        symmetric: the problem looks the same with the truths exchanged, so half the grid is enough.
    """
    belief = np.concatenate([[0.0], 1.0 / (1.0 + np.exp(-log_odds)), [1.0]])
    points, actions = len(belief), costs.shape[1]
    kept = points // 2 + 1 if symmetric else points
    here = belief[:kept]
    paid = (costs[0][:, None] * here + costs[1][:, None] * (1.0 - here)).ravel()
    rows = np.arange(actions * kept)
    step = sparse.csr_array((actions * kept, kept))
    for outcome in range(chances.shape[2]):
        first = chances[0, :, outcome, None] * here
        total = first + chances[1, :, outcome, None] * (1.0 - here)
        after = np.divide(first, total, out=np.zeros_like(total), where=total > 0.0).ravel()
        left = np.clip(np.searchsorted(belief, after, side="right") - 1, 0, points - 2)
        share = np.clip((after - belief[left]) / (belief[left + 1] - belief[left]), 0.0, 1.0)
        for column, part in ((left, 1.0 - share), (left + 1, share)):
            where = np.minimum(column, points - 1 - column) if symmetric else column
            step = step + sparse.csr_array((total.ravel() * part, (rows, where)), shape=step.shape)
    step.eliminate_zeros()
    value = np.zeros(kept)
    found = np.empty(rounds)
    for m in range(rounds):
        value = (step @ value + paid).reshape(actions, kept).min(axis=0)
        found[m] = value[points // 2]
    return found
