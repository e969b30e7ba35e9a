"""A history that forgets: old duels count less, and the compact statistics stay exact."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.serialize import from_arrays, to_arrays
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.history import History
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.samplers.curvature import refresh_curvature, unknown_curvature
from duelist.samplers.expansion import extend_expansion, no_expansion
from tests.support.oracles import Round, full_potential

DISCOUNT = 0.9


def played(rounds: int, fresh: bool, discount: float = DISCOUNT, keep_sets: bool = True) -> tuple[History, list[Round]]:
    """A history and the same rounds one by one, on two sets in turn or on a fresh set every round."""
    generator = np.random.default_rng(7)
    sets = [generator.standard_normal((5, 3)) for _ in range(rounds if fresh else 2)]
    history = History.start(lanes=1, dim=3, keep_sets=keep_sets, discount=discount)
    log = []
    for t in range(rounds):
        arms = sets[t % len(sets)]
        first, second = (int(row) for row in generator.choice(5, 2, replace=False))
        outcome = int(generator.choice([-1, 1]))
        actions = FiniteActions(arms)
        history = history.append(actions, duels_between(actions, np.array([first]), np.array([second])), np.array([outcome]))
        log.append(Round(arms, first, second, outcome))
    return history, log


def discounted_potential(theta: Any, log: list[Round], **settings: Any) -> float:
    """The slow, obvious way: every round on its own, times its weight."""
    total = full_potential(theta, [], **settings)
    for age, one in enumerate(reversed(log)):
        total += DISCOUNT**age * (full_potential(theta, [one], **settings) - full_potential(theta, [], **settings))
    return total


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("draw", [1, 2])
def test_the_potential_is_that_of_the_discounted_votes(fresh: bool, draw: int) -> None:
    history, log = played(60, fresh)
    policy = FGTS(mu=0.3, discount=DISCOUNT)
    state = policy.start(Problem(dim=3), Streams(0, [0]))._replace(history=history)
    potential = policy.potential(state)
    for theta in np.random.default_rng(1).standard_normal((5, 3)):
        value = potential.value(np.broadcast_to(theta, (1, 2, 3)).copy())[0, draw - 1]
        assert value == pytest.approx(discounted_potential(theta, log, draw=draw, eta=1.0, mu=0.3), rel=1e-9)


def test_balls_are_forgotten_too() -> None:
    history = History.start(lanes=1, dim=2, keep_sets=True, discount=0.5)
    none = np.array([-1])
    for radius in (1.0, 2.0, 4.0):
        features = np.array([[[radius, 0.0], [0.0, radius]]])
        history = history.append(BallActions(lanes=1, dim=2, radius=radius), Duels(none, none, features), np.array([1]))
    assert history.statistics.ball_reach == 4.0 + 0.5 * 2.0 + 0.25 * 1.0
    assert history.statistics.totals[0, :3].tolist() == [0.25, 0.5, 1.0]


def test_remembered_rounds_add_up_to_the_memory() -> None:
    assert played(500, fresh=False)[0].effective_rounds == pytest.approx(1 / (1 - DISCOUNT))
    assert played(37, fresh=False, discount=1.0)[0].effective_rounds == 37.0


def test_without_forgetting_every_duel_counts_as_one() -> None:
    statistics = played(50, fresh=False, discount=1.0)[0].statistics
    assert statistics.totals.sum() == 50.0
    assert statistics.repeats.tolist() == [25.0, 25.0]


@pytest.mark.parametrize("keep_sets", [False, True])
def test_an_older_history_and_a_saved_one_have_the_same_bits(keep_sets: bool) -> None:
    history, _ = played(40, fresh=False, keep_sets=keep_sets)
    straight, _ = played(25, fresh=False, keep_sets=keep_sets)
    older = History(history._log, 25)
    for again in (older, from_arrays(to_arrays(straight))):
        assert again.effective_rounds == straight.effective_rounds
        n = int(straight.statistics.n_rows[0])
        for name in ("totals", "losses"):
            assert getattr(again.statistics, name)[:, :n].tobytes() == getattr(straight.statistics, name)[:, :n].tobytes()
        assert again.statistics.repeats.tobytes() == straight.statistics.repeats.tobytes()
        if keep_sets:
            assert again.statistics.adversary.tobytes() == straight.statistics.adversary.tobytes()


def test_what_was_forgotten_completely_is_zero_and_not_denormal() -> None:
    arms = FiniteActions(np.eye(3))
    history = History.start(lanes=1, dim=3, keep_sets=True, discount=0.1)
    history = history.append(arms, duels_between(arms, np.array([0]), np.array([1])), np.array([-1]))
    for _ in range(400):
        history = history.append(arms, duels_between(arms, np.array([1]), np.array([2])), np.array([1]))
    assert history.statistics.totals[0, :2].tolist() == [0.0, pytest.approx(1 / 0.9)]
    assert history.statistics.losses[0, 0] == 0.0


@pytest.mark.parametrize("discount", [0.0, -0.5, 1.5, math.nan])
def test_a_discount_outside_its_range_is_refused(discount: float) -> None:
    with pytest.raises(InvalidInputError, match="discount must be"):
        History.start(lanes=1, dim=2, discount=discount)
    with pytest.raises(InvalidInputError, match="discount must be"):
        FGTS(discount=discount)


def test_a_sampler_that_never_looks_back_cannot_forget() -> None:
    with pytest.raises(InvalidInputError, match="one-pass sampler never looks back"):
        FGTS(discount=0.9, sampler="online")


def test_an_expansion_of_the_likelihood_follows_what_is_forgotten() -> None:
    """Fresh arms every round: without forgetting, an expansion is only extended by the new duel."""
    policy = FGTS(mu=0.0, discount=DISCOUNT)
    streams, curvature = Streams(0, [0]), unknown_curvature(1, 3)
    expansion = no_expansion(1, 3)
    for rounds in (40, 41):
        history, _ = played(rounds, fresh=True)
        potential = policy.potential(policy.start(Problem(dim=3), streams)._replace(history=history))
        curvature = refresh_curvature(curvature, potential)
        expansion = extend_expansion(expansion, curvature._replace(observations=40), potential)
    from_scratch = extend_expansion(no_expansion(1, 3), curvature._replace(observations=40), potential)
    assert np.allclose(expansion.hessian, from_scratch.hessian, rtol=1e-12)
    assert np.allclose(expansion.slope, from_scratch.slope, rtol=1e-9)
