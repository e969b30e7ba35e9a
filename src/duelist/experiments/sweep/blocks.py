"""Blocks: the pieces of an experiment that are computed, stored and resumed one by one.

A cell is one policy with one grid on one environment. Its lanes are every grid value times every trial, and advance in
lock step; a block is a slice of them. Blocks depend on the spec alone, never on the number of workers, and a block is pure:
the same block gives the same table wherever it runs. So it holds the source of policies and environments that are not duelist's
own, and the digests of the data files that parameters name: what is edited is another block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import may_be_lanes
from duelist.core.references import Files, source_of
from duelist.environments.registry import environment_class
from duelist.experiments.run import Run
from duelist.experiments.simulation import simulate
from duelist.experiments.sweep.parameters import build, named_environments, parameter_hints
from duelist.experiments.sweep.policy_spec import PolicySpec
from duelist.experiments.sweep.spec import Spec, canonical_json
from duelist.policies.registry import policy_class

# Enough lanes that the Python in a round costs little next to its arithmetic, few enough that a killed run loses seconds
# and that the last blocks keep all workers busy. Measured on FGTS, time per lane is flat from 15 lanes up.
BLOCK_LANES = 64


@dataclass(frozen=True)
class Cell:
    """One policy, one environment, one stage.

    Attributes:
        stage: "tune" or "test".
        policy: index of the policy in the spec.
        environment: parameters of the environment.
        shared: parameters that all lanes share.
        points: parameters that differ, one mapping for each point of the grid; a point plays all trials.
        trials: trial numbers.
        chosen_in: for each point, the named grids of which it is the best value, joined by commas; empty without tuning.
    """

    stage: str
    policy: int
    environment: Mapping[str, Any]
    shared: Mapping[str, Any]
    points: tuple[Mapping[str, Any], ...]
    trials: tuple[int, ...]
    chosen_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class Block:
    """A slice of a cell's lanes, as plain data: all that a worker needs.

    Attributes:
        data: policy, environment, their parameters, one value per lane for those that differ, trials, rounds, seed, thin; where
            there are any, `simple_every`, `sources` by reference and digests of `files` by path.
    """

    data: Mapping[str, Any]

    @cached_property
    def text(self) -> str:
        """The content, in one canonical form."""
        return canonical_json(self.data)

    @property
    def lanes(self) -> int:
        """Number of runs that advance together."""
        return len(self.data["trials"])

    @property
    def steps(self) -> int:
        """Lane-rounds to play."""
        return self.lanes * int(self.data["rounds"])

    @property
    def title(self) -> str:
        """The cell in words, for messages."""
        data = self.data
        settings = {**data["environment"], **data["parameters"]}
        texts = [f"{name}={value}" for name, value in settings.items() if not isinstance(value, Mapping)]
        for name, values in data["lanes"].items():
            distinct = sorted(set(values))
            shown = f"{distinct[0]:g}" if len(distinct) == 1 else f"{distinct[0]:g}..{distinct[-1]:g}"
            texts.append(f"{name}={shown}")
        trials = data["trials"]
        return f"{data['policy']} ({', '.join(texts)}), trials {min(trials)}-{max(trials)}"


def first_cells(spec: Spec) -> Iterator[Cell]:
    """Cells that depend on no others: the tuning of tuned policies, and the test of the rest."""
    test = tuple(range(spec.trials))
    tuning = tuple(range(spec.tuning.first_trial, spec.tuning.first_trial + spec.tuning.trials))
    for environment, (index, policy) in product(spec.environment.points(), enumerate(spec.policies)):
        if policy.tune:
            values = tuple({policy.tuned: value} for value in policy.tuned_values())
            yield Cell("tune", index, environment, policy.parameters, values, tuning)
        else:
            for shared, points in _split_grid(policy):
                yield Cell("test", index, environment, shared, points, test)


def make_test_cell(spec: Spec, tuned: Cell, best: Mapping[str, float]) -> Cell:
    """The test cell of a tuned policy, given the best value of each named grid."""
    policy = spec.policies[tuned.policy]
    values = sorted(set(best.values()))
    chosen_in = tuple(",".join(sorted(name for name in best if best[name] == value)) for value in values)
    points = tuple({policy.tuned: value} for value in values)
    return Cell("test", tuned.policy, tuned.environment, tuned.shared, points, tuple(range(spec.trials)), chosen_in)


def split_cell(spec: Spec, cell: Cell) -> list[Block]:
    """Cut the lanes of a cell, points by trials, into even blocks of at most `BLOCK_LANES`."""
    lanes = [(point, trial) for point in cell.points for trial in cell.trials]
    n_blocks = -(-len(lanes) // BLOCK_LANES)
    edges = [len(lanes) * i // n_blocks for i in range(n_blocks + 1)]
    policy, kind = spec.policies[cell.policy].policy, spec.environment.kind
    shared, environment = _absolute(cell.shared), _absolute(cell.environment)
    sources = _sources(policy, [kind, *named_environments(environment)])
    files = {path: _file_digest(Path(path)) for path in _named_files([shared, environment])}
    return [
        Block(
            {
                "policy": policy,
                "parameters": shared,
                "lanes": {name: [point[name] for point, _ in lanes[a:b]] for name in cell.points[0]},
                "kind": kind,
                "environment": environment,
                "trials": [trial for _, trial in lanes[a:b]],
                "rounds": spec.rounds,
                "seed": spec.seed,
                "thin": spec.thin,
                **({"simple_every": spec.simple_every} if spec.simple_every else {}),
                **({"sources": sources} if sources else {}),
                **({"files": files} if files else {}),
            }
        )
        for a, b in pairwise(edges)
    ]


def play(block: Block, tick: Callable[[int], None]) -> Run:
    """Play a block; `tick` is called with the lane-rounds just played and may raise to stop."""
    data = block.data
    for path, digest in data.get("files", {}).items():
        if _file_digest(Path(path)) != digest:
            raise InvalidInputError(f"{path} is not the file that it was when the run began. Run again.")
    sources = data.get("sources", {})
    chosen = policy_class(data["policy"], sources.get(data["policy"]))
    policy = build("policy", chosen, {**data["parameters"], **_columns(data["lanes"])}, sources)
    environment = build("environment", environment_class(data["kind"], sources.get(data["kind"])), data["environment"], sources)
    return simulate(
        policy,
        environment,
        rounds=data["rounds"],
        trials=data["trials"],
        seed=data["seed"],
        workers=1,
        progress=tick,
        simple_regret=data.get("simple_every", 0),
    )


def _columns(lanes: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    # One value for all lanes is passed as a number: a policy may treat a parameter that is zero everywhere specially.
    return {name: values[0] if len(set(values)) == 1 else tuple(values) for name, values in lanes.items()}


def _split_grid(policy: PolicySpec) -> Iterator[tuple[dict[str, Any], tuple[Mapping[str, Any], ...]]]:
    """Split a grid: numbers that may differ by lane advance in one state; every other combination is a state of its own."""
    hints = parameter_hints(policy_class(policy.policy))
    apart = [name for name, values in policy.grid.items() if not _as_lanes(hints[name], values)]
    together = [name for name in policy.grid if name not in apart]
    points: tuple[Mapping[str, Any], ...] = tuple(
        dict(zip(together, values, strict=True)) for values in product(*(policy.grid[name] for name in together))
    )
    for values in product(*(policy.grid[name] for name in apart)):
        yield {**policy.parameters, **dict(zip(apart, values, strict=True))}, points


def _as_lanes(hint: Any, values: Sequence[Any]) -> bool:
    return may_be_lanes(hint) and all(isinstance(value, float) for value in values)


def _sources(policy: str, environments: Sequence[str]) -> dict[str, Files]:
    """The source of everything that is not duelist's own, by the name it has in the spec."""
    found = {policy: source_of(policy_class(policy))}
    found |= {kind: source_of(environment_class(kind)) for kind in environments}
    return {name: files for name, files in found.items() if files}


def _absolute(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values with paths of data files in full: a worker may have been started in another folder."""

    def whole(value: Any) -> Any:
        if isinstance(value, Mapping):
            return _absolute(value)
        return str(Path(value).absolute()) if _is_file(value) else value

    return {name: whole(value) for name, value in values.items()}


def _named_files(values: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for table in values:
        yield from (value for value in table.values() if _is_file(value))
        yield from _named_files([value for value in table.values() if isinstance(value, Mapping)])


def _is_file(value: Any) -> bool:
    """Whether a parameter names a file that is there. A word without an ending is a setting, whatever lies around."""
    return isinstance(value, str) and bool(Path(value).suffix) and ":" not in Path(value).name and Path(value).is_file()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()[:32]
