"""What `duelist reproduce` runs: a plan says which specs, and how their results become a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from duelist.core.checks import whole_number
from duelist.experiments.families.problems import STAGES
from duelist.experiments.sweep.spec import Spec

QUICK_FAMILY_ROUNDS, QUICK_FAMILY_TRIALS = 400, {"design": 4, "final": 6}
_Size = TypeVar("_Size", int, int | None)


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the command; None where the product decides.

    Attributes:
        quick: run a small version for a first look.
        rounds: of the paper's figures; of families and the field, the most rounds.
        trials: of the paper's figures; of families and the field, the most instances per stage.
        seed: of the random numbers; the final instances of families and the field have the next one.
        only: names of families, or of problems of the field; empty for all.
        policies: labels of policies of the families or the field; empty for all.
        stage: of families and the field, "final" for both stages or "design" for that one.
        out: folder of the results.
        workers: number of threads.
        cluster: address of a Dask scheduler.
        band: what is shaded around the means of figures.
        quiet: print paths only.
        data: folder with the data of real votes, or of routing.
    """

    quick: bool = False
    rounds: int | None = None
    trials: int | None = None
    seed: int | None = None
    only: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    stage: str = "final"
    out: Path | None = None
    workers: int | None = None
    cluster: str | None = None
    band: Any = "sd"
    quiet: bool = False
    data: Path | None = None


@dataclass(frozen=True)
class Plan:
    """Specs by key, and how to report their results.

    Attributes:
        specs: by key, in the order of running.
        folder: name of the folder under `results`.
        report: makes a reproduction from (results by key, the command line, seconds).
        follow_up: makes further specs from the results of `specs`; None without any.
        reports_failures: whether the report says what failed; else a failed block ends the command.
    """

    specs: Mapping[Any, Spec]
    folder: str
    report: Callable[[Mapping[Any, Any], str, float], Any]
    follow_up: Callable[[Mapping[Any, Any]], Mapping[Any, Spec]] | None = None
    reports_failures: bool = False


def result_folder(name: str, options: Options) -> Path:
    """Where the results of a product go."""
    return options.out or Path("results") / name / ("quick" if options.quick else "")


def resize_family(spec: Spec, stage: str, options: Options) -> Spec:
    """Cut a spec to the sizes that the options allow; its stage has a seed of its own."""
    most_rounds = first_given(options.rounds, QUICK_FAMILY_ROUNDS if options.quick else spec.rounds)
    most_trials = first_given(options.trials, QUICK_FAMILY_TRIALS[stage] if options.quick else spec.trials)
    whole_number("--rounds", most_rounds, at_least=1)
    whole_number("--trials", most_trials, at_least=2)  # differences between trials need two
    seed = spec.seed if options.seed is None else whole_number("--seed", options.seed) + STAGES.index(stage)
    rounds = min(most_rounds, spec.rounds)
    return replace(spec, rounds=rounds, thin=min(spec.thin, rounds), trials=min(most_trials, spec.trials), seed=seed)


def first_given(option: int | None, otherwise: _Size) -> int | _Size:
    """The option where it is given."""
    return otherwise if option is None else option
