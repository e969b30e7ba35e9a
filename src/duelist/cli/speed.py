"""How long one round takes: choose and learn, one round at a time, and how that grows with the rounds before."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple

import numpy as np

from duelist.cli.rivals import Contestant
from duelist.core.checks import FloatArray
from duelist.core.streams import Streams
from duelist.environments.linear_duels import LinearDuels


class Speed(NamedTuple):
    """Microseconds a round.

    Attributes:
        median: over all rounds but the first tenth, in which code warms up.
        at: median over the last hundred rounds before each milestone.
        problem: why there is no number; empty where there is one.
    """

    median: float
    at: tuple[float, ...]
    problem: str = ""


# On a busy machine wall time counts waiting for others; processor time does not, but counts threads that spin.
CLOCKS: dict[str, Callable[[], int]] = {"wall": perf_counter_ns, "processor": process_time_ns}


def measure(
    make: Callable[[FloatArray, int], Contestant],
    *,
    dim: int,
    arms: int,
    milestones: Sequence[int],
    seed: int = 0,
    clock: str = "wall",
) -> Speed:
    """Play one contestant on one instance of the paper's problem and time its calls, and nothing else."""
    instance = LinearDuels(dim=dim, arms=arms).instance(Streams(seed, [0]))
    features = np.array(instance.actions(0).features[0])
    utilities = features @ instance.theta[0]
    chance = np.random.default_rng(seed).random(milestones[-1])
    try:
        contestant = make(features, seed)
        times = np.array([_round(contestant, utilities, draw, CLOCKS[clock]) for draw in chance])
    except ModuleNotFoundError as error:
        return Speed(math.nan, (), f"not installed ({error.name})")
    except Exception as error:  # another library's failure belongs in its row, not in a traceback
        return Speed(math.nan, (), f"does not run: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    at = tuple(statistics.median(times[max(0, t - 100) : t]) / 1000 for t in milestones)
    return Speed(float(np.median(times[len(times) // 10 :])) / 1000, at)


def _round(contestant: Contestant, utilities: FloatArray, draw: float, now: Callable[[], int]) -> int:
    started = now()
    first, second = contestant.choose()
    chosen = now()
    # A learner of single arms meets the average arm: its reward is a win over that.
    rival = utilities[second] if second != first else 0.0
    first_won = bool(draw < 1.0 / (1.0 + math.exp(rival - utilities[first])))
    asked = now()
    contestant.learn(first_won)
    return now() - asked + chosen - started
