"""Run a spec: parallel over blocks, resumable, and exact.

Finished blocks are files; a run computes what is missing and assembles the table from all of them. The table has the same
bytes whatever the number of workers, and however often the run was killed on the way.

Threads of this process compute the blocks, or the workers of a Dask cluster. Threads are enough on one machine: kernels release
the interpreter lock, and two threads on two cores measured 2.0 times the speed of one, without the seconds that a process takes
to start. Both kinds of worker are one function, `submit(text, tick)`, which returns a future of the block's file. A block
travels as text and comes back as bytes, so cluster workers need the package and no shared disk.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from duelist.core.checks import whole_number
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.core.files import write_whole
from duelist.environments.tables import Backend, make_frame
from duelist.experiments.progress import SweepDisplay, sweep_display
from duelist.experiments.records import ENVIRONMENT
from duelist.experiments.sweep.block_store import (
    BlockStore,
    compute_block,
    directory_lock,
    parquet_bytes,
    processor_seconds,
)
from duelist.experiments.sweep.blocks import Block, Cell, first_cells, make_test_cell, split_cell
from duelist.experiments.sweep.result_table import result_table
from duelist.experiments.sweep.spec import Spec

Tick = Callable[[int], None]
Submit = Callable[[str, Tick], "Future[bytes]"]


@dataclass(frozen=True)
class Failure:
    """A block without a result: which cell, and why."""

    cell: str
    reason: str

    def __str__(self) -> str:
        return f"{self.cell}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Results:
    """The result of running a spec.

    Attributes:
        spec: the experiment.
        path: the table on disk.
        table: one row per run, one column per parameter; cells that failed are missing.
        failures: blocks without a result.
        problems: one sentence per damaged block of an earlier run, which was computed again.
        computed: blocks computed by this call.
        reused: blocks found finished.
        seconds: wall time of this call.
        block_seconds: processor time that computing all blocks took, in this call and in earlier ones.
        policy_seconds: the same for each label. It is not in the table, which does not depend on the machine.
    """

    spec: Spec
    path: Path
    table: pa.Table = field(repr=False)
    failures: tuple[Failure, ...]
    problems: tuple[str, ...]
    computed: int
    reused: int
    seconds: float
    block_seconds: float
    policy_seconds: Mapping[str, float] = field(default_factory=dict, repr=False)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """The table as a data frame of pandas or polars; the columns are those of `duelist.experiments.COLUMNS`."""
        return make_frame({name: self.table.column(name).to_pylist() for name in self.table.column_names}, backend)

    def curves(self, backend: Backend | None = None) -> Any:
        """Regret over the kept rounds, tidy: one row per run, round and kind of regret."""
        kinds = {"average": "regret", "weak": "weak_regret", "yue": "yue_regret"}
        kept = {kind: name for kind, name in kinds.items() if name in self.table.column_names}
        shared = {
            name: self.table.column(name).to_numpy(zero_copy_only=False)
            for name in ("label", "policy", "setting", "stage", "seed", "trial")
            if name in self.table.column_names
        } | {
            name: self.table.column(name).to_numpy(zero_copy_only=False)
            for name in self.table.column_names
            if name.startswith(ENVIRONMENT)
        }
        rounds = self.table.column("round").combine_chunks()
        lengths = np.tile(rounds.value_lengths().to_numpy(), len(kept))
        columns = {name: np.repeat(np.tile(values, len(kept)), lengths) for name, values in shared.items()}
        columns["round"] = np.tile(rounds.flatten().to_numpy(), len(kept))
        columns["kind"] = np.repeat(np.repeat(list(kept), self.table.num_rows), lengths)
        curves = [self.table.column(name).combine_chunks().flatten().to_numpy() for name in kept.values()]
        return make_frame(columns | {"regret": np.concatenate(curves)}, backend)


def run_spec(
    spec: Spec,
    out: str | Path,
    *,
    workers: int | None = None,
    cluster: str | None = None,
    progress: bool | None = None,
) -> Results:
    """Run an experiment, or what is left of it, and write `<out>/<spec.id>.parquet`.

    Args:
        spec: the experiment.
        out: directory of the table and of the finished blocks (`parts`).
        workers: threads; None for one per core.
        cluster: address of a Dask scheduler to compute there instead.
        progress: True for a live display, False for none, None for one on a terminal.
    """
    started = time.perf_counter()
    directory = Path(out)
    with directory_lock(directory):
        sweep = _Sweep(spec, BlockStore(directory / "parts"))
        submitter: AbstractContextManager[Submit] = cluster_workers(cluster) if cluster else thread_workers(workers)
        with sweep_display(spec.name, show=progress) as display, submitter as submit:
            sweep.run(submit, display)
        table = result_table(spec, sweep.finished_cells())
        path = directory / f"{spec.id}.parquet"
        write_whole(path, parquet_bytes(table))
    return Results(
        spec=spec,
        path=path,
        table=table,
        failures=tuple(sweep.failures),
        problems=tuple(sweep.store.problems),
        computed=sweep.computed,
        reused=sweep.reused,
        seconds=time.perf_counter() - started,
        block_seconds=sum(sweep.policy_seconds.values()),
        policy_seconds=sweep.policy_seconds,
    )


class _Job:
    """A cell that is being computed: its blocks, and those that are finished."""

    def __init__(self, cell: Cell, blocks: list[Block]) -> None:
        self.cell, self.blocks = cell, blocks
        self.parts: dict[int, pa.Table] = {}
        self.test: _Job | None = None  # of the values that its tuning chose

    @property
    def complete(self) -> bool:
        return len(self.parts) == len(self.blocks)

    def table(self) -> pa.Table:
        parts = [self.parts[i].replace_schema_metadata(None) for i in range(len(self.blocks))]
        return pa.concat_tables(parts).combine_chunks()


class _Sweep:
    """The blocks of a spec, computed where they are missing."""

    def __init__(self, spec: Spec, store: BlockStore) -> None:
        self.spec, self.store = spec, store
        self.jobs = [self._job(cell) for cell in first_cells(spec)]
        self.failures: list[Failure] = []
        self.computed = self.reused = 0
        self.policy_seconds: dict[str, float] = {}
        self._waiting: dict[Future[bytes], tuple[_Job, int]] = {}
        self._disk_failed = False

    def run(self, submit: Submit, display: SweepDisplay) -> None:
        # Tuning first: the tests of the tuned policies wait for it.
        for job in sorted(self.jobs, key=lambda job: job.cell.stage != "tune"):
            self._begin(job, submit, display)
        display.expect(self._untested)
        while self._waiting:
            done, _ = wait(self._waiting, return_when=FIRST_COMPLETED)
            for future in done:
                job, index = self._waiting.pop(future)
                self._collect(job, index, future)
                display.finish(job.blocks[index].text)
                if self._disk_failed:
                    self._abandon()
                    return
                self._follow(job, submit, display)
                display.expect(self._untested)

    @property
    def _untested(self) -> int:
        """Tuned policies whose tests have not begun."""
        return sum(job.cell.stage == "tune" and job.test is None for job in self.jobs)

    def finished_cells(self) -> Iterator[tuple[Cell, pa.Table]]:
        """Complete cells in the order of the spec, a test after its tuning."""
        for first in self.jobs:
            for job in (first, first.test):
                if job is not None and job.complete:
                    yield job.cell, job.table()

    def _job(self, cell: Cell) -> _Job:
        return _Job(cell, split_cell(self.spec, cell))

    def _begin(self, job: _Job, submit: Submit, display: SweepDisplay) -> None:
        for index, block in enumerate(job.blocks):
            part = self.store.find(block)
            if part is not None:
                job.parts[index] = part
                self.reused += 1
                self._count(job, part)
            else:
                self._waiting[submit(block.text, display.add(block.text, block.title, block.steps))] = (job, index)
        self._follow(job, submit, display)

    def _follow(self, job: _Job, submit: Submit, display: SweepDisplay) -> None:
        """Start the test of a tuned policy once its tuning is complete."""
        if job.complete and job.cell.stage == "tune" and job.test is None:
            job.test = self._job(make_test_cell(self.spec, job.cell, best_values(self.spec, job.cell, job.table())))
            self._begin(job.test, submit, display)

    def _collect(self, job: _Job, index: int, future: Future[bytes]) -> None:
        block = job.blocks[index]
        try:
            content = future.result()
        except Exception as error:  # an error of a policy fails its block, and no other
            untested = " Its test was not run." if job.cell.stage == "tune" else ""
            self.failures.append(Failure(block.title, f"{type(error).__name__}: {error}{untested}"))
            return
        try:
            job.parts[index] = self.store.save(block, content)
        except OSError as error:
            self._disk_failed = True
            reason = f"computed, but could not be written to {self.store.directory}: {error.strerror}."
            self.failures.append(Failure(block.title, reason))
        except DuelistError as error:
            self.failures.append(Failure(block.title, f"the worker returned a bad file: {error}"))
        else:
            self.computed += 1
            self._count(job, job.parts[index])

    def _count(self, job: _Job, part: pa.Table) -> None:
        label = self.spec.policies[job.cell.policy].label
        self.policy_seconds[label] = self.policy_seconds.get(label, 0.0) + processor_seconds(part)

    def _abandon(self) -> None:
        """Stop, and keep what is written: a disk that refused one block will refuse the next."""
        reason = "not computed: the run stopped when a block could not be written. Free some space and run again."
        self.failures += [Failure(job.blocks[index].title, reason) for job, index in self._waiting.values()]
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()


def best_values(spec: Spec, cell: Cell, part: pa.Table) -> dict[str, float]:
    """Map each grid's name to its value with the smallest mean (or median) final regret on the tuning instances.

    Of values that tie exactly, the smallest wins.
    """
    policy = spec.policies[cell.policy]
    final = part.column("final_regret").to_numpy().reshape(len(cell.points), len(cell.trials))
    measure = np.median if spec.tuning.criterion == "median" else np.mean
    score = {point[policy.tuned]: float(measure(row)) for point, row in zip(cell.points, final, strict=True)}
    return {name: min(values, key=lambda value: (score[value], value)) for name, values in policy.tune[policy.tuned].items()}


class RunStoppedError(DuelistError):
    """A block was stopped because the run is being stopped."""


@contextmanager
def thread_workers(count: int | None) -> Iterator[Submit]:
    """Threads of this process, by default one per core. Leaving the context early stops the blocks that still run."""
    wanted = whole_number("workers", count, at_least=1) if count is not None else os.cpu_count() or 1
    stop = threading.Event()

    def compute(text: str, tick: Tick) -> bytes:
        def tick_or_stop(amount: int) -> None:
            if stop.is_set():
                raise RunStoppedError("the run was stopped before this block was finished.")
            tick(amount)

        tick_or_stop(0)
        return compute_block(text, tick_or_stop)

    pool = ThreadPoolExecutor(wanted)
    try:
        yield lambda text, tick: pool.submit(compute, text, tick)
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


@contextmanager
def cluster_workers(address: str) -> Iterator[Submit]:
    """The workers of the Dask cluster at `address`, such as tcp://host:8786. Progress is reported once per block."""
    try:
        import distributed
    except ImportError as error:
        raise InvalidInputError(
            "--cluster needs Dask, which is not installed. Install it with: pip install 'duelist[cluster]'."
        ) from error
    connect: Any = distributed.Client
    try:
        client = connect(address, timeout=20, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInputError(
            f"no Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler` and give its address."
        ) from error
    pool = client.get_executor(pure=False)

    def submit(text: str, tick: Tick) -> Future[bytes]:
        steps = Block(json.loads(text)).steps
        future: Future[bytes] = pool.submit(compute_remotely, text)
        future.add_done_callback(lambda _done: tick(steps))
        return future

    try:
        yield submit
    finally:
        pool.shutdown(wait=False)
        client.close()


def compute_remotely(text: str) -> bytes:
    """Compute a block on a cluster worker."""
    return compute_block(text, lambda _amount: None)
