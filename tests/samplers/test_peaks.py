"""The peaks of a posterior with a Feel-Good tilt are found, and jumps between them leave its law as it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.kernels.logistic import Likelihood
from duelist.kernels.philox import RandomSource
from duelist.policies.algorithms.sampling.fgts import FGTS, FGTSState
from duelist.posteriors.linear import LinearPotential, finite_tilt
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.samplers.curvature import refresh_curvature, unknown_curvature
from duelist.samplers.mala import MALA
from duelist.samplers.peaks import PeakState, no_peaks, visit_peaks
from tests.support.exact_laws import grid_law
from tests.support.oracles import Floats
from tests.support.played_histories import PlayedHistory, descend, history_of_log, play, total_variation

ALARM = 0.001
SQUARE, CUBE = LinearDuels(dim=2, arms=4), LinearDuels(dim=3, arms=8)
SAMPLERS = ["mala", "polya_gamma"]


def potential_of(history: PlayedHistory, lanes: int) -> LinearPotential:
    """The same posterior in every lane, both draws of a duel being chains."""
    totals, losses = (np.tile(rows, (lanes, 1)) for rows in (history.wins + history.losses, history.losses))
    contrasts = np.tile(history.contrasts.T, (lanes, 1, 1))
    n_rows = np.full(lanes, len(history.wins), dtype=np.int64)
    likelihood = Likelihood(contrasts, totals, losses, n_rows, np.full(lanes, history.eta))
    sets = np.tile(history.arms.T, (lanes, 1, 1, 1))
    adversary = np.tile(history.adversaries, (lanes, 1, 1))
    tilt = finite_tilt(sets, np.array([float(history.rounds)]), adversary, np.full(lanes, history.mu))
    return LinearPotential(Gaussian(), likelihood, tilt, chains=2, observations=history.rounds)


def visit(potential: LinearPotential, position: Floats, calls: int = 1, *, seed: int = 0) -> PeakState:
    """Search and then jump alone, `calls` times, moving `position`."""
    lanes, chains, dim = position.shape
    curvature = refresh_curvature(unknown_curvature(lanes, dim), potential)
    keys, state = Streams(seed, range(lanes)).keys("jumps"), no_peaks(lanes, chains, dim)
    for call in range(calls):
        source = partial(RandomSource, keys, call, 0)
        terms = potential.compiled_terms
        state = visit_peaks(state, position, curvature, call == 0, potential.observations, terms, source, 2.0)
    return state


def log_weight(history: PlayedHistory, j: int, theta: Floats) -> float:
    """What a peak holds, by Laplace's method, up to a constant."""
    # p (1 - p) = (1 - tanh(m / 2)^2) / 4
    totals = (history.wins + history.losses) * 0.25 * (1.0 - np.tanh(0.5 * (history.contrasts @ theta)) ** 2)
    hessian = history.precision * np.eye(history.dim) + history.eta * (history.contrasts.T * totals) @ history.contrasts
    return float(-0.5 * np.linalg.slogdet(hessian)[1] - history.potential(theta[None], j)[0])


def minima(history: PlayedHistory, j: int) -> Floats:
    """Where descents from many starts end, each once."""
    rng = np.random.default_rng(0)
    starts = rng.standard_normal((60, history.dim)) * 10.0 ** rng.uniform(-1.0, 1.5, size=(60, 1))
    ends, _ = descend(history, j, np.concatenate([starts, history.arms]))
    distinct: list[Floats] = []
    for end in ends:
        # Descent may stop short where the tilt bends; a minimum has no slope.
        if np.abs(history.gradient(end, j)).max() < 1e-2 and all(np.abs(end - other).max() > 0.02 for other in distinct):
            distinct.append(end)
    return np.array(distinct)


def barrier(history: PlayedHistory, j: int, one: Floats, two: Floats) -> float:
    """How far the straight way between two points climbs above the higher of them."""
    share = np.linspace(0.0, 1.0, 4001)[:, None]
    energy = history.potential((1.0 - share) * one + share * two, j)
    return float(energy.max() - max(energy[0], energy[-1]))


@pytest.mark.parametrize("environment", [SQUARE, CUBE], ids=["square", "cube"])
@pytest.mark.parametrize("alpha", [1.0, 3.0])
def test_the_peaks_are_those_that_descents_from_many_starts_find(environment: LinearDuels, alpha: float) -> None:
    several = 0
    for history in play(FGTS(alpha=alpha), environment, rounds=300, trials=3, seed=1).histories:
        state = visit(potential_of(history, 1), np.zeros((1, 2, history.dim)))
        for j in range(2):
            found = minima(history, j)
            # One peak is not kept.
            known = state.centre[0, j, : state.n_peaks[0, j] if state.n_peaks[0, j] > 1 else 0]
            for peak in known:
                # Descents by finite steps may miss a minimum between two bends; it has no slope all the same.
                known_to_both = np.abs(found - peak).max(axis=1).min() < 0.05
                assert known_to_both or np.abs(history.gradient(peak, j)).max() < 0.05, history.gradient(peak, j)
            weights = np.array([log_weight(history, j, theta) for theta in found])
            heavy = found[weights > weights.max() - 5.0]
            if len(heavy) > 1 and barrier(history, j, heavy[0], heavy[1]) > 4.0:
                several += 1
                for theta in heavy:
                    assert np.abs(known - theta).max(axis=1).min() < 0.05
    assert several > 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_where_there_is_one_peak_nothing_is_kept_and_no_draw_changes(sampler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = FGTS(alpha=0.1, sampler=sampler)
    jumping = play(policy, CUBE, rounds=40, trials=3, seed=0).state.chains
    assert jumping.peaks.centre.shape[2] == 0
    assert not jumping.peaks.proposed.any()
    monkeypatch.setattr(f"duelist.samplers.{sampler}.visit_peaks", lambda state, *_: state)
    np.testing.assert_array_equal(play(policy, CUBE, rounds=40, trials=3, seed=0).state.chains.position, jumping.position)


LANES = 3000


def two_sided() -> PlayedHistory:
    """A played history whose first draw has two arms with a fifth of the draws each, or more."""
    for history in play(FGTS(alpha=1.0), SQUARE, rounds=300, trials=20, seed=0).histories:
        if np.sort(grid_law(history, 0).arm_law(history))[-2] > 0.2:
            return history
    raise AssertionError("none of the histories has two arms to choose from")


def p_values(history: PlayedHistory, position: Floats, rng: np.random.Generator) -> Floats:
    """Draws (n, 2) against exact ones: how often each arm is best, both coordinates, and the potential."""
    law = grid_law(history, 0)
    exact = law.draw(20_000, rng)
    expected = law.arm_law(history) * len(position)
    likely = expected > 5.0
    counts = np.bincount(history.best_arms(position), minlength=len(expected))[likely]
    arms = stats.chisquare(counts, expected[likely] / expected[likely].sum() * counts.sum()).pvalue
    columns = [(position[:, i], exact[:, i]) for i in range(2)]
    columns.append((history.potential(position, 0), history.potential(exact, 0)))
    return np.array([arms, *(stats.ks_2samp(one, two).pvalue for one, two in columns)])


def test_jumps_leave_exact_draws_exact() -> None:
    # Four p-values against 0.001 / 4: it would fail by chance once in a thousand seeds.
    history, rng = two_sided(), np.random.default_rng(1)
    position = grid_law(history, 0).draw(2 * LANES, rng).reshape(LANES, 2, 2)
    before = position.copy()
    state = visit(potential_of(history, LANES), position, calls=5)
    assert (position[:, 0] != before[:, 0]).any(axis=1).mean() > 0.5
    assert state.accepted[:, 0].mean() > 0
    assert p_values(history, position[:, 0], rng).min() > ALARM / 4


@pytest.mark.slow
def test_jumps_alone_bring_chains_to_the_law_from_one_peak() -> None:
    history, rng = two_sided(), np.random.default_rng(2)
    position = np.zeros((LANES, 2, 2))
    known = visit(potential_of(history, 1), np.zeros((1, 2, 2)))
    position[:, 0] = known.centre[0, 0, 0]
    assert p_values(history, position[:, 0], rng).min() < ALARM / 4
    visit(potential_of(history, LANES), position, calls=40)
    assert p_values(history, position[:, 0], rng).min() > ALARM / 4


@pytest.mark.parametrize("rounds", [12, 400])
def test_a_chain_in_a_peak_that_came_to_hold_nothing_leaves_it(rounds: int) -> None:
    # Arm -1 against itself only: draws below 0 gain nothing by the tilt, those above 0 all of it.
    never = np.zeros(rounds, dtype=np.int64)
    history = history_of_log(np.array([[-1.0], [1.0]]), never, never, never + 1, mu=0.5)
    position = np.full((50, 2, 1), -1.5)
    visit(potential_of(history, 50), position, calls=3)
    assert (position > 0.0).mean() > 0.9


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_lane_draws_the_same_alone_and_beside_others(sampler: str) -> None:
    policy = FGTS(alpha=(10.0, 1.0, 10.0), horizon=200, sampler=sampler)
    together = play(policy, CUBE, rounds=200, trials=3, seed=4)
    assert together.state.chains.peaks.proposed[2].any()
    alone = go_on(FGTS(alpha=10.0, horizon=200, sampler=sampler), CUBE, Streams(4, [2]), 200)
    np.testing.assert_array_equal(together.state.chains.position[2], alone.chains.position[0])


def go_on(
    policy: FGTS, environment: LinearDuels, streams: Streams, rounds: int, state: Any = None, first: int = 0
) -> FGTSState:
    """Play rounds `first` to `rounds` from a state, or from the start."""
    instance = environment.instance(streams)
    if state is None:
        state = policy.start(Problem(dim=environment.dim, lanes=len(streams), horizon=rounds), streams)
    for t in range(first, rounds):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
    found: FGTSState = state
    return found


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_saved_state_with_peaks_goes_on_as_if_it_had_never_been_saved(sampler: str) -> None:
    policy = FGTS(alpha=10.0, horizon=200, sampler=sampler)
    state = go_on(policy, SQUARE, Streams(0, range(3)), 100)
    assert (state.chains.peaks.n_peaks > 1).any()
    read = from_bytes(to_bytes(state.chains))
    for one, two in zip(read.peaks, state.chains.peaks, strict=True):
        np.testing.assert_array_equal(one, two)
    straight = go_on(policy, SQUARE, Streams(0, range(3)), 200, state, 100)
    again = go_on(policy, SQUARE, Streams(0, range(3)), 200, from_bytes(to_bytes(state)), 100)
    np.testing.assert_array_equal(straight.chains.position, again.chains.position)
    np.testing.assert_array_equal(straight.chains.peaks.accepted, again.chains.peaks.accepted)


def test_peaks_of_fresh_sets_have_no_slope() -> None:
    policy = FGTS(alpha=20.0, horizon=150)
    state = go_on(policy, LinearDuels(dim=2, arms=3, fresh_arms=True), Streams(0, range(8)), 150)
    potential = policy.potential(state)
    position = state.chains.position.copy()
    peaks = visit(potential, position)
    assert np.isfinite(position).all()
    assert (peaks.n_peaks > 1).any()
    for k in range(peaks.centre.shape[2]):
        used = peaks.n_peaks > max(k, 1)
        slope = np.einsum("lcij,lcj->lci", peaks.whitener[:, :, k], potential.gradient(peaks.centre[:, :, k]))
        # A width is 1 here: proposals centred this near are good ones.
        assert (np.abs(slope[used]) < 0.1).all()


@pytest.mark.parametrize("prior", [UniformBall(1.5), GaussianBall(1.0, 3.0)], ids=["uniform", "gaussian"])
def test_jumps_stay_in_a_ball_and_draw_its_law(prior: Any) -> None:
    played = play(FGTS(alpha=3.0, prior=prior), SQUARE, rounds=200, trials=3, seed=0)
    positions, _ = played.draws(3000)
    assert (np.linalg.norm(positions, axis=-1) <= prior.radius).all()
    for lane, history in enumerate(played.histories):
        for j in range(2):
            law = grid_law(history, j).arm_law(history)
            assert total_variation(law, history.arm_law(positions[lane, j])) < 0.05


def test_mala_reports_its_peaks_and_jumps() -> None:
    played = play(FGTS(alpha=10.0), SQUARE, rounds=100, trials=2, seed=0)
    report = MALA().report(played.state.chains)
    assert (report["peaks"] >= 1.0).all()
    assert ((report["jumps_accepted"] > 0.0) & (report["jumps_accepted"] <= 1.0)).all()
