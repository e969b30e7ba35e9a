"""Foresight in a long history: the expansion in place of the contrasts, against fits that read all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import duelist
from duelist.core.serialize import to_arrays
from duelist.policies.parts import prior_scale
from duelist.typing import FloatArray

_DIM, _EXACT = 3, 64


def play(agent: duelist.Agent, votes: int, rng: np.random.Generator) -> None:
    theta = np.array([1.0, -0.5, 0.25])
    for _ in range(votes):
        duel = agent.choose(rng.standard_normal((5, _DIM)))
        chance = 1.0 / (1.0 + np.exp(-theta @ (duel.features[0] - duel.features[1])))
        agent.learn(duel, winner="first" if rng.random() < chance else "second")


def scales_of(agent: duelist.Agent) -> Any:
    state: Any = agent._state.lane.state
    return state.scales


def laplace(zs: FloatArray, losses: FloatArray, ridge: float) -> tuple[FloatArray, FloatArray, float]:
    """Fit, covariance and log evidence but for the prior of the ridge, from every contrast."""

    def loss(theta: FloatArray) -> float:
        logits = zs @ theta
        return float(np.logaddexp(0.0, -logits).sum() + losses @ logits + 0.5 * ridge * theta @ theta)

    fit = minimize(loss, np.zeros(_DIM), method="BFGS", options={"gtol": 1e-8})
    slope = 1.0 / (2.0 + 2.0 * np.cosh(zs @ fit.x))
    hessian = ridge * np.eye(_DIM) + (zs * slope[:, None]).T @ zs
    evidence = -float(fit.fun) + 0.5 * _DIM * np.log(ridge) - 0.5 * float(np.linalg.slogdet(hessian)[1])
    return np.asarray(fit.x), np.asarray(np.linalg.inv(hessian)), float(evidence)


def test_a_long_history_is_read_through_an_expansion_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_scale, "EXACT_ROWS", _EXACT)
    agent = duelist.Agent(duelist.Foresight(), dim=_DIM, seed=0)
    rng = np.random.default_rng(0)
    play(agent, _EXACT + 10, rng)
    monkeypatch.setattr(prior_scale, "refit_scales", None)  # from here on nothing reads all contrasts
    play(agent, 700, rng)
    scales, statistics = scales_of(agent), agent._state.lane.state.history.statistics
    zs, losses = statistics.contrasts[0].T, statistics.losses[0]
    fits = [laplace(zs, losses, ridge) for ridge in scales.ridges[0]]
    counts = np.flatnonzero(scales.weights[0])
    assert len(counts) > 2
    for g in counts:
        theta, covariance, _ = fits[g]
        deviations = np.sqrt(np.diag(covariance))
        assert (np.abs(scales.theta[0, g] - theta) < 0.1 * deviations).all()
        whitener = scales.whitener[0, g]
        np.testing.assert_allclose(np.sqrt(np.diag(whitener.T @ whitener)), deviations, rtol=0.05)
    evidence = np.array([fit[2] for fit in fits]) + prior_scale.LOG_PRIOR
    weights = np.exp(evidence - evidence.max())
    weights[weights < 0.01 * weights.sum()] = 0.0
    np.testing.assert_allclose(scales.weights[0], weights / weights.sum(), atol=0.05)


def test_votes_that_come_at_once_are_followed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_scale, "EXACT_ROWS", _EXACT)
    agent = duelist.Agent(duelist.Foresight(), dim=_DIM, seed=0)
    rng = np.random.default_rng(1)
    play(agent, 20, rng)
    first, second = rng.standard_normal((2, 300, _DIM))
    agent.import_votes(first, second, rng.integers(2, size=300) * 2 - 1)
    assert scales_of(agent).expansion.observations == agent.rounds == 320
    monkeypatch.setattr(prior_scale, "refit_scales", None)
    play(agent, 40, rng)
    statistics = agent._state.lane.state.history.statistics
    g = int(scales_of(agent).weights[0].argmax())
    theta, covariance, _ = laplace(statistics.contrasts[0].T, statistics.losses[0], scales_of(agent).ridges[0, g])
    assert (np.abs(scales_of(agent).theta[0, g] - theta) < 0.1 * np.sqrt(np.diag(covariance))).all()


def test_a_long_history_goes_on_the_same_after_it_was_saved(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prior_scale, "EXACT_ROWS", _EXACT)
    agents = [duelist.Agent(duelist.Foresight(), dim=_DIM, seed=0)]
    play(agents[0], 100, np.random.default_rng(2))
    agents[0].save(tmp_path / "agent")
    agents.append(duelist.Agent.load(tmp_path / "agent"))
    for agent in agents:
        play(agent, 50, np.random.default_rng(3))
    first, second = (to_arrays(agent._state.lane.state) for agent in agents)
    for name, found in first.items():
        np.testing.assert_array_equal(found, second[name], name)
