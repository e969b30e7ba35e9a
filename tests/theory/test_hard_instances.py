"""On the hard instances: no policy beats the lower bound on average, and FGTS at the theory's settings keeps the upper one.

The lower bound is on an expectation, so means over draws of theta* are compared with it. The sizes make a false alarm at four
standard errors rarer than one in thirty thousand for each policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.hard import HardDuels
from duelist.experiments.simulation import simulate
from duelist.experiments.theory import play_hard_instances
from duelist.history.duels import Duels, duels_between
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.base import Policy
from duelist.policies.registry import POLICIES, duel_policies
from duelist.posteriors.priors import UniformBall
from duelist.theory.linear_bounds import linear_upper_bound, lower_bound
from duelist.typing import FloatArray, IntArray

BOUND, DIM, HORIZON = 1.0, 2, 300
THEORY = FGTS(eta="theory", mu="theory", prior=UniformBall(BOUND))


@pytest.mark.slow
@pytest.mark.parametrize("name", duel_policies(with_extras=False))
def test_no_policy_beats_the_lower_bound_on_average(name: str) -> None:
    (result,) = play_hard_instances({name: POLICIES[name]()}, dim=DIM, horizons=[HORIZON], bound=BOUND, draws=64, seed=1)
    assert result.lower.require().value == lower_bound(dim=DIM, horizon=HORIZON, bound=BOUND).value
    assert result.margin > 4


@pytest.mark.slow
@pytest.mark.parametrize("actions", ["ball", "corners"])
def test_fgts_at_the_theorys_settings_lies_between_the_bounds(actions: str) -> None:
    (result,) = play_hard_instances(
        {"theory": THEORY},
        dim=DIM,
        horizons=[HORIZON],
        bound=BOUND,
        draws=64,
        seed=2,
        actions=actions,  # type: ignore[arg-type]
    )
    upper = linear_upper_bound(dim=DIM, horizon=HORIZON, prior=UniformBall(BOUND)).require()
    assert result.lower.require().value + 4 * result.standard_error < result.mean
    assert result.mean + 4 * result.standard_error < upper.value


@dataclass(frozen=True)
class Stubborn(Policy[Any]):
    """Always plays the first corner against itself."""

    def start(self, problem: Problem, streams: Streams) -> None:
        pass

    def choose(self, state: None, actions: ActionSet, streams: Streams) -> tuple[Duels, None]:  # noqa: ARG002
        assert isinstance(actions, FiniteActions)
        first = np.zeros(actions.lanes, dtype=np.int64)
        return duels_between(actions, first, first), None

    def learn(self, state: None, actions: ActionSet, duels: Duels, outcomes: IntArray) -> None:
        pass

    def report(self, state: None) -> dict[str, FloatArray]:  # noqa: ARG002
        return {}


def test_one_theta_can_be_beaten_and_the_class_cannot() -> None:
    """The bound is about the mean over the class: a rule that ignores the data has no regret at all on its favourite theta."""
    env = HardDuels(dim=DIM, horizon=HORIZON, actions="corners")
    final = simulate(Stubborn(), env, rounds=HORIZON, trials=200, seed=3, workers=1).final_regret
    bound = lower_bound(dim=DIM, horizon=HORIZON, bound=BOUND).require().value
    favourite = np.isclose(final, 0.0, atol=1e-12)
    assert 20 < favourite.sum() < 80
    assert final.mean() - 4 * final.std() / np.sqrt(len(final)) > bound
