"""TopTwoTS: top-two Thompson sampling for duels. A leader meets a challenger that another draw likes better.

    first     the best arm under a draw of theta
    second    with probability beta the best arm under a second draw, whatever it is;
              else theta is drawn again, up to `redraws` times, until another arm than the first is best

beta = 1 is plain Thompson sampling with two draws. Draws come from the normal approximation of the posterior at its mode.

Reference: Russo (2016), Simple Bayesian Algorithms for Best Arm Identification, adapted to duels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.parts.confidence import UCBState
from duelist.policies.parts.normal_belief import NormalPolicy, draw_normal
from duelist.policies.parts.same_arm import require_finite, runner_up


@dataclass(frozen=True, kw_only=True)
class TopTwoTS(NormalPolicy):
    """Play the best arm of a draw against another arm that a later draw likes best.

    Args:
        beta: probability that the second arm is plain Thompson sampling's; a sequence is one per lane. Russo's top-two rule
            measures the leader with this probability. Live, where the arms must differ, it is always a challenger.
        redraws: draws in search of a challenger. When all of them like the leader best it meets itself, which ends
            exploration; where arms must differ, the runner-up under the last draw.
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        same_arm: "allow" lets the leader meet itself, "different" does not; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.policies import TopTwoTS
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(TopTwoTS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    beta: PerLane = 0.5
    redraws: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_per_lane("beta", self.beta, at_least=0.0)
        finite_number("beta", float(np.max(self.beta)), at_least=0.0, at_most=1.0)
        whole_number("redraws", self.redraws, at_least=1)

    def start(self, problem: Problem, streams: Streams) -> UCBState:
        """The prior."""
        per_lane("beta", self.beta, problem.lanes)
        return super().start(problem, streams)

    def choose(self, state: UCBState, actions: ActionSet, streams: Streams) -> tuple[Duels, UCBState]:
        """The leader, and its challenger or the best arm of a second draw."""
        arms = require_finite(self, actions)
        draws = draw_normal(state, streams, "top two", 1 + self.redraws)
        best = arms.best(draws).row
        first, others = best[:, 0], best[:, 1:]
        differs = others != first[:, None]
        # The first draw that differs; where none does, argmax says 0, and that draw likes the leader best.
        found = np.argmax(differs, axis=1)
        if not state.settings.different:
            plain = streams.uniforms("top two coin", state.asked) < np.asarray(self.beta)
            found = np.where(plain, 0, found)
        second = others[np.arange(len(first)), found]
        if state.settings.different:
            second = np.where(second == first, runner_up(arms, draws[:, -1], first), second)
        return duels_between(arms, first, second), state._replace(asked=state.asked + 1)
