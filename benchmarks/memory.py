"""Peak memory of a million rounds at d = 20, each kind of history in a process of its own.

The pairs are uniform, which is the hardest case: every contrast that can occur does.
"""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.duels import duels_between
from duelist.policies.algorithms.sampling.fgts import FGTS

ROUNDS = 1_000_000
DIM = 20
# Kind of history: (fresh arms every round, Feel-Good strength). Fresh arms under a Feel-Good term keep a sample
# of the sets (all of them would be 5 GB here); benchmarks/flat_cost.py measures that one.
KINDS = {"fixed arms": (False, 0.1), "fresh arms, alpha=0": (True, 0.0)}


def learn_rounds(kind: str, rounds: int) -> float:
    """Learn `rounds` duels in one lane and return the peak resident memory of this process in MB."""
    fresh, alpha = KINDS[kind]
    streams = Streams(0, [0])
    instance = LinearDuels(dim=DIM, arms=32, fresh_arms=fresh).instance(streams)
    policy = FGTS(alpha=alpha)
    state = policy.start(Problem(dim=DIM), streams)
    generator = np.random.default_rng(0)
    for t in range(rounds):
        if t % 1000 == 0:
            first = generator.integers(0, 32, size=(1000, 1))
            second = (first + generator.integers(1, 32, size=(1000, 1))) % 32
            outcomes = np.where(generator.random((1000, 1)) < 0.5, 1, -1)
        actions = instance.actions(t)
        duels = duels_between(actions, first[t % 1000], second[t % 1000])
        state = policy.learn(state, actions, duels, outcomes[t % 1000])
    # The history must also be usable at that length: one choice reads all of it.
    policy.choose(state, actions, streams)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peak_megabytes(kind: str) -> float:
    """The peak memory of a million rounds of this kind, in a fresh process."""
    done = subprocess.run([sys.executable, __file__, kind], capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    print(learn_rounds(sys.argv[1], ROUNDS))
