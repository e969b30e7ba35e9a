"""`duelist bench`: microseconds per round, next to other libraries.

Each library is behind the same two calls: choose, then learn. Only duelpy learns from duels as we do; the others choose one arm
and learn a reward, which is the easier problem. Each adapter uses its library as cheaply as it allows: texts and arrays that
do not change from round to round are made once.
"""

from __future__ import annotations

import importlib
import math
import statistics
from collections.abc import Callable, Sequence
from time import perf_counter_ns, process_time_ns
from typing import Any, NamedTuple, Protocol

import click
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from duelist.core.checks import whole_number
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.typing import FloatArray

# On a busy machine wall time counts waiting for others; processor time does not, but counts threads that spin.
CLOCKS: dict[str, Callable[[], int]] = {"wall": perf_counter_ns, "processor": process_time_ns}
REFERENCE = "Vowpal Wabbit squarecb"


@click.command(context_settings={"show_default": True})
@click.option("--dim", default=10, help="Length of feature vectors.")
@click.option("--arms", default=32, help="Arms to choose from.")
@click.option("--rounds", default=2500, help="Rounds to play.")
@click.option("--repeats", default=3, help="Times each is measured; the fastest counts.")
@click.option(
    "--clock", type=click.Choice(list(CLOCKS)), default="wall", help="On a busy machine, processor time is the fairer."
)
def bench(dim: int, arms: int, rounds: int, repeats: int, clock: str) -> None:
    """Time one round of choose and learn, next to other libraries where they are installed.

    Times are medians over rounds on one instance of the paper's problem, one call at a time, as in live use. The columns on the
    right show how the time per round grows with the rounds before it.
    """
    whole_number("--rounds", rounds, at_least=10)
    whole_number("--repeats", repeats, at_least=1)
    milestones = tuple(sorted({max(10, rounds // 25), max(10, rounds // 5), rounds}))
    speeds = {
        name: measure_fastest(name, dim=dim, arms=arms, milestones=milestones, repeats=repeats, clock=clock)
        for name in LEARNERS
    }
    Console().print(speed_table(speeds, milestones, dim=dim, arms=arms, clock=clock))


def speed_table(speeds: dict[str, Speed], milestones: tuple[int, ...], *, dim: int, arms: int, clock: str = "wall") -> Table:
    """Make the table of results; ratios are to Vowpal Wabbit (VW) where it runs, and the caption names what did not run."""
    table = Table(
        title=f"Microseconds per round ({clock} time), choose + learn, K = {arms}, d = {dim}",
        box=SIMPLE_HEAD,
        title_justify="left",
        caption="\n".join(f"{name}: {speed.problem}" for name, speed in speeds.items() if speed.problem) or None,
        caption_justify="left",
    )
    table.add_column("learner", no_wrap=True)
    for heading in ("median", "to VW", *(f"t = {t}" for t in milestones)):
        table.add_column(heading, justify="right", no_wrap=True)
    reference = speeds[REFERENCE].median if REFERENCE in speeds else math.nan
    for name, speed in speeds.items():
        if speed.problem:
            table.add_row(name, "-", "-", *("-" for _ in milestones))
        else:
            ratio = "-" if math.isnan(reference) else f"{speed.median / reference:.2f}"
            table.add_row(name, f"{speed.median:.0f}", ratio, *(f"{value:.0f}" for value in speed.at))
    return table


def measure_fastest(name: str, *, dim: int, arms: int, milestones: tuple[int, ...], repeats: int, clock: str = "wall") -> Speed:
    """Measure a learner several times, each on another instance, and keep the fastest: the rest is the machine's noise."""
    best = measure(LEARNERS[name], dim=dim, arms=arms, milestones=milestones, clock=clock)
    for seed in range(1, repeats):
        if best.problem:
            break
        again = measure(LEARNERS[name], dim=dim, arms=arms, milestones=milestones, seed=seed, clock=clock)
        best = min(best, again, key=lambda speed: speed.median)
    return best


class Speed(NamedTuple):
    """Microseconds per round.

    Attributes:
        median: over all rounds but the first tenth, in which code warms up.
        at: median over the last hundred rounds before each milestone.
        problem: why there is no number; empty where there is one.
    """

    median: float
    at: tuple[float, ...]
    problem: str = ""


def measure(
    make: Callable[[FloatArray, int], Learner],
    *,
    dim: int,
    arms: int,
    milestones: Sequence[int],
    seed: int = 0,
    clock: str = "wall",
) -> Speed:
    """Play one learner on one instance of the paper's problem and time its calls, and nothing else."""
    instance = LinearDuels(dim=dim, arms=arms).instance(Streams(seed, [0]))
    features = np.array(instance.actions(0).features[0])
    utilities = features @ instance.theta[0]
    chance = np.random.default_rng(seed).random(milestones[-1])
    try:
        learner = make(features, seed)
        times = np.array([_time_round(learner, utilities, draw, CLOCKS[clock]) for draw in chance])
    except ModuleNotFoundError as error:
        return Speed(math.nan, (), f"not installed ({error.name})")
    except Exception as error:  # another library's failure belongs in its row, not in a traceback
        return Speed(math.nan, (), f"does not run: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    at = tuple(statistics.median(times[max(0, t - 100) : t]) / 1000 for t in milestones)
    return Speed(float(np.median(times[len(times) // 10 :])) / 1000, at)


def _time_round(learner: Learner, utilities: FloatArray, draw: float, now: Callable[[], int]) -> int:
    started = now()
    first, second = learner.choose()
    chosen = now()
    # A learner of single arms meets the average arm: its reward is a win over that.
    rival = utilities[second] if second != first else 0.0
    first_won = bool(draw < 1.0 / (1.0 + math.exp(rival - utilities[first])))
    asked = now()
    learner.learn(first_won)
    return now() - asked + chosen - started


Pair = tuple[int, int]


class Learner(Protocol):
    """A learner that plays one round at a time."""

    def choose(self) -> Pair:
        """Rows of the arms to play; the same row twice for a learner of single arms."""

    def learn(self, first_won: bool) -> None:
        """Take the answer to the last choice."""


class OwnAgent:
    """One live lane of FGTS at its defaults."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        self._features = features
        self._agent = Agent(FGTS(), dim=features.shape[1], seed=seed)

    def choose(self) -> Pair:
        """A pair of different arms."""
        self._duel = self._agent.choose(self._features)
        return self._duel.first, self._duel.second

    def learn(self, first_won: bool) -> None:
        """Who won."""
        self._agent.learn(self._duel, winner=self._duel.first if first_won else self._duel.second)


class VowpalWabbit:
    """Contextual bandit with action features and squarecb exploration; text of the arms made once."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("vowpalwabbit")
        self._vw = library.Workspace(f"--cb_explore_adf --squarecb --quiet --random_seed {seed + 1}")
        self._arms = ["| " + " ".join(f"f{i}:{value:g}" for i, value in enumerate(row)) for row in features]
        self._generator = np.random.default_rng(seed)

    def choose(self) -> Pair:
        """An arm drawn from the predicted distribution."""
        probabilities = np.asarray(self._vw.predict(self._arms))
        self._arm = int(np.searchsorted(np.cumsum(probabilities), self._generator.random() * probabilities.sum()))
        self._arm = min(self._arm, len(self._arms) - 1)
        self._probability = float(probabilities[self._arm])
        return self._arm, self._arm

    def learn(self, first_won: bool) -> None:
        """The cost of the arm, at the probability it had."""
        labelled = list(self._arms)
        labelled[self._arm] = f"{self._arm}:{0 if first_won else 1}:{self._probability} {self._arms[self._arm]}"
        self._vw.learn(labelled)


class BayesianBandits:
    """Thompson sampling with one shared logistic regression over the arms' features."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("bayesianbandits")
        design = np.ascontiguousarray(features.T)[None]
        self._agent = library.LipschitzContextualAgent(
            arms=[library.Arm(row) for row in range(len(features))],
            policy=library.ThompsonSampling(),
            arm_featurizer=library.FunctionArmFeaturizer(lambda _context, rows: design[:, :, list(rows)]),
            learner=library.BayesianGLM(alpha=1.0, random_state=seed),
            random_seed=seed,
        )
        self._context = np.zeros((1, 1))

    def choose(self) -> Pair:
        """The best arm under one draw."""
        (arm,) = self._agent.pull(self._context)
        return int(arm), int(arm)

    def learn(self, first_won: bool) -> None:
        """The reward of the arm."""
        self._agent.update(self._context, np.array([float(first_won)]))


class MABWiser:
    """LinTS: a linear regression for each arm on a common context."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        library = _library("mabwiser.mab")
        self._mab = library.MAB(list(range(len(features))), library.LearningPolicy.LinTS(alpha=1.0), seed=seed)
        contexts = np.random.default_rng(seed).standard_normal((4096, features.shape[1]))
        self._contexts, self._round = contexts.tolist(), 0
        # It refuses to predict before a first fit.
        self._mab.fit([0], [0.0], [self._contexts[-1]])

    def choose(self) -> Pair:
        """The best arm under one draw for each."""
        self._context = [self._contexts[self._round % len(self._contexts)]]
        self._arm = self._mab.predict(self._context)
        return self._arm, self._arm

    def learn(self, first_won: bool) -> None:
        """The reward of the arm."""
        self._mab.partial_fit([self._arm], [float(first_won)], self._context)
        self._round += 1


class DuelPy:
    """Double Thompson sampling over pairs of arms, without features."""

    def __init__(self, features: FloatArray, seed: int) -> None:
        algorithms, feedback = _library("duelpy.algorithms"), _library("duelpy.feedback")
        self._answers = _Answers(feedback.FeedbackMechanism, list(range(len(features))))
        self._algorithm = algorithms.DoubleThompsonSampling(
            self._answers.mechanism, time_horizon=10**9, random_state=np.random.RandomState(seed)
        )

    def choose(self) -> Pair:
        """Both at once: the library asks its feedback mechanism while it steps, so all the time is spent here."""
        self._algorithm.step()
        return self._answers.last

    def learn(self, first_won: bool) -> None:
        """The answer that the next step will be given."""
        self._answers.first_won = first_won


class _Answers:
    """A feedback mechanism for duelpy that answers the next duel with a given outcome."""

    def __init__(self, base: Any, arms: list[int]) -> None:
        self.first_won, self.last = True, (0, 0)
        outer = self

        class Mechanism(base):  # type: ignore[misc]
            def duel(self, arm_i: int, arm_j: int) -> bool:
                outer.last = (arm_i, arm_j)
                return outer.first_won

        self.mechanism = Mechanism(arms)


LEARNERS: dict[str, Callable[[FloatArray, int], Learner]] = {
    "duelist FGTS": OwnAgent,
    "Vowpal Wabbit squarecb": VowpalWabbit,
    "bayesianbandits logistic TS": BayesianBandits,
    "MABWiser LinTS": MABWiser,
    "duelpy Double TS": DuelPy,
}


def _library(name: str) -> Any:
    return importlib.import_module(name)
