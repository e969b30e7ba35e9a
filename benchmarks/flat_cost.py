"""Fresh arms every round, K = 32, d = 20: does a round get dearer, is the posterior still right, and how much memory is used?

    python benchmarks/flat_cost.py cost       median of choose + learn at t = 1,000 and t = 100,000, stepped in turn (minutes)
    python benchmarks/flat_cost.py error      mean and sd at t = 20,000 against the full posterior (minutes)
    python benchmarks/flat_cost.py memory     peak memory of a million rounds with the Feel-Good term on (minutes)

The full posterior keeps every contrast and every action set. Its moments come from draws of the fast posterior,
weighted by the ratio of the two densities: the effective size of the weights says how good that is.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.duels import duels_between
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.linear import LinearPotential, finite_tilt, likelihood_from
from duelist.samplers.mala import MALA

DIM, ARMS = 20, 32
ENVIRONMENT = LinearDuels(dim=DIM, arms=ARMS, fresh_arms=True)


class OneLane:
    """A run that can be stepped and timed."""

    def __init__(self, policy: FGTS, horizon: int, trial: int = 0) -> None:
        self.policy, self.streams = policy, Streams(0, [trial])
        self.instance = ENVIRONMENT.instance(self.streams)
        self.state: Any = policy.start(Problem(dim=DIM, horizon=horizon), self.streams)
        self.rounds = 0
        self.adversary = np.zeros((1, 2, DIM))

    def step(self) -> float:
        """Play one round; the seconds of choose and learn."""
        actions = self.instance.actions(self.rounds)
        started = time.perf_counter()
        duels, asked = self.policy.choose(self.state, actions, self.streams)
        chosen = time.perf_counter()
        outcomes = self.instance.outcomes(self.rounds, duels)
        told = time.perf_counter()
        self.state = self.policy.learn(asked, actions, duels, outcomes)
        done = time.perf_counter()
        self.adversary += duels.features[:, ::-1]
        self.rounds += 1
        return (chosen - started) + (done - told)

    def until(self, rounds: int) -> OneLane:
        """Play up to that many rounds."""
        while self.rounds < rounds:
            self.step()
        return self


def measure_cost(early: int = 1_000, late: int = 100_000, window: int = 400) -> None:
    old = OneLane(FGTS(), late).until(late - window // 2)
    young = OneLane(FGTS(), late).until(early - window // 2)
    times = [(young.step(), old.step()) for _ in range(window)]
    first, last = median(t for t, _ in times), median(t for _, t in times)
    print(f"median of choose + learn: {first * 1e6:.0f} us at t = {early:,}, {last * 1e6:.0f} us at t = {late:,}")
    print(f"ratio {last / first:.2f}")


def measure_error(rounds: int = 20_000, alpha: float = 0.1, trial: int = 0) -> None:
    run = OneLane(FGTS(alpha=alpha), rounds, trial).until(rounds)
    fast = run.policy.potential(run.state)
    sets = np.stack([run.instance.actions(t).columns[0] for t in range(rounds)])[None]
    full = LinearPotential(
        run.policy.prior,
        likelihood_from(run.state.history.statistics, run.state.settings.eta),
        finite_tilt(sets, np.ones(rounds), run.adversary, fast.mu),
        chains=2,
        observations=rounds,
    )
    sampler, streams = MALA(), Streams(1, [0])
    chains = run.state.chains
    for call in range(50):
        chains = sampler.advance(fast, chains, streams, call)
    _, trace = sampler.trace(fast, chains, streams, 50, 2_000)
    draws = trace.path[0]
    energy = np.array([full.value(np.ascontiguousarray(draws[None, :, i]))[0] for i in range(draws.shape[1])]).T
    log_weight = trace.energy[0] - energy
    weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    mean = np.einsum("cn,cnd->cd", weight, draws)
    sd = np.sqrt(np.einsum("cn,cnd->cd", weight, (draws - mean[:, None]) ** 2))
    off, ratio = np.abs(draws.mean(axis=1) - mean) / sd, draws.std(axis=1) / sd
    print(
        f"t = {rounds:,}, alpha = {alpha:g}: mean off by at most {off.max():.3f} sd, "
        f"sd ratio {ratio.min():.3f}-{ratio.max():.3f} "
        f"(effective size of the weights {(1 / (weight**2).sum(axis=1)).min():.0f} of {draws.shape[1]})"
    )


def measure_memory(rounds: int = 1_000_000) -> None:
    streams = Streams(0, [0])
    instance, policy = ENVIRONMENT.instance(streams), FGTS()
    state = policy.start(Problem(dim=DIM, horizon=rounds), streams)
    generator = np.random.default_rng(0)
    for t in range(rounds):
        actions = instance.actions(t)
        first = generator.integers(ARMS, size=1)
        duels = duels_between(actions, first, (first + generator.integers(1, ARMS, size=1)) % ARMS)
        state = policy.learn(state, actions, duels, generator.choice([-1, 1], size=1))
    started = time.perf_counter()
    policy.choose(state, actions, streams)
    first_choice = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{rounds:,} rounds: peak {peak:.0f} MB; one choice with the reference still to be found took {first_choice:.1f} s")


if __name__ == "__main__":
    measure: dict[str, Callable[[], None]] = {"cost": measure_cost, "error": measure_error, "memory": measure_memory}
    measure[sys.argv[1]]()
