"""SFGTS: smoothed Feel-Good Thompson sampling. The bonus of a round is bounded, and its bound has no kink.

    p_j(theta) proportional to p_0(theta) exp(- sum_i log(1 + exp(-y_i <theta, z_i>))
                                              + mu sum_i ( top_i(theta) - <theta, phi(a_i^{3-j})> )),
    top_i(theta) = b - softplus(s (b - max over A_i of <theta, phi(a)>)) / s,    softplus(u) = log(1 + exp(u))

theta_1 and theta_2 are drawn from p_1 and p_2 and each plays its best arm. top_i is a smooth min(b, max): a large s makes it
sharp, a large b makes it the max of FGTS. mu = alpha / sqrt(T).

Reference: Anand & Liaw (2025), Feel-Good Thompson Sampling for Contextual Bandits: a Markov Chain Monte Carlo Showdown, and
their code, github.com/SarahLiaw/ctx-bandits-mcmc-showdown, src/MCMC.py; with the two bonuses of FGTS.CDB for duels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import PerLane, Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.history.statistics import Statistics
from duelist.policies.parts.confidence import start_ucb
from duelist.policies.parts.feel_good import DEFAULT_ALPHA, FeelGoodSettings, check_feel_good, feel_good_settings
from duelist.policies.parts.normal_belief import learn_normal
from duelist.policies.parts.same_arm import require_finite
from duelist.policies.parts.tilted_belief import TiltedBelief, TiltedPolicy, best_of_draws, draw_tilted, start_tilted
from duelist.typing import FloatArray, IntArray


def smooth_minimum(values: FloatArray, cap: float, sharpness: float) -> FloatArray:
    """A minimum of values and cap without a kink: cap - softplus(sharpness (cap - values)) / sharpness.

    Example:
        >>> smooth_minimum(np.array([-5.0, 1.0, 9.0]), cap=1.0, sharpness=10.0).round(3).tolist()
        [-5.0, 0.931, 1.0]
    """
    return np.asarray(cap - np.logaddexp(0.0, sharpness * (cap - values)) / sharpness)


@stored("sfgts-state")
class SFGTSState(NamedTuple):
    """What SFGTS has learnt.

    Attributes:
        tilted: the normal belief and the last draws.
        settings: the weight of the bonus.
    """

    tilted: TiltedBelief
    settings: FeelGoodSettings


@dataclass(frozen=True, kw_only=True)
class SFGTS(TiltedPolicy[SFGTSState]):
    """Feel-Good Thompson sampling whose bonus has a smooth bound.

    Args:
        alpha: Feel-Good strength; mu = alpha / sqrt(horizon). 0 is plain Thompson sampling. A sequence is one per lane.
        cap: b, above which the utility of a round's best arm earns nothing more.
        sharpness: s, how suddenly the cap sets in; the authors have 10.
        horizon: T; None takes the simulation's, and where it is unknown mu = alpha / sqrt(t) after t rounds.
        ridge: lambda, precision of the normal prior; a sequence is one per lane.
        tries: fresh draws a round, per arm of the pair, of which one is picked by its bonus.
        same_arm: "allow" lets an arm meet itself, "different" does not; "auto" allows it in simulation and not live.
        exact_sets: distinct action sets up to which the bonus is that of every one; with more, of a sample of a quarter of
            that. None takes all.

    Example:
        >>> import duelist
        >>> from duelist.policies import SFGTS
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> run = duelist.simulate(SFGTS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 150)
        True
    """

    alpha: PerLane = DEFAULT_ALPHA
    cap: float = 2.0
    sharpness: float = 10.0
    horizon: int | None = None
    exact_sets: int | None = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        check_feel_good(1.0, self.alpha, None, self.horizon)
        finite_number("cap", self.cap)
        finite_number("sharpness", self.sharpness, above=0.0)
        if self.exact_sets is not None:
            whole_number("exact_sets", self.exact_sets, at_least=8)

    def start(self, problem: Problem, streams: Streams) -> SFGTSState:
        """The prior, and draws from it."""
        settings = feel_good_settings(problem, eta=1.0, alpha=self.alpha, mu=None, horizon=self.horizon)
        kept = bool(settings.strength.any())
        history = History.start(lanes=problem.lanes, dim=problem.dim, keep_sets=kept, max_sets=self.exact_sets)
        belief = start_ucb(problem, 1.0, self.ridge, self.same_arm)._replace(history=history)
        return SFGTSState(start_tilted(belief, streams, "sfgts"), settings)

    def choose(self, state: SFGTSState, actions: ActionSet, streams: Streams) -> tuple[Duels, SFGTSState]:
        """The best arms of two draws."""
        arms, belief = require_finite(self, actions), state.tilted.belief
        statistics, mu = belief.history.live_statistics, state.settings.mu(belief.history.rounds)

        def bonus(theta: FloatArray) -> FloatArray:
            return np.asarray(mu[:, None, None] * self._gained(theta, statistics))

        draws, tilted = draw_tilted(state.tilted, bonus, streams, "sfgts", self.tries)
        return best_of_draws(arms, draws, different=belief.settings.different), state._replace(tilted=tilted)

    def _gained(self, theta: FloatArray, statistics: Statistics) -> FloatArray:
        """(lanes, 2, n) sum over past rounds of the bounded utility of the best arm less that of the adversary."""
        lanes, draws, n, dim = theta.shape
        against: FloatArray = np.matmul(theta, statistics.adversary[:, :, :, None])[..., 0]
        total = -against
        flat = theta.reshape(lanes, draws * n, dim)
        for s, repeats in enumerate(statistics.repeats):
            top = np.matmul(flat, statistics.sets[:, s]).max(axis=2).reshape(lanes, draws, n)
            total += repeats * smooth_minimum(top, self.cap, self.sharpness)
        return total

    def learn(self, state: SFGTSState, actions: ActionSet, duels: Duels, outcomes: IntArray) -> SFGTSState:
        """Append the outcomes, the arms that were offered and the adversaries, and fit again."""
        belief = learn_normal(state.tilted.belief, require_finite(self, actions), duels, outcomes)
        return state._replace(tilted=state.tilted._replace(belief=belief))

    def keeps_sets(self) -> bool:
        """The bonus is that of past rounds' best arms."""
        return bool(np.any(self.alpha))
