"""Run a spec: parallel over blocks, resumable, and exact.

Finished blocks lie on disk as parts; a run computes what is missing and assembles the table from all of them. The table has
the same bytes whatever the number of workers, and however often the run was killed on the way.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from duelist.core.errors import DuelistError
from duelist.experiments.blocks import Block, Cell, blocks_of, chosen_cell, first_cells
from duelist.experiments.directory_lock import directory_lock
from duelist.experiments.parts import PartStore, parquet_bytes, seconds_of, write_whole
from duelist.experiments.progress import SweepDisplay, sweep_display
from duelist.experiments.spec import Spec
from duelist.experiments.tables import result_table
from duelist.experiments.tuning import best_values
from duelist.experiments.workers import Submit, cluster_workers, thread_workers


@dataclass(frozen=True)
class Failure:
    """A block that gave no result: which cell, and why."""

    cell: str
    reason: str

    def __str__(self) -> str:
        return f"{self.cell}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Results:
    """What a run of a spec gave.

    Attributes:
        spec: the experiment.
        path: the table on disk.
        table: the table: one row a run, every parameter a column; cells that failed are missing.
        failures: blocks that gave no result.
        problems: what was found wrong with earlier parts, and was computed again.
        computed: blocks computed by this call.
        reused: blocks found finished.
        seconds: wall time of this call.
        block_seconds: processor time that computing all blocks took, in this call and in earlier ones.
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
        workers: threads; None for one a core.
        cluster: address of a Dask scheduler to compute there instead.
        progress: True for a live display, False for none, None for one where a person is watching.
    """
    started = time.perf_counter()
    directory = Path(out)
    with directory_lock(directory):
        sweep = _Sweep(spec, PartStore(directory / "parts"))
        submitter: AbstractContextManager[Submit] = cluster_workers(cluster) if cluster else thread_workers(workers)
        with sweep_display(spec.name, show=progress) as display, submitter as submit:
            sweep.run(submit, display)
        table = result_table(spec, sweep.finished())
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
        block_seconds=sweep.block_seconds,
    )


class _Job:
    """A cell on its way: its blocks, and the parts that are finished."""

    def __init__(self, cell: Cell, blocks: list[Block]) -> None:
        self.cell, self.blocks = cell, blocks
        self.parts: dict[int, pa.Table] = {}
        self.test: _Job | None = None  # what its tuning chose

    @property
    def complete(self) -> bool:
        return len(self.parts) == len(self.blocks)

    def table(self) -> pa.Table:
        parts = [self.parts[i].replace_schema_metadata(None) for i in range(len(self.blocks))]
        return pa.concat_tables(parts).combine_chunks()


class _Sweep:
    """The blocks of a spec, computed where they are missing."""

    def __init__(self, spec: Spec, store: PartStore) -> None:
        self.spec, self.store = spec, store
        self.jobs = [self._job(cell) for cell in first_cells(spec)]
        self.failures: list[Failure] = []
        self.computed = self.reused = 0
        self.block_seconds = 0.0
        self._waiting: dict[Future[bytes], tuple[_Job, int]] = {}
        self._disk_failed = False

    def run(self, submit: Submit, display: SweepDisplay) -> None:
        # Tuning first: the tests of the tuned policies wait for it.
        for job in sorted(self.jobs, key=lambda job: job.cell.stage != "tune"):
            self._begin(job, submit, display)
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

    def finished(self) -> Iterator[tuple[Cell, pa.Table]]:
        """Complete cells in the order of the spec, a test after its tuning."""
        for first in self.jobs:
            for job in (first, first.test):
                if job is not None and job.complete:
                    yield job.cell, job.table()

    def _job(self, cell: Cell) -> _Job:
        return _Job(cell, blocks_of(self.spec, cell))

    def _begin(self, job: _Job, submit: Submit, display: SweepDisplay) -> None:
        for index, block in enumerate(job.blocks):
            part = self.store.find(block)
            if part is not None:
                job.parts[index] = part
                self.reused += 1
                self.block_seconds += seconds_of(part)
            else:
                self._waiting[submit(block.text, display.add(block.text, block.title, block.steps))] = (job, index)
        self._follow(job, submit, display)

    def _follow(self, job: _Job, submit: Submit, display: SweepDisplay) -> None:
        """Once a tuning is complete, test what it chose."""
        if job.complete and job.cell.stage == "tune" and job.test is None:
            job.test = self._job(chosen_cell(self.spec, job.cell, best_values(self.spec, job.cell, job.table())))
            self._begin(job.test, submit, display)

    def _collect(self, job: _Job, index: int, future: Future[bytes]) -> None:
        block = job.blocks[index]
        try:
            content = future.result()
        except Exception as error:  # whatever a policy raises is this block's failure, and no other's
            untested = " Its test was not run." if job.cell.stage == "tune" else ""
            self.failures.append(Failure(block.title, f"{type(error).__name__}: {error}{untested}"))
            return
        try:
            job.parts[index] = self.store.keep(block, content)
        except OSError as error:
            self._disk_failed = True
            reason = f"computed, but could not be written to {self.store.directory}: {error.strerror}."
            self.failures.append(Failure(block.title, reason))
        except DuelistError as error:
            self.failures.append(Failure(block.title, f"the worker's answer was refused: {error}"))
        else:
            self.computed += 1
            self.block_seconds += seconds_of(job.parts[index])

    def _abandon(self) -> None:
        """A disk that refused one part will refuse the next: keep what is there and stop."""
        reason = "not computed: the run stopped when a part could not be written. Free some space and run again."
        self.failures += [Failure(job.blocks[index].title, reason) for job, index in self._waiting.values()]
        for future in self._waiting:
            future.cancel()
        self._waiting.clear()
