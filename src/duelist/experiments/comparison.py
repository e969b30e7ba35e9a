"""Several policies on the same instances with the same noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.environments.base import Environment
from duelist.environments.tables import Backend, make_frame
from duelist.experiments.records import curve_columns, join_columns, latex_table, load_runs, run_columns, save_runs
from duelist.experiments.run import Run, drawing_room
from duelist.experiments.simulation import simulate
from duelist.experiments.statistics import BandKind, Difference, Summary, paired_difference
from duelist.policies.base import Policy

HEADINGS = ("label", "mean", "sd", "median", "q05", "q95", "weak", "seconds")


@dataclass(frozen=True)
class Comparison:
    """Runs by label, all on the same instances."""

    runs: dict[str, Run]

    def table(self) -> list[dict[str, str | float]]:
        """One row per policy, best first: final average regret over trials, mean final weak regret, and wall time.

        Regret has heavy tails, so the median and the 5 % and 95 % quantiles stand beside the mean.
        """
        rows: list[dict[str, str | float]] = [
            {"label": label, **run.summary()._asdict(), "seconds": run.seconds} for label, run in self.runs.items()
        ]
        return sorted(rows, key=lambda row: row["mean"])

    def summary(self) -> dict[str, Summary]:
        """Mean, sd, median, quantiles and mean weak regret after the last round, by label."""
        return {label: run.summary() for label, run in self.runs.items()}

    def paired_difference(self, label: str, other: str) -> Difference:
        """Final regret of one policy minus that of another, trial by trial, with t and bootstrap intervals.

        Example:
            >>> import duelist
            >>> env = duelist.LinearDuels(dim=5, arms=8)
            >>> result = duelist.compare([duelist.FGTS(), duelist.Uniform()], env, rounds=300, trials=4, seed=0)
            >>> result.paired_difference("FGTS", "Uniform").t.high < 0  # FGTS is clearly better
            True
        """
        a, b = (self.runs[one_of("label", name, self.runs)] for name in (label, other))
        return paired_difference(a, b)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per policy and trial, every parameter a column; see `duelist.experiments.COLUMNS` and `Run.to_frame`."""
        return make_frame(self.columns(), backend)

    def columns(self) -> dict[str, list[Any]]:
        """The columns of `to_frame` as lists, without any library for data frames."""
        return join_columns([run_columns(label, run) for label, run in self.runs.items()])

    def curves(self, *, thin: int = 1, backend: Backend | None = None) -> Any:
        """Regret over rounds, tidy: one row per policy, trial, kept round and kind of regret; see `Run.curves`."""
        return make_frame(join_columns([curve_columns(label, run, thin) for label, run in self.runs.items()]), backend)

    def to_latex(self, *, caption: str = "") -> str:
        """The table for a paper, best policy first."""
        return latex_table(HEADINGS, self._cells(), caption=caption)

    def plot(self, *, band: BandKind = "sd") -> Any:
        """A matplotlib figure of the cumulative regrets; see `duelist.plotting.regret_figure`."""
        return drawing_room().regret_figure(self, band=band)

    def save(self, path: str | Path) -> Path:
        """Write all runs to one .npz file, with the policies, the environment and the version that made them."""
        return save_runs(path, self.runs)

    @classmethod
    def load(cls, path: str | Path) -> Comparison:
        """Read what `save` wrote. A policy or an environment of your own, which no name finds, comes back as `Described`."""
        return cls(load_runs(path, Run))

    def _cells(self) -> list[list[str]]:
        return [[str(row["label"]), *(f"{row[column]:.1f}" for column in HEADINGS[1:])] for row in self.table()]

    def __str__(self) -> str:
        cells = [list(HEADINGS), *self._cells()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(HEADINGS))]
        return "\n".join(
            "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
            for row in cells
        )


def compare(
    policies: Mapping[str, Policy[Any]] | Sequence[Policy[Any]],
    environment: Environment,
    *,
    rounds: int,
    trials: int | Sequence[int] = 30,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
    every: int = 1,
    simple_regret: int = 0,
) -> Comparison:
    """Simulate several policies on the same instances; see `simulate` for the arguments.

    Policies without a name are named after their class, which must then differ.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> result = duelist.compare([duelist.FGTS(), duelist.Uniform()], env, rounds=300, trials=4, seed=0)
        >>> [row["label"] for row in result.table()]
        ['FGTS', 'Uniform']
    """
    named = dict(policies) if isinstance(policies, Mapping) else {type(p).__name__: p for p in policies}
    if len(named) != len(policies):
        raise InvalidInputError(
            "policies of one class need names to tell them apart: pass a mapping such as "
            '{"FGTS alpha=0": FGTS(alpha=0), "FGTS alpha=1": FGTS(alpha=1)}.'
        )
    if not named:
        raise InvalidInputError("compare needs at least one policy; got none.")
    settings: dict[str, Any] = {"rounds": rounds, "trials": trials, "seed": seed, "workers": workers, "progress": progress}
    settings |= {"every": every, "simple_regret": simple_regret}
    return Comparison({name: simulate(policy, environment, **settings) for name, policy in named.items()})
