"""BestArm: ask what best tells the top arms from the rest, until a verdict with an error probability can be given.

    top       = the k arms with the highest <theta_hat, x>
    (i, j)    = argmin over i in top, j not, of <theta_hat, x_i - x_j>^2 / |x_i - x_j|^2_{H^-1}    the least certain border
    (x, y)    = argmax over pairs of  w <x - y, x_i - x_j>^2_{H^-1} / (1 + w |x - y|^2_{H^-1}),    w = s'(<theta_hat, x - y>)

A duel of x and y lowers the variance of the border's difference by the last fraction. `verdict` says when to stop: see
`duelist.posteriors.linear_verdict` for the theorem and its conditions.

Reference: Xu, Honda & Sugiyama (2018), A Fully Adaptive Algorithm for Pure Exploration in Linear Bandits (LinGapE), for the
greedy choice; the rule for duels and the stopping rule are this package's own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.kernels.rules.pairs import Bounds, Candidates, best_pairs
from duelist.policies.parts.confidence import UCBState
from duelist.policies.parts.exploration import ExplorationPolicy
from duelist.policies.parts.open_duels import logistic_slope
from duelist.posteriors.stopping.goals import Goal, Verdict
from duelist.posteriors.stopping.linear import LinearModel, Votes, linear_verdict
from duelist.typing import FloatArray

_CERTAIN = 1e300  # of two arms with equal features: nothing can be learnt of their difference


@dataclass(frozen=True, kw_only=True)
class BestArm(ExplorationPolicy):
    """Ask what tells the best k arms from the rest, and say when that is known.

    Args:
        k: how many arms to name; of k arms or fewer, all but one are told from the last.
        delta: largest probability of a wrong verdict, however often one looks.
        ridge: lambda of the fit and of H, and of the verdict's prior N(0, I / lambda); a sequence is one per lane.

    Example:
        >>> import numpy as np
        >>> from duelist.actions import FiniteActions
        >>> from duelist.core import Problem, Streams
        >>> policy, arms, streams = BestArm(), FiniteActions(np.eye(3)), Streams(0, [0])
        >>> state = policy.start(Problem(dim=3), streams)
        >>> for _ in range(150):
        ...     duels, state = policy.choose(state, arms, streams)
        ...     state = policy.learn(state, arms, duels, np.where(duels.first < duels.second, 1, -1))
        >>> verdict = policy.verdict(state, arms)[0]
        >>> verdict.arms, verdict.decided
        ((0,), True)
    """

    k: int = 1
    delta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("k", self.k, at_least=1)
        finite_number("delta", self.delta, above=0.0, at_most=0.5)

    def score_pairs(self, candidates: Candidates, bounds: Bounds, geometry: tuple[FloatArray, FloatArray]) -> FloatArray:
        """How much a duel lowers the variance of the least certain difference at the border of the top."""
        utilities, widths = geometry
        lanes, k = np.arange(len(utilities)), min(self.k, utilities.shape[1] - 1)
        order = np.lexsort((candidates.priority, utilities), axis=1)
        top = np.zeros(utilities.shape, dtype=np.bool_)
        np.put_along_axis(top, order[:, -k:], True, axis=1)
        gaps = utilities[:, :, None] - utilities[:, None]
        certainty = np.full(gaps.shape, _CERTAIN)
        np.divide(gaps**2, widths**2, out=certainty, where=widths > 0.0)
        border = np.where(top[:, :, None] != top[:, None], -certainty, -np.inf)
        i, j = best_pairs(border, utilities, candidates.priority)
        z = candidates.columns[lanes, :, i] - candidates.columns[lanes, :, j]
        towards = np.einsum("led,le->ld", bounds.whitener, np.einsum("led,ld->le", bounds.whitener, z))
        along = np.einsum("ldk,ld->lk", candidates.columns, towards)
        weights = logistic_slope(gaps)
        return np.asarray(weights * (along[:, :, None] - along[:, None]) ** 2 / (1.0 + weights * widths**2))

    def verdict(self, state: UCBState, actions: FiniteActions) -> list[Verdict]:
        """Per lane, the best k of these arms, the error probability, and the votes that are still expected."""
        goal = Goal(kind="best" if self.k == 1 else "top", k=self.k, delta=self.delta)
        known, features, verdicts = state.history.live_statistics, np.swapaxes(actions.columns, 1, 2), []
        for lane, ridge in enumerate(state.settings.ridge):
            n = int(known.n_rows[lane])
            losses = known.losses[lane, :n]
            votes = Votes(known.contrasts[lane, :, :n].T, known.totals[lane, :n] - losses, losses)
            verdicts.append(linear_verdict(features[lane], votes, goal, LinearModel(prior_scale=float(ridge) ** -0.5)))
        return verdicts
