"""Beyond exact_rounds a history is read through its expansion: right to second order, and no more to read as it grows."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.history import History
from duelist.kernels.potential import evaluate
from duelist.policies.algorithms.sampling.fgts import FGTS, FGTSState
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from duelist.samplers.curvature import Curvature, refresh_curvature, unknown_curvature
from duelist.samplers.expansion import extend_expansion, is_long, no_expansion, prepare_terms
from tests.support.builders import history_of, learn_round, random_rounds
from tests.support.oracles import Floats

LANES, DIM = 2, 3


def fresh_history(rounds: int) -> History:
    rng = np.random.default_rng(2)
    return history_of(
        [random_rounds(rng, rounds, [rng.standard_normal((4, DIM)) for _ in range(rounds)]) for _ in range(LANES)]
    )


def potential_of(history: History, exact_rows: int | None = None) -> LinearPotential:
    return LinearPotential.of(
        Gaussian(), history.statistics, eta=np.array([1.0, 0.5]), chains=1, observations=history.rounds, exact_rows=exact_rows
    )


def values(potential: LinearPotential, theta: Floats) -> Floats:
    """Energies of the expanded potential at theta (lanes, 1, dim)."""
    _, _, terms = prepare_terms(unknown_curvature(LANES, DIM), no_expansion(LANES, DIM), potential)
    out, gradients = np.empty((LANES, 1)), np.empty((LANES, 1, DIM))
    evaluate(theta, terms, out, gradients)
    return out


def test_the_expansion_is_exact_to_second_order_around_the_mode() -> None:
    exact, long = potential_of(fresh_history(80)), potential_of(fresh_history(80), exact_rows=8)
    assert is_long(long)
    assert not is_long(exact)
    mode = refresh_curvature(unknown_curvature(LANES, DIM), exact).mode[:, None]
    direction = np.random.default_rng(0).standard_normal((LANES, 1, DIM))
    errors = []
    for step in (0.2, 0.1, 0.05):
        there, here = mode + step * direction, mode.copy()
        difference = exact.value(there) - exact.value(here)
        errors.append(np.abs(difference - (values(long, there) - values(long, here))).max())
    # What is left is of third order: half the step, an eighth of the error.
    assert errors[1] / errors[0] == pytest.approx(1 / 8, rel=0.3)
    assert errors[2] / errors[1] == pytest.approx(1 / 8, rel=0.3)


def test_duels_added_one_by_one_give_the_expansion_of_all_of_them() -> None:
    rng = np.random.default_rng(4)
    rounds = [random_rounds(rng, 60, [rng.standard_normal((4, DIM)) for _ in range(60)]) for _ in range(LANES)]
    centre = Curvature(rng.standard_normal((LANES, DIM)), np.tile(np.eye(DIM), (LANES, 1, 1)), 40)
    grown = no_expansion(LANES, DIM)
    for n in range(40, 61):
        grown = extend_expansion(grown, centre, potential_of(history_of([run[:n] for run in rounds])))
    at_once = extend_expansion(no_expansion(LANES, DIM), centre, potential_of(history_of(rounds)))
    np.testing.assert_allclose(grown.slope, at_once.slope, rtol=1e-10)
    np.testing.assert_allclose(grown.hessian, at_once.hessian, rtol=1e-10)
    assert grown.observations == at_once.observations == 60


@pytest.mark.parametrize("n_sets", [60, 5], ids=["new contrasts", "contrasts that return"])
@pytest.mark.parametrize("at_a_time", [1, 3])
def test_the_expansion_of_a_growing_history_is_that_of_all_of_it(n_sets: int, at_a_time: int) -> None:
    rng = np.random.default_rng(6)
    sets = [rng.standard_normal((4, DIM)) for _ in range(n_sets)]
    rounds = [random_rounds(rng, 60, sets) for _ in range(LANES)]
    centre = Curvature(rng.standard_normal((LANES, DIM)), np.tile(np.eye(DIM), (LANES, 1, 1)), 30)
    history, grown = history_of([run[:30] for run in rounds]), no_expansion(LANES, DIM)
    grown = extend_expansion(grown, centre, potential_of(history))
    for n in range(30, 60):
        history = learn_round(history, [run[n] for run in rounds])
        if (n + 1 - 30) % at_a_time == 0:
            grown = extend_expansion(grown, centre, potential_of(history))
    at_once = extend_expansion(no_expansion(LANES, DIM), centre, potential_of(history))
    np.testing.assert_allclose(grown.slope, at_once.slope, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(grown.hessian, at_once.hessian, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(grown.n_rows, at_once.n_rows)


def test_a_duel_of_an_old_contrast_is_added_without_reading_the_others() -> None:
    """The others are overwritten with nonsense: if they were read again, it would show."""
    rng = np.random.default_rng(8)
    rounds = [random_rounds(rng, 41, [rng.standard_normal((3, DIM))]) for _ in range(LANES)]
    centre = Curvature(rng.standard_normal((LANES, DIM)), np.tile(np.eye(DIM), (LANES, 1, 1)), 40)
    before = extend_expansion(no_expansion(LANES, DIM), centre, potential_of(history_of([run[:40] for run in rounds])))
    after = potential_of(history_of(rounds))
    expected = extend_expansion(no_expansion(LANES, DIM), centre, after)
    assert after.newest is not None
    for lane in range(LANES):
        others = np.arange(after.likelihood.contrasts.shape[2]) != after.newest.row[lane]
        after.likelihood.contrasts[lane][:, others] = np.nan
    longer = extend_expansion(before, centre, after)
    np.testing.assert_allclose(longer.slope, expected.slope, rtol=1e-10)
    np.testing.assert_allclose(longer.hessian, expected.hessian, rtol=1e-10)


def played(policy: FGTS, env: LinearDuels, rounds: int) -> FGTSState:
    streams = Streams(0, range(LANES))
    instance = env.instance(streams)
    state = policy.start(Problem(dim=env.dim, lanes=LANES, horizon=rounds), streams)
    for t in range(rounds):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
    return state


def read_by_kernels(policy: FGTS, state: FGTSState) -> int:
    """Numbers that one evaluation of the potential reads."""
    _, _, terms = prepare_terms(state.chains.curvature, state.chains.expansion, policy.potential(state))
    likelihood, tilt, quadratic = terms.likelihood, terms.tilt, terms.quadratic
    assert tilt is not None
    return int(
        likelihood.n_rows.max() * (likelihood.contrasts.shape[1] + 2)
        + len(tilt.repeats) * tilt.sets.shape[2] * tilt.sets.shape[3]
        + quadratic.hessian.size
    )


@pytest.mark.slow
def test_what_a_round_reads_stops_growing_with_fresh_arms() -> None:
    env = LinearDuels(dim=4, arms=6, fresh_arms=True)
    limited, free = FGTS(exact_rounds=64), FGTS(exact_rounds=None)
    sizes = [read_by_kernels(limited, played(limited, env, rounds)) for rounds in (64, 200, 800)]
    assert sizes[1] < sizes[0]
    assert sizes[2] < sizes[0]
    assert read_by_kernels(free, played(free, env, 200)) > 2 * sizes[0]


def test_with_a_fixed_set_of_arms_the_limit_changes_nothing() -> None:
    env = LinearDuels(dim=3, arms=4)
    one, other = played(FGTS(exact_rounds=16), env, 150), played(FGTS(exact_rounds=None), env, 150)
    np.testing.assert_array_equal(one.chains.position, other.chains.position)


def test_a_limit_that_is_no_number_of_rounds_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="exact_rounds"):
        FGTS(exact_rounds=3)
