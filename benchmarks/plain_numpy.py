"""The yardstick: the paper's recipe as a plain NumPy loop over the full history, one trial.

It stores every round's contrast, outcome and action set, and each Langevin step reads all of them: what the algorithm box
says, with matrix products and no Python loop over rounds inside a gradient. Nothing is made slow on purpose.

It runs in a process of its own with one BLAS thread. From about t = 1400 on its matrix-vector products are large enough for
OpenBLAS to use two, which gains at most a quarter of a gradient on an idle machine; but where the second core is taken, the
two threads spin waiting for each other and a gradient takes ten times as long, which would flatter everything measured
against it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.typing import FloatArray


class PlainRun(NamedTuple):
    """One trial: wall seconds, processor seconds, and final average regret."""

    seconds: float
    cpu_seconds: float
    regret: float


def plain_fgts(environment: LinearDuels, *, rounds: int, steps: int, trial: int, seed: int) -> PlainRun:
    """Play FGTS with unadjusted Langevin steps of 0.005 * 0.99^t, eta = 1, alpha = 0.1 and a standard Gaussian prior."""
    streams = Streams(seed, [trial])
    theta_star = environment.instance(streams).theta[0]
    arms = environment.instance(streams).actions(0).features[0]
    generator = np.random.default_rng([seed, trial])
    n_arms, dim = arms.shape
    mu = 0.1 / np.sqrt(rounds)

    contrasts, signs = np.empty((rounds, dim)), np.empty(rounds)
    sets = np.empty((rounds, n_arms, dim))
    played = np.empty((2, rounds, dim))
    utilities = arms @ theta_star
    theta = generator.standard_normal((2, dim))
    regret = 0.0
    started, cpu_started = time.perf_counter(), time.process_time()
    for t in range(rounds):
        step_size = 0.005 * 0.99**t
        for j in range(2):
            adversary = played[1 - j, :t].sum(axis=0)
            for _ in range(steps):
                gradient = plain_gradient(theta[j], contrasts[:t], signs[:t], sets[:t], adversary, mu)
                theta[j] += np.sqrt(2 * step_size) * generator.standard_normal(dim) - step_size * gradient
        first, second = (int(np.argmax(arms @ theta[j])) for j in range(2))
        contrasts[t] = arms[first] - arms[second]
        chance = 1 / (1 + np.exp(-(contrasts[t] @ theta_star)))
        signs[t] = 1.0 if generator.random() < chance else -1.0
        sets[t] = arms
        played[0, t], played[1, t] = arms[first], arms[second]
        regret += utilities.max() - (utilities[first] + utilities[second]) / 2
    return PlainRun(time.perf_counter() - started, time.process_time() - cpu_started, float(regret))


def plain_fgts_apart(*, dim: int, arms: int, rounds: int, steps: int) -> PlainRun:
    """Trial 0 of seed 0 in a fresh process with one BLAS thread."""
    one_thread = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
    arguments = [str(number) for number in (dim, arms, rounds, steps)]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env={**os.environ, **one_thread}, capture_output=True, text=True, check=True
    )
    return PlainRun(*json.loads(done.stdout))


def plain_gradient(
    theta: FloatArray, contrasts: FloatArray, signs: FloatArray, sets: FloatArray, adversary: FloatArray, mu: float
) -> FloatArray:
    """Gradient of -log p_j over all t rounds so far; the Feel-Good maximum is over each round's own set.

    Shapes: contrasts (t, dim), signs (t,), sets (t, n_arms, dim), adversary (dim,) summed over rounds.
    """
    losing = 1 / (1 + np.exp(signs * (contrasts @ theta)))
    t, n_arms, dim = sets.shape
    if t == 0:
        return theta.copy()
    best = np.argmax((sets.reshape(t * n_arms, dim) @ theta).reshape(t, n_arms), axis=1)
    feel_good = sets[np.arange(t), best].sum(axis=0) - adversary
    return np.asarray(theta - (signs * losing) @ contrasts - mu * feel_good)


def check_yardstick(rounds: int = 50) -> None:
    """Stop unless the plain gradient is the one that duelist computes: otherwise the two would not do the same work."""
    environment, policy = LinearDuels(dim=5, arms=8), FGTS(mu=0.3)
    streams = Streams(0, [0])
    instance = environment.instance(streams)
    state = policy.start(Problem(dim=5), streams)
    contrasts, signs, played = [], [], []
    arms = instance.actions(0)
    for t in range(rounds):
        duels, state = policy.choose(state, arms, streams)
        outcomes = instance.outcomes(t, duels)
        state = policy.learn(state, arms, duels, outcomes)
        contrasts.append(duels.contrast[0])
        signs.append(float(outcomes[0]))
        played.append(duels.features[0])
    theta = np.random.default_rng(0).standard_normal((1, 2, 5))
    expected = policy.potential(state).gradient(theta)[0]
    sets = np.repeat(arms.features, rounds, axis=0)
    for j in range(2):
        adversary = np.array(played)[:, 1 - j].sum(axis=0)
        plain = plain_gradient(theta[0, j], np.array(contrasts), np.array(signs), sets, adversary, 0.3)
        np.testing.assert_allclose(plain, expected[j], rtol=1e-9)


if __name__ == "__main__":
    _dim, _arms, _rounds, _steps = (int(word) for word in sys.argv[1:])
    print(json.dumps(plain_fgts(LinearDuels(dim=_dim, arms=_arms), rounds=_rounds, steps=_steps, trial=0, seed=0)))
