"""Play a policy on an environment: the round loop, over blocks of lanes in threads.

Kernels release the interpreter lock, so two blocks use two cores. Lanes are independent and named by their trial, so the
numbers do not depend on how lanes are split into blocks.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem, select_lanes
from duelist.core.streams import Streams
from duelist.environments.base import Environment
from duelist.experiments.progress import Progress, locked_progress, progress_bar
from duelist.experiments.run import Run
from duelist.experiments.slate_rounds import SlateResults, play_slates
from duelist.policies.base import Policy
from duelist.policies.registry import plays_slates


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
) -> Run:
    """Play `policy` on independent instances of `environment`.

    Args:
        policy: hyper-parameters; a sequence in place of a number is one value per lane. It shows pairs, or slates.
        environment: recipe of the instances.
        rounds: duels or slates per trial.
        trials: how many, or the trial numbers themselves. Trial n of a seed is the same instance with the same noise for
            every policy, so runs can be compared pair by pair.
        seed: names all random numbers; the same seed gives the same run.
        workers: threads, each with a block of lanes; None for one per core. It changes the time taken and nothing else.
        progress: True for a bar, False for none, None for a bar on a terminal; or a function that is called
            with the number of lane-rounds just played.

    Example:
        >>> import duelist
        >>> run = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=5, arms=8), rounds=50, trials=3, seed=1)
        >>> run.regret.shape, run.final_regret.shape
        ((3, 50), (3,))
    """
    whole_number("rounds", rounds, at_least=1)
    if not isinstance(trials, Sequence | np.ndarray):
        trials = range(whole_number("trials", trials, at_least=1))
    numbers = tuple(trials)
    if not numbers:
        raise InvalidInputError("trials must name at least one trial; got an empty sequence.")
    streams = Streams(seed, numbers)
    total = len(numbers)
    blocks = _blocks(total, workers)
    started = time.perf_counter()
    slates: Any = policy if plays_slates(policy) else None
    results: Any = _Results(total, rounds) if slates is None else SlateResults(total, rounds, slates.choices)
    stop = threading.Event()
    label = type(policy).__name__

    def play(block: slice, tick: Progress) -> dict[str, Any]:
        mine: Any = select_lanes(policy, block, total)
        drawn = streams.select(block)
        if slates is not None:
            return play_slates(mine, environment, drawn, _until(stop, rounds), results, block, tick)
        return _play(mine, environment, drawn, rounds, results, block, tick, stop)

    with _reporter(progress, label, total * rounds) as tick:
        infos = _in_threads(play, blocks, tick, stop)
    info = {name: np.concatenate([part[name] for part in infos]) for name in infos[0]}
    return Run(
        policy=policy,
        environment=environment,
        seed=seed,
        trials=numbers,
        info=info,
        seconds=time.perf_counter() - started,
        **results.columns(),
    )


class _Results:
    """Columns that every block fills for its own lanes."""

    def __init__(self, trials: int, rounds: int) -> None:
        self.regret, self.weak_regret, self.yue_regret = (np.empty((trials, rounds)) for _ in range(3))
        self.first, self.second = (np.empty((trials, rounds), dtype=np.int32) for _ in range(2))
        self.outcomes = np.empty((trials, rounds), dtype=np.int8)

    def columns(self) -> dict[str, Any]:
        for regret in (self.regret, self.weak_regret, self.yue_regret):
            np.cumsum(regret, axis=1, out=regret)
        return {f.name: getattr(self, f.name) for f in fields(Run) if hasattr(self, f.name)}


def _play(
    policy: Policy[Any],
    environment: Environment,
    streams: Streams,
    rounds: int,
    results: _Results,
    block: slice,
    tick: Progress,
    stop: threading.Event,
) -> dict[str, Any]:
    instance = environment.instance(streams)
    state = policy.start(Problem(dim=environment.dim, lanes=len(streams), horizon=rounds), streams)
    for t in range(rounds):
        if stop.is_set():
            raise _Stopped
        actions = instance.actions(t)
        duels, state = policy.choose(state, actions, streams)
        outcomes = instance.outcomes(t, duels)
        _check_winners(outcomes, len(streams), t)
        state = policy.learn(state, actions, duels, outcomes)
        cost = instance.regret(actions, duels)
        results.regret[block, t], results.weak_regret[block, t], results.yue_regret[block, t] = cost
        results.first[block, t], results.second[block, t] = duels.first, duels.second
        results.outcomes[block, t] = outcomes
        tick(len(streams))
    return policy.report(state)


def _until(stop: threading.Event, rounds: int) -> Iterator[int]:
    for t in range(rounds):
        if stop.is_set():
            raise _Stopped
        yield t


def _check_winners(outcomes: Any, lanes: int, round_: int) -> None:
    """Refuse what is no winner per lane, so that no policy has to."""
    if np.shape(outcomes) != (lanes,) or not (np.abs(outcomes) == 1).all():
        raise InvalidInputError(
            f"an environment must say who won: outcomes ({lanes},) of +1 (the first) and -1 (the second); got {outcomes!r} "
            f"in round {round_}. For zeros and ones use 2 * outcome - 1."
        )


def _blocks(total: int, workers: int | None) -> list[slice]:
    """Lanes cut into one block per worker, as even as can be."""
    wanted = whole_number("workers", workers, at_least=1) if workers is not None else os.cpu_count() or 1
    edges = np.linspace(0, total, min(wanted, total) + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def _in_threads(
    play: Callable[[slice, Progress], dict[str, Any]], blocks: list[slice], tick: Progress, stop: threading.Event
) -> list[dict[str, Any]]:
    if len(blocks) == 1:
        return [play(blocks[0], tick)]
    with ThreadPoolExecutor(len(blocks)) as pool:
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
