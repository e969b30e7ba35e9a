"""MaxPairUCB: the pair with the largest optimistic sum of utilities.

    (x, y) = argmax over pairs of <theta_hat, x + y> + radius * |x - y|_{M^-1}.

An arm may meet itself: then the width is zero and the pair is pure exploitation. With `width="local"` the norm is that of
H^-1, the curvature of the likelihood at theta_hat, which removes a factor exponential in |theta| from the radius.

Reference: Di, Jin, Wu, Zhao, Farnoud & Gu (2023), Variance-Aware Regret Bounds for Stochastic Contextual Dueling Bandits; the
rule as the FGTS.CDB paper prints it in its experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duelist.actions.finite import ActionSet
from duelist.core.checks import one_of
from duelist.core.lanes import PerLane
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.kernels.rules.pairs import max_pair_lanes
from duelist.policies.base import Round
from duelist.policies.parts.confidence import (
    UCBPolicy,
    UCBState,
    expect_answers,
    learn_ucb,
    learn_ucb_many,
)
from duelist.typing import IntArray

WIDTHS = ("global", "local")


@dataclass(frozen=True, kw_only=True)
class MaxPairUCB(UCBPolicy):
    """Play the pair with the largest optimistic sum of utilities.

    Args:
        radius: weight of the width; a sequence is one per lane. The paper tries 0.01, 0.1, 1 and 10; the best is near 7, and
            near 2.5 with local widths.
        ridge: lambda, of M or H; the paper uses 0.001.
        width: "global" (M, the paper) or "local" (the curvature at the fit).
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
        fit_ridge: lambda_fit, of the fit; None for that of M. 1e-6 is next to none and keeps the fit of separable duels finite.
        warmup: rounds of random pairs first; "theory" for d K.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(duelist.MaxPairUCB(radius=5.0), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    radius: PerLane = 7.0
    width: str = "global"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("width", self.width, WIDTHS)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The pair with the largest optimistic sum."""
        return self.choose_by(max_pair_lanes, state, actions, streams)

    def choose_with_pending(
        self, state: UCBState, actions: ActionSet, streams: Streams, pending: Sequence[Duels]
    ) -> tuple[Duels, UCBState]:
        """`choose` with the widths, of either kind, that there will be when the pending duels are answered."""
        duels, after = self.choose(expect_answers(state, pending, local=self.width == "local"), actions, streams)
        return duels, after._replace(gram=state.gram, whitener=state.whitener)

    def learn(self, state: UCBState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> UCBState:
        """Append the outcomes and fit again."""
        return learn_ucb(state, actions, duels, outcomes, local=self.width == "local")

    def learn_many(self, state: UCBState, rounds: Iterable[Round]) -> UCBState:
        """Append all outcomes and fit once."""
        return learn_ucb_many(state, rounds, local=self.width == "local")
