"""The result of a simulation."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.errors import InvalidInputError
from duelist.environments.tables import Backend, make_frame
from duelist.experiments.records import class_name, curve_columns, load_runs, run_columns, save_runs
from duelist.experiments.statistics import BandKind, Difference, Summary, paired_difference, summary
from duelist.typing import FloatArray

NO_ANSWER = -128  # in a column of outcomes, which has one byte per round


@dataclass(frozen=True, kw_only=True)
class Run:
    """One policy on one environment, all trials.

    Attributes:
        policy: the hyper-parameters that played.
        environment: the recipe of the instances.
        seed: seed of every random stream.
        trials: trial number of every lane; (seed, trial) names an instance and its noise.
        regrets: every kind of cumulative regret, each (trials, rounds): "average", the paper's, mostly "weak" and "yue", and
            others that the environment names.
        rounds: (rounds,) the numbers, from 1, of the rounds that the columns hold: all, unless `every` left some out.
        first: (trials, rounds) row of the first arm played.
        second: (trials, rounds) row of the second arm played.
        outcomes: (trials, rounds) +1 where the first won, -1 where it lost, 0 where they tied; `NO_ANSWER` where the answer
            never came, or not before the end.
        info: numbers about the policy at the end, each (trials,).
        seconds: wall time of playing; what kernels took to compile is not in it.
        compile_seconds: wall time in which kernels were compiled, 0 where all were on disk.
        simple_regret: (trials, n) average regret of the arm that the policy would recommend, playing it against itself, after
            the rounds `simple_rounds`; None where it was not asked for, NaN where the policy recommends nothing.
        simple_rounds: (n,) round numbers, from 1.
        slates: (trials, rounds, choices) rows shown, where the policy shows slates; `first` and `second` are then its first two
            places, and an outcome says which of those came before the other. Regret is the mean over what was shown.
        rankings: (trials, rounds, choices) places in the slate, best first; a policy that learns from winners reads the first.
    """

    policy: Any
    environment: Any
    seed: int
    trials: tuple[int, ...]
    regrets: dict[str, FloatArray] = field(repr=False)
    rounds: npt.NDArray[np.int32] = field(repr=False)
    first: npt.NDArray[np.int32] = field(repr=False)
    second: npt.NDArray[np.int32] = field(repr=False)
    outcomes: npt.NDArray[np.int8] = field(repr=False)
    info: dict[str, FloatArray] = field(repr=False)
    seconds: float
    compile_seconds: float = 0.0
    simple_regret: FloatArray | None = field(default=None, repr=False)
    simple_rounds: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    slates: npt.NDArray[np.int32] | None = field(default=None, repr=False)
    rankings: npt.NDArray[np.int32] | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """What tables and figures call it: the policy's class."""
        return class_name(self.policy)

    @property
    def instances(self) -> tuple[Any, ...]:
        """What names the instances and their noise: runs with equal ones can be compared trial by trial."""
        return self.environment, self.seed, self.trials

    @property
    def regret(self) -> FloatArray:
        """(trials, rounds) cumulative average regret, the paper's."""
        return self.regrets["average"]

    @property
    def weak_regret(self) -> FloatArray:
        """(trials, rounds) cumulative regret of the better of the two arms; NaN where it is not known."""
        return self._regret("weak")

    @property
    def yue_regret(self) -> FloatArray:
        """(trials, rounds) cumulative regret in probabilities, of Yue et al.; NaN where it is not known."""
        return self._regret("yue")

    def _regret(self, kind: str) -> FloatArray:
        return self.regrets[kind] if kind in self.regrets else np.full_like(self.regret, np.nan)

    @property
    def chosen(self) -> npt.NDArray[np.int32]:
        """(trials, rounds, choices) rows shown: two in a duel."""
        return np.stack([self.first, self.second], axis=2) if self.slates is None else self.slates

    @property
    def final_regret(self) -> FloatArray:
        """(trials,) cumulative average regret after the last round."""
        return self.regret[:, -1]

    @property
    def final_weak_regret(self) -> FloatArray:
        """(trials,) cumulative weak regret after the last round."""
        return self.weak_regret[:, -1]

    def summary(self) -> Summary:
        """Mean, sd, median, quantiles and mean weak regret after the last round."""
        return summary(self)

    def paired_difference(self, other: Run) -> Difference:
        """Final regret of this run minus that of another on the same instances, with t and bootstrap intervals."""
        return paired_difference(self, other)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per trial with every parameter a column; see `duelist.experiments.COLUMNS` for the names.

        Args:
            backend: "pandas" or "polars"; None for the one that is installed, pandas first.
        """
        return make_frame(run_columns(self.label, self), backend)

    def curves(self, *, thin: int = 1, backend: Backend | None = None) -> Any:
        """Regret over rounds, tidy: one row per trial, kept round and kind of regret.

        Args:
            thin: keep every thin-th round, and the last.
            backend: as in `to_frame`.
        """
        return make_frame(curve_columns(self.label, self, thin), backend)

    def plot(self, *, band: BandKind = "sd") -> Any:
        """A matplotlib figure of the cumulative regret; see `duelist.plotting.regret_figure`."""
        return drawing_room().regret_figure(self, band=band)

    def save(self, path: str | Path) -> Path:
        """Write everything to one .npz file, with the policy, the environment and the versions that made it."""
        return save_runs(path, {self.label: self})

    @classmethod
    def load(cls, path: str | Path) -> Run:
        """Read what `save` wrote. A policy or an environment of your own, which no name finds, comes back as `Described`."""
        loaded = load_runs(path, cls)
        if len(loaded) != 1:
            raise InvalidInputError(f"{path} holds {len(loaded)} runs. Read it with Comparison.load.")
        return next(iter(loaded.values()))


def drawing_room() -> Any:
    """`duelist.plotting`, which is above this room: it is looked up when a figure is asked for, like any backend."""
    return importlib.import_module("duelist.plotting")
