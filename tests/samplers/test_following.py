"""A Gaussian that follows duels one by one is the one that a pass over all of them gives, and a vote never reads them all."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.history import History
from duelist.kernels.rules.pairs import pair_geometry
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.parts import confidence
from duelist.posteriors.linear import likelihood_from
from duelist.samplers import expansion as expansions
from duelist.samplers.curvature import Curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, Following, follow, no_expansion
from tests.support.builders import history_of, learn_round, random_rounds
from tests.support.oracles import Floats

LANES, DIM = 2, 3
ETA, PRECISION = np.array([1.0, 0.5]), np.array([1.0, 2.0])


def duels_of(history: History) -> Following:
    statistics = history.statistics
    return Following(likelihood_from(statistics, ETA), PRECISION, statistics.newest, history.rounds)


def slope_and_hessian(duels: Following, lane: int, theta: Floats) -> tuple[Floats, Floats]:
    """Of the tempered loss at theta, written down directly."""
    likelihood = duels.likelihood
    n = int(likelihood.n_rows[lane])
    z = likelihood.contrasts[lane, :, :n]
    lose = 1.0 / (1.0 + np.exp(z.T @ theta))
    totals, losses = likelihood.totals[lane, :n], likelihood.losses[lane, :n]
    return ETA[lane] * z @ (losses - totals * lose), ETA[lane] * (z * (totals * lose * (1.0 - lose))) @ z.T


def loss(duels: Following, lane: int, theta: Floats) -> float:
    likelihood = duels.likelihood
    n = int(likelihood.n_rows[lane])
    logits = likelihood.contrasts[lane, :, :n].T @ theta
    totals, losses = likelihood.totals[lane, :n], likelihood.losses[lane, :n]
    penalty = 0.5 * PRECISION[lane] * theta @ theta
    return float(ETA[lane] * (totals @ np.logaddexp(0.0, -logits) + losses @ logits) + penalty)


def followed(n_sets: int, rounds: int, at_a_time: int = 1) -> list[tuple[Curvature, Expansion, Following]]:
    """What is known after every look at a growing history."""
    rng = np.random.default_rng(6)
    sets = [rng.standard_normal((4, DIM)) for _ in range(n_sets)]
    played = [random_rounds(rng, rounds, sets) for _ in range(LANES)]
    history = history_of([run[:1] for run in played])
    curvature, expansion, found = unknown_curvature(LANES, DIM), no_expansion(LANES, DIM), []
    for n in range(1, rounds):
        history = learn_round(history, [run[n] for run in played])
        if n % at_a_time == 0:
            duels = duels_of(history)
            curvature, expansion = follow(curvature, expansion, duels)
            found.append((curvature, expansion, duels))
    return found


@pytest.mark.parametrize("n_sets", [400, 5], ids=["new contrasts", "contrasts that return"])
@pytest.mark.parametrize("at_a_time", [1, 3])
@pytest.mark.parametrize("slow", [expansions._SLOW, 1], ids=["at once", "in two parts"])
def test_expansion_factor_and_mode_are_those_of_all_duels_at_the_reference(
    n_sets: int, at_a_time: int, slow: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expansions, "_SLOW", slow)
    found, references = followed(n_sets, 400, at_a_time), set()
    checked = [one for one in found if one[1].centred >= 0]
    for curvature, expansion, duels in checked[::7]:
        references.add(expansion.centred)
        for lane in range(LANES):
            reference = expansion.reference[lane]
            slope, hessian = slope_and_hessian(duels, lane, reference)
            np.testing.assert_allclose(expansion.slope[lane], slope, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(expansion.hessian[lane], hessian, rtol=1e-9, atol=1e-9)
            whole = hessian + PRECISION[lane] * np.eye(DIM)
            whitener = curvature.whitener[lane]
            np.testing.assert_allclose(whitener.T @ whitener @ whole, np.eye(DIM), atol=1e-8)
            step = np.linalg.solve(whole, slope + PRECISION[lane] * reference)
            np.testing.assert_allclose(curvature.mode[lane], reference - step, rtol=1e-8, atol=1e-9)
    if at_a_time == 1 or n_sets == 400:
        assert len(references) > 5, "the reference moves on"
    assert any(one[1].next_factor.size for one in found) == (slow == 1)


def test_a_factor_and_its_inverse_are_not_worked_out_with_the_same_duel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expansions, "_SLOW", 1)
    factored = 0
    for (_, before, _), (_, after, _) in itertools.pairwise(followed(400, 200)):
        renewed = after.centred != before.centred
        assert renewed == bool(before.next_factor.size), "the new reference is there one duel after its factor"
        assert not (renewed and after.next_factor.size)
        factored += renewed
    assert factored > 5


def test_the_mode_stays_within_a_fraction_of_its_width_of_the_true_one() -> None:
    for curvature, _, duels in followed(400, 400)[50::50]:
        for lane in range(LANES):
            true = minimize(partial(loss, duels, lane), np.zeros(DIM), tol=1e-10).x
            away = np.linalg.solve(curvature.whitener[lane].T, curvature.mode[lane] - true)
            assert np.linalg.norm(away) < 0.1


def test_before_the_first_pass_a_duel_moves_the_gaussian_to_the_mode_of_their_product() -> None:
    rng = np.random.default_rng(3)
    dim = 40  # the first pass waits for a quarter of that
    rounds = [random_rounds(rng, 3, [rng.standard_normal((4, dim)) for _ in range(3)]) for _ in range(LANES)]
    curvature = Curvature(np.zeros((LANES, dim)), np.eye(dim) / np.sqrt(PRECISION)[:, None, None], 0)
    expansion = no_expansion(LANES, dim)._replace(observations=0)
    duels = duels_of(history_of([run[:1] for run in rounds]))
    after, _ = follow(curvature, expansion, duels)
    for lane in range(LANES):
        z = duels.likelihood.contrasts[lane, :, 0]
        assert z.any(), "two different arms"
        lost, spread = duels.likelihood.losses[lane, 0], z @ z / PRECISION[lane]

        def energy(u: float, lane: int = lane, lost: float = lost, spread: float = spread) -> float:
            return float(0.5 * u * u / spread + ETA[lane] * (np.logaddexp(0.0, -u) + lost * u))

        u = minimize_scalar(energy, bounds=(-50.0, 50.0), options={"xatol": 1e-10}).x
        np.testing.assert_allclose(after.mode[lane], z / PRECISION[lane] * u / spread, atol=1e-6)
        weight = ETA[lane] / (2.0 + np.exp(u) + np.exp(-u))
        whole = PRECISION[lane] * np.eye(dim) + weight * np.outer(z, z)
        np.testing.assert_allclose(after.whitener[lane].T @ after.whitener[lane] @ whole, np.eye(dim), atol=1e-6)


def test_a_vote_reads_a_bounded_part_of_a_long_history() -> None:
    """Old contrasts that the pass has read are overwritten with nonsense: if they were read again, it would show."""
    curvature, expansion, duels = followed(400, 400)[-1]
    assert expansion.centred >= 0
    rng = np.random.default_rng(9)
    one_more = duels.likelihood._replace(contrasts=duels.likelihood.contrasts.copy(), n_rows=duels.likelihood.n_rows + 1)
    room = [np.zeros((LANES, 1)), np.ones((LANES, 1))]
    one_more = one_more._replace(
        contrasts=np.concatenate([one_more.contrasts, rng.standard_normal((LANES, DIM, 1))], axis=2),
        totals=np.concatenate([one_more.totals, room[1]], axis=1),
        losses=np.concatenate([one_more.losses, room[0]], axis=1),
    )
    for lane in range(LANES):
        read = int(expansion.next_rows[lane]) if expansion.next_centred >= 0 else 0
        one_more.contrasts[lane][:, :read] = np.nan
        one_more.contrasts[lane][:, read + 32 : -1] = np.nan
    after, _ = follow(
        curvature, expansion, duels._replace(likelihood=one_more, newest=None, observations=duels.observations + 1)
    )
    assert np.isfinite(after.mode).all()
    assert np.isfinite(after.whitener).all()


@pytest.mark.parametrize("dim", [4, 100])
def test_the_fit_of_a_long_history_is_near_the_one_that_reads_all_of_it(dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confidence, "EXACT_ROWS", 150)
    environment, streams = LinearDuels(dim=dim, arms=6, fresh_arms=True, geometry="sphere"), Streams(0, [0])
    instance, policy = environment.instance(streams), CoLSTIM()
    state = policy.start(Problem(dim=dim, lanes=1, horizon=500), streams)
    for t in range(500):
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
    fit = state.fit
    assert fit.expansion.centred >= 0
    counts = fit.history.statistics
    n = int(counts.n_rows[0])
    z, losses, ridge = counts.contrasts[0, :, :n].T, counts.losses[0, :n], 2.0
    theta = np.zeros(dim)
    for _ in range(50):
        lose = 1.0 / (1.0 + np.exp(z @ theta))
        gradient = z.T @ (losses - counts.totals[0, :n] * lose) + ridge * theta
        hessian = (z.T * (lose * (1.0 - lose))) @ z + ridge * np.eye(dim)
        theta -= np.linalg.solve(hessian, gradient)
    away = fit.theta[0] - theta
    assert away @ hessian @ away < 0.05 * dim / 4, "a fraction of a posterior standard deviation in every direction"
    gram = z.T @ z + ridge * np.eye(dim)
    np.testing.assert_allclose(fit.whitener[0].T @ fit.whitener[0] @ gram, np.eye(dim), atol=1e-8)


def test_widths_of_more_arms_than_are_whitened_at_a_time() -> None:
    rng = np.random.default_rng(2)
    columns, theta = rng.standard_normal((1, 3, 1030)), rng.standard_normal((1, 3))
    whitener = np.tril(rng.standard_normal((1, 3, 3)))
    utilities, widths = pair_geometry(columns, theta, whitener)
    white = whitener[0] @ columns[0]
    np.testing.assert_allclose(utilities[0], theta[0] @ columns[0])
    for i in (0, 5, 1029):
        np.testing.assert_allclose(widths[0, i], np.linalg.norm(white - white[:, i : i + 1], axis=0), atol=1e-12)
