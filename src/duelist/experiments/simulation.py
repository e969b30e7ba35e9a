"""Play a policy on an environment: the round loop, over blocks of lanes in threads.

Kernels release the interpreter lock, so two blocks use two cores. Lanes are independent and named by their trial, so the
numbers do not depend on how lanes are split into blocks. Where answers are late, the policy chooses knowing what is pending,
and learns every answer, when it comes, with the action set of its question.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import require_memory, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem, select_lanes
from duelist.core.streams import Streams
from duelist.environments.base import NEVER, Environment, Instance, plays_lanes_apart, show_duels
from duelist.environments.registry import require_environment
from duelist.experiments.progress import Progress, locked_progress, progress_bar
from duelist.experiments.records import kept_rounds
from duelist.experiments.regret_columns import read_regret, read_simple_regret
from duelist.experiments.run import NO_ANSWER, Run
from duelist.experiments.slate_rounds import SlateResults, play_slates
from duelist.history.duels import Duels, are_outcomes
from duelist.kernels.compile import compile_clock
from duelist.policies.base import FRESH_QUESTIONS, Policy, Round, check_choice
from duelist.policies.codec import is_registered
from duelist.policies.registry import plays_slates, require_policy
from duelist.typing import FloatArray, IntArray

# Wins without a single loss beside so many ties: more likely zeros and ones than ties.
_SUSPICIOUS = 20
_BYTES_PER_ROUND = 3 * 8 + 2 * 4 + 1  # three regrets, two rows, an outcome


class _Stopped(Exception):  # noqa: N818 - not an error: another block failed or the user pressed Ctrl-C
    pass


def simulate(
    policy: Policy[Any],
    environment: Environment,
    *,
    rounds: int,
    trials: int | Sequence[int] = 30,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | Callable[[int], None] | None = None,
    every: int = 1,
    simple_regret: int = 0,
) -> Run:
    """Play `policy` on independent instances of `environment`.

    Args:
        policy: hyper-parameters; those that are declared `PerLane` may be a sequence, one value per lane. A policy that shows
            slates is answered with rankings.
        environment: recipe of the instances.
        rounds: duels or slates per trial.
        trials: how many, or the trial numbers themselves. Trial n of a seed is the same instance with the same noise for
            every policy, so runs can be compared pair by pair.
        seed: names all random numbers; the same seed gives the same run.
        workers: threads, each with a block of lanes; None for one per core. It changes the time taken and nothing else.
        progress: True for a bar, False for none, None for a bar on a terminal; or a function that is called
            with the number of lane-rounds just played.
        every: keep every so many rounds, and the last, of the columns of the run: for runs too long to keep whole. Sums are of
            all rounds.
        simple_regret: so many rounds apart, and after the last, record what the arm costs that the policy would recommend then;
            0 for never.

    Example:
        >>> import duelist
        >>> run = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=5, arms=8), rounds=50, trials=3, seed=1)
        >>> run.regret.shape, run.final_regret.shape
        ((3, 50), (3,))
    """
    require_policy(policy)
    require_environment(environment)
    whole_number("rounds", rounds, at_least=1)
    if not isinstance(trials, Sequence | np.ndarray):
        trials = range(whole_number("trials", trials, at_least=1))
    numbers = tuple(trials)
    if not numbers:
        raise InvalidInputError("trials must name at least one trial; got an empty sequence.")
    streams = Streams(seed, numbers)
    total = len(numbers)
    workers = whole_number("workers", workers, at_least=1) if workers is not None else os.cpu_count() or 1
    blocks = _blocks(total, total if plays_lanes_apart(environment) else workers)
    started = time.perf_counter()
    label = type(policy).__name__
    every, simple_regret = whole_number("every", every, at_least=1), whole_number("simple_regret", simple_regret)
    slates: Any = policy if plays_slates(policy) else None
    if slates is not None and every > 1:
        raise InvalidInputError("every is for policies that show pairs; leave it out for one that shows slates.")
    results: Any = (
        _Results(total, rounds, every, simple_regret)
        if slates is None
        else SlateResults(total, rounds, slates.choices, simple_regret)
    )
    stop = threading.Event()

    def play(block: slice, tick: Progress) -> dict[str, Any]:
        part: Any = select_lanes(policy, block, total)
        drawn = streams.select(block)
        if slates is not None:
            return play_slates(part, environment, drawn, _until(stop, rounds), results, block, tick)
        return _play(part, environment, drawn, _Record(results, block), tick, stop)

    with _reporter(progress, label, total * rounds) as tick, compile_clock() as compiling:
        infos = _in_threads(play, blocks, workers, tick, stop)
    if slates is None:
        _warn_of_zeros_and_ones(results.outcomes, environment)
    info = {name: np.concatenate([part[name] for part in infos]) for name in infos[0]}
    return Run(
        policy=policy,
        environment=environment,
        seed=seed,
        trials=numbers,
        info=info,
        seconds=max(time.perf_counter() - started - compiling.seconds, 0.0),
        compile_seconds=compiling.seconds,
        **results.columns(),
    )


class _Results:
    """Columns that every block fills for its own lanes; those of regrets are made when the first block knows their names."""

    def __init__(self, trials: int, rounds: int, every: int, simple_every: int) -> None:
        self.rounds, self.every, self.simple_every = rounds, every, simple_every
        kept = -(-rounds // every)
        advice = f"Keep fewer: every={max(rounds // 1000, 1)} keeps a thousand."
        require_memory(f"keeping {kept:,} rounds of {trials:,} trial(s)", trials * kept * _BYTES_PER_ROUND, advice)
        self.kept = kept_rounds(rounds, every)
        self.shape = (trials, len(self.kept))
        self.regrets: dict[str, FloatArray] = {}
        self.first, self.second = (np.empty(self.shape, dtype=np.int32) for _ in range(2))
        self.outcomes = np.full(self.shape, NO_ANSWER, dtype=np.int8)
        self.simple_rounds = kept_rounds(rounds, simple_every) if simple_every else None
        self.simple = None if self.simple_rounds is None else np.empty((trials, len(self.simple_rounds)))
        self._lock = threading.Lock()

    def name_regrets(self, names: Sequence[str]) -> None:
        """Make the columns, once."""
        with self._lock:
            for name in names:
                if name not in self.regrets:
                    self.regrets[name] = np.full(self.shape, np.nan)

    def columns(self) -> dict[str, Any]:
        """The columns under their names in `Run`."""
        return {
            "regrets": self.regrets,
            "rounds": self.kept,
            "first": self.first,
            "second": self.second,
            "outcomes": self.outcomes,
            "simple_regret": self.simple,
            "simple_rounds": self.simple_rounds,
        }


class _Record:
    """What one block writes into the results: it sums regrets up and knows which rounds are kept."""

    def __init__(self, results: _Results, block: slice) -> None:
        self.results, self.block, self.rounds = results, block, results.rounds
        self._sums: dict[str, FloatArray] = {}

    def _is_due(self, round_: int, every: int) -> bool:
        return (round_ + 1) % every == 0 or round_ + 1 == self.rounds

    def write(self, round_: int, duels: Duels, cost: dict[str, FloatArray]) -> None:
        """Add up the cost of a round, and keep its row if it is one to keep."""
        if cost.keys() != self._sums.keys():
            if self._sums:
                raise InvalidInputError(
                    f"regret must have the same kinds in every round, {', '.join(self._sums)}; got {', '.join(cost)} in round "
                    f"{round_}. Give NaN where a kind is not defined."
                )
            self.results.name_regrets([*cost])
            self._sums = {name: np.zeros(len(column)) for name, column in cost.items()}
        for name, column in cost.items():
            self._sums[name] += column
        if self._is_due(round_, self.results.every):
            place = round_ // self.results.every
            for name, total in self._sums.items():
                self.results.regrets[name][self.block, place] = total
            self.results.first[self.block, place], self.results.second[self.block, place] = duels.first, duels.second

    def write_outcomes(self, round_: int, outcomes: IntArray) -> None:
        """Keep what was learnt of a round."""
        if self._is_due(round_, self.results.every):
            self.results.outcomes[self.block, round_ // self.results.every] = outcomes

    def wants_recommendation(self, round_: int) -> bool:
        """Whether the simple regret of this round is to be kept."""
        return bool(self.results.simple_every) and self._is_due(round_, self.results.simple_every)

    def write_simple(self, round_: int, regret: FloatArray) -> None:
        """Keep the simple regret of a round."""
        if self.results.simple is not None:
            self.results.simple[self.block, round_ // self.results.simple_every] = regret


class _Inbox:
    """Answers that are on their way, in the order of their questions."""

    def __init__(self, instance: Any) -> None:
        own = getattr(type(instance), "delay", Instance.delay) is not Instance.delay
        self._delay = instance.delay if own else None
        self._open: dict[int, tuple[float, Round]] = {}

    def pending(self, round_: int) -> list[Duels]:
        """Duels that wait for an answer, oldest first; those of long ago count as lost."""
        return [duels for asked, (_, (_, duels, _)) in self._open.items() if asked >= round_ - FRESH_QUESTIONS]

    def arrive(self, round_: int, actions: ActionSet, duels: Duels, outcomes: IntArray) -> list[tuple[int, Round]]:
        """What is known after this round, with the rounds it was asked in."""
        if self._delay is None:
            return [(round_, (actions, duels, outcomes))]
        wait = self._wait(round_, duels)
        if wait != NEVER:
            self._open[round_] = (round_ + wait, (actions, duels, outcomes))
        else:
            self._open[round_] = (np.inf, (actions, duels, outcomes))
            lost = [asked for asked, (due, _) in self._open.items() if due == np.inf and asked < round_ - FRESH_QUESTIONS]
            for asked in lost:
                del self._open[asked]
        here = [asked for asked, (due, _) in self._open.items() if due <= round_]
        return [(asked, self._open.pop(asked)[1]) for asked in here]

    def _wait(self, round_: int, duels: Duels) -> int:
        assert self._delay is not None
        delays = np.asarray(self._delay(round_, duels))
        if delays.shape != (len(duels.first),) or delays.dtype.kind not in "iu" or (delays < NEVER).any():
            raise InvalidInputError(
                f"delay must be ({len(duels.first)},) whole numbers, rounds until each answer comes, or {NEVER} for never; got "
                f"{delays!r} in round {round_}."
            )
        if (delays != delays[0]).any():
            raise InvalidInputError(
                f"delay must be the same in every lane; got {delays!r} in round {round_}. Lanes advance together: give the "
                f"environment a lanes_apart = True, and they are played one by one."
            )
        return int(delays[0])


def _play(
    policy: Policy[Any], environment: Environment, streams: Streams, record: _Record, tick: Progress, stop: threading.Event
) -> dict[str, Any]:
    instance = environment.instance(streams)
    lanes = len(streams)
    state = policy.start(Problem(dim=environment.dim, lanes=lanes, horizon=record.rounds), streams)
    inbox = _Inbox(instance)
    aware = getattr(policy, "choose_with_pending", None)
    known = is_registered(policy)  # and tested: what it chooses is not checked in every round
    for t in _until(stop, record.rounds):
        actions = instance.actions(t)
        pending = inbox.pending(t)
        if pending and aware is not None:
            choice = aware(state, actions, streams, pending)
        else:
            choice = policy.choose(state, actions, streams)
        duels, state = choice if known else check_choice(policy, choice, actions)
        seen = show_duels(instance, t, duels)
        outcomes = instance.outcomes(t, seen)
        _check_outcomes(outcomes, lanes, t, environment)
        record.write(t, duels, read_regret(instance.regret(actions, duels), lanes, t, environment))
        for asked, (offered, shown, answers) in inbox.arrive(t, actions, seen, outcomes):
            state = policy.learn(state, offered, shown, answers)
            record.write_outcomes(asked, answers)
        if record.wants_recommendation(t):
            record.write_simple(t, read_simple_regret(policy, state, actions, instance))
        tick(lanes)
    return policy.report(state)


def _until(stop: threading.Event, rounds: int) -> Iterator[int]:
    for t in range(rounds):
        if stop.is_set():
            raise _Stopped
        yield t


def _check_outcomes(outcomes: Any, lanes: int, round_: int, environment: Any) -> None:
    """Refuse what is no answer per lane, so that no policy has to."""
    if not are_outcomes(outcomes, lanes):
        raise InvalidInputError(
            f"outcomes of {type(environment).__name__} must be ({lanes},), one per lane: +1 where the first won, -1 where the "
            f"second did and 0 for a tie; got {outcomes!r} in round {round_}."
        )


def _warn_of_zeros_and_ones(outcomes: Any, environment: Any) -> None:
    wins, ties, losses = ((outcomes == value).sum() for value in (1, 0, -1))
    if not losses and min(wins, ties) >= _SUSPICIOUS:
        warnings.warn(
            f"outcomes of {type(environment).__name__} were +1 {wins} times, 0 {ties} times and never -1. 0 is a tie: if it is "
            f"meant as a loss, use 2 * outcome - 1.",
            UserWarning,
            stacklevel=3,
        )


def _blocks(total: int, wanted: int) -> list[slice]:
    """Lanes cut into so many blocks, as even as can be."""
    edges = np.linspace(0, total, min(wanted, total) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def _in_threads(
    play: Callable[[slice, Progress], dict[str, Any]], blocks: list[slice], workers: int, tick: Progress, stop: threading.Event
) -> list[dict[str, Any]]:
    if min(len(blocks), workers) == 1:
        return [play(block, tick) for block in blocks]
    with ThreadPoolExecutor(min(len(blocks), workers)) as pool:
        futures = [pool.submit(play, block, tick) for block in blocks]
        try:
            # Stop the others as soon as one fails, and on Ctrl-C, rather than when they are done.
            for future in futures:
                future.add_done_callback(lambda done: stop.set() if done.exception() else None)
            outcomes = [future.exception() for future in futures]
        except BaseException:
            stop.set()
            raise
    for error in outcomes:
        if error is not None and not isinstance(error, _Stopped):
            raise error
    return [future.result() for future in futures]


def _reporter(progress: bool | Callable[[int], None] | None, label: str, total: int) -> Any:
    if callable(progress):
        return locked_progress(progress)
    return progress_bar(label, total, show=progress)
