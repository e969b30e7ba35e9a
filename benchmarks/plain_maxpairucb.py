"""The yardstick: MaxPairUCB as a plain NumPy and SciPy loop, one run.

It keeps every round's contrast, fits them all again every round with `scipy.optimize.minimize` from the last fit, and scores
all pairs at once with matrix products. Nothing is made slow on purpose. L-BFGS-B with the gradient is the fastest of SciPy's
methods here; it stops on the gradient, so that its estimates agree with ours to five digits, where its default stop on the
loss comes earlier. It runs in a process of its own with one BLAS thread, since two threads that wait for a busy core spin and
take ten times as long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.policies.algorithms.confidence.maxpairucb import MaxPairUCB
from duelist.typing import FloatArray


class PlainRun(NamedTuple):
    """One run: wall seconds, processor seconds, and final average regret."""

    seconds: float
    cpu_seconds: float
    regret: float


def plain_fit(start: FloatArray, contrasts: FloatArray, signs: FloatArray, ridge: float) -> FloatArray:
    """Minimise ridge/2 |theta|^2 + sum log(1 + exp(-y <theta, z>)) from `start`."""
    signed = contrasts * signs[:, None]

    def loss_and_gradient(theta: FloatArray) -> tuple[float, FloatArray]:
        logits = signed @ theta
        value = 0.5 * ridge * float(theta @ theta) + float(np.logaddexp(0.0, -logits).sum())
        return value, ridge * theta - expit(-logits) @ signed

    found = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-5})
    return np.asarray(found.x)


def plain_maxpairucb(environment: LinearDuels, *, rounds: int, radius: float, ridge: float, trial: int, seed: int) -> PlainRun:
    """Play MaxPairUCB, refitting every round."""
    streams = Streams(seed, [trial])
    instance = environment.instance(streams)
    theta_star, arms = instance.theta[0], instance.actions(0).features[0]
    generator = np.random.default_rng([seed, trial])
    n_arms, dim = arms.shape
    differences = arms[:, None, :] - arms[None, :, :]
    flat = differences.reshape(-1, dim)
    gram, theta = ridge * np.eye(dim), np.zeros(dim)
    contrasts, signs = np.empty((rounds, dim)), np.empty(rounds)
    utilities = arms @ theta_star
    regret = 0.0
    started, cpu_started = time.perf_counter(), time.process_time()
    for t in range(rounds):
        widths = np.sqrt(((flat @ np.linalg.inv(gram)) * flat).sum(axis=1)).reshape(n_arms, n_arms)
        estimates = arms @ theta
        first, second = divmod(int(np.argmax(estimates[:, None] + estimates[None, :] + radius * widths)), n_arms)
        z = differences[first, second]
        contrasts[t], signs[t] = z, 1.0 if generator.random() < expit(z @ theta_star) else -1.0
        gram += np.outer(z, z)
        theta = plain_fit(theta, contrasts[: t + 1], signs[: t + 1], ridge)
        regret += utilities.max() - (utilities[first] + utilities[second]) / 2
    return PlainRun(time.perf_counter() - started, time.process_time() - cpu_started, float(regret))


def plain_runs_apart(*, dim: int, arms: int, rounds: int, radii: Sequence[float], trials: int) -> list[PlainRun]:
    """`plain_maxpairucb` at every radius and trial, in a process of its own with one BLAS thread."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, str(dim), str(arms), str(rounds), str(trials), *map(str, radii)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [PlainRun(*run) for run in json.loads(done.stdout)]


def check_yardstick(rounds: int = 60) -> None:
    """Stop unless both fit the same estimate to the same duels: otherwise the two would not do the same work."""
    policy, streams = MaxPairUCB(ridge=2.0), Streams(0, [0])
    instance = LinearDuels(dim=5, arms=8).instance(streams)
    arms = instance.actions(0)
    state = policy.start(Problem(dim=5, horizon=rounds), streams)
    contrasts, signs = [], []
    for t in range(rounds):
        duels, state = policy.choose(state, arms, streams)
        outcomes = instance.outcomes(t, duels)
        state = policy.learn(state, arms, duels, outcomes)
        contrasts.append(duels.contrast[0])
        signs.append(float(outcomes[0]))
    fitted = plain_fit(np.zeros(5), np.array(contrasts), np.array(signs), 2.0)
    np.testing.assert_allclose(fitted, state.theta[0], atol=1e-5)


if __name__ == "__main__":
    _dim, _arms, _rounds, _trials = (int(word) for word in sys.argv[1:5])
    _environment = LinearDuels(dim=_dim, arms=_arms)
    _runs = [
        plain_maxpairucb(_environment, rounds=_rounds, radius=float(_radius), ridge=2.0, trial=_trial, seed=0)
        for _radius in sys.argv[5:]
        for _trial in range(_trials)
    ]
    print(json.dumps(_runs))
