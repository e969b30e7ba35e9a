"""Default FGTS learns the paper's problem, at a small size and at the paper's.

Bounds and seeds are fixed. At the paper's size the bounds are those that the project promises: 230, 350 and 440; means over 30
instances were near 200, 280 and 380, with a standard deviation between instances of about 100, so a standard error of 18.
"""

from __future__ import annotations

from typing import Any

import pytest

import duelist
from duelist.policies.base import Policy
from duelist.typing import FloatArray


def final_regret(policy: Policy[Any], *, dim: int, rounds: int, trials: int) -> FloatArray:
    env = duelist.LinearDuels(dim=dim, arms=32)
    return duelist.simulate(policy, env, rounds=rounds, trials=trials, seed=0).final_regret


@pytest.mark.slow
def test_it_learns_a_small_problem_that_uniform_play_does_not() -> None:
    learner = final_regret(duelist.FGTS(), dim=5, rounds=1000, trials=20)
    floor = final_regret(duelist.Uniform(), dim=5, rounds=1000, trials=20)
    assert learner.mean() < 200
    assert floor.mean() > 1000
    assert (learner < floor).all()


@pytest.mark.slow
@pytest.mark.parametrize(("dim", "bound"), [(5, 230), (10, 350), (15, 440)])
def test_mean_final_regret_on_the_papers_problem_stays_below_the_promised_bound(dim: int, bound: float) -> None:
    assert final_regret(duelist.FGTS(), dim=dim, rounds=2500, trials=30).mean() <= bound


@pytest.mark.slow
def test_regret_grows_ever_more_slowly() -> None:
    run = duelist.simulate(duelist.FGTS(), duelist.LinearDuels(dim=5, arms=32), rounds=1000, trials=20, seed=1)
    early = run.regret[:, 249].mean()
    late = (run.regret[:, 999] - run.regret[:, 749]).mean()
    assert late < 0.35 * early


@pytest.mark.slow
def test_the_papers_recipe_learns_too() -> None:
    assert final_regret(duelist.FGTS(sampler="paper"), dim=5, rounds=1000, trials=20).mean() < 350
