"""Results as records: one list of column names, data frames, LaTeX, and files that hold whole runs.

`duelist run`, a spec's table, `Run.to_frame` and `Comparison.to_frame` all use the names in `COLUMNS`, so that frames from
different places can be put below each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.files import read_whole, write_whole
from duelist.core.lanes import select_lanes
from duelist.core.serialize import from_bytes, to_bytes
from duelist.environments.registry import ENVIRONMENTS
from duelist.policies.codec import can_be_written, parameter_fields, policy_from_mapping, to_mapping
from duelist.version import __version__

# Parameters by prefix, so that an environment and a policy may both have one of the same name.
ENVIRONMENT, POLICY, INFO = "env_", "policy_", "info_"
COLUMNS: dict[str, str] = {
    "experiment": "name of the spec; specs only",
    "stage": "tune or test; specs only",
    "label": "what tables and figures call the policy: its name in a comparison, its label in a spec",
    "policy": "the policy's class",
    "setting": "the parameters that were set, such as 'ridge 0.001, radius 5': those that a spec names, else those that differ "
    "from the defaults. Rows of equal label and setting are trials of one policy",
    "chosen_in": "the tuning grids of which this setting is the best, joined by commas; specs only",
    "environment": "the environment's class",
    "seed": "seed of all random numbers",
    "trial": "number of the instance: rows of equal environment, seed and trial played the same one with the same noise",
    "rounds": "rounds played",
    "final_regret": "cumulative average regret after the last round, the paper's",
    "final_weak_regret": "the same of the better of the two arms; further kinds of regret have columns of the same form",
    "final_yue_regret": "the same in probabilities, of Yue et al.",
    "seconds": "wall time of all trials of the run together, compiling not counted; Python only",
    "round": "rounds of a curve, from 1; in a spec's table a list for each run",
    "kind": "kind of regret of a curve: average, weak, yue and whatever else the environment has; tidy curves only",
    "regret": "cumulative regret at that round; in a spec's table a list, with weak_regret and yue_regret beside it",
    "simple_round": "rounds after which policies recommended an arm; a list, in specs with simple_every",
    "simple_regret": "what the recommended arm costs after those rounds, NaN where none is recommended; a list, likewise",
    "env_*": "every parameter of the environment",
    "policy_*": "every parameter of the policy, defaults included",
    "info_*": "what the policy reports of itself at the end",
}
RunType = TypeVar("RunType", bound=Any)
_FILE = "duelist runs"


@dataclass(frozen=True)
class Described:
    """A policy or an environment of somebody's own, read from a file: its class's name and the text of it."""

    name: str
    text: str


def run_columns(label: str, run: Any) -> dict[str, list[Any]]:
    """One row per trial of a run, as columns."""
    n = len(run.trials)
    lanes = [_plain_parameters(select_lanes(run.policy, slice(lane, lane + 1), n)) for lane in range(n)]
    shared = {
        "label": label,
        "policy": class_name(run.policy),
        "environment": class_name(run.environment),
        "seed": run.seed,
        "rounds": int(run.rounds[-1]),
        "seconds": run.seconds,
        **{ENVIRONMENT + name: value for name, value in _plain_parameters(run.environment).items()},
    }
    columns: dict[str, list[Any]] = {name: [value] * n for name, value in shared.items()}
    columns["setting"] = [setting_text(_changed(run.policy, values)) for values in lanes]
    columns["trial"] = list(run.trials)
    columns |= {final_column(kind): curve[:, -1].tolist() for kind, curve in run.regrets.items()}
    columns |= {POLICY + name: [values[name] for values in lanes] for name in (lanes[0] if lanes else ())}
    columns |= {INFO + name: np.asarray(values).tolist() for name, values in sorted(run.info.items())}
    return dict(sorted(columns.items(), key=lambda item: _place(item[0])))


def curve_columns(label: str, run: Any, thin: int = 1) -> dict[str, Any]:
    """One row per trial, kept round and kind of regret, as columns."""
    whole_number("thin", thin, at_least=1)
    at = np.flatnonzero((run.rounds % thin == 0) | (run.rounds == run.rounds[-1]))
    rounds = run.rounds[at]
    kinds, trials = list(run.regrets), np.asarray(run.trials)
    settings = run_columns(label, run)["setting"]
    shape = (len(kinds), len(trials), len(rounds))
    size = int(np.prod(shape))

    def spread_over(axis: int, values: Sequence[Any]) -> Any:
        return np.broadcast_to(np.expand_dims(np.asarray(values), [i for i in range(3) if i != axis]), shape).ravel()

    return {
        "label": np.full(size, label),
        "policy": np.full(size, class_name(run.policy)),
        "setting": spread_over(1, settings),
        "seed": np.full(size, run.seed),
        "trial": spread_over(1, run.trials),
        "round": spread_over(2, rounds.tolist()),
        "kind": spread_over(0, kinds),
        "regret": np.concatenate([run.regrets[kind][:, at].ravel() for kind in kinds]),
    }


def join_columns(parts: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Tables below each other: a column that a part does not have is empty there."""
    names = sorted(dict.fromkeys(name for part in parts for name in part), key=_place)
    lengths = [len(part["label"]) for part in parts]
    return {
        name: [value for part, n in zip(parts, lengths, strict=True) for value in part.get(name, [None] * n)] for name in names
    }


def setting_text(parameters: Mapping[str, Any]) -> str:
    """Parameters in words.

    Example:
        >>> setting_text({"ridge": 0.001, "width": "local"})
        'ridge 0.001, width local'
    """
    return ", ".join(
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in parameters.items()
    )


def kept_rounds(rounds: int, thin: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Round numbers, from 1, that a thinned curve keeps: every thin-th, and the last.

    Example:
        >>> kept_rounds(25, 10)
        array([10, 20, 25], dtype=int32)
    """
    kept = np.arange(thin, rounds + 1, thin, dtype=np.int32)
    return kept if len(kept) and kept[-1] == rounds else np.append(kept, np.int32(rounds))


def latex_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", note: str = "") -> str:
    r"""A table for a paper: `booktabs` rules, words left and numbers right.

    Example:
        >>> print(latex_table(["policy", "mean"], [["FGTS & co", "12.5"]]))
        \begin{tabular}{lr}
        \toprule
        policy & mean \\
        \midrule
        FGTS \& co & 12.5 \\
        \bottomrule
        \end{tabular}
    """
    numeric = [bool(rows) and all(_is_number(row[column]) for row in rows) for column in range(len(headings))]
    body = [" & ".join(_escape_latex(cell) for cell in row) + r" \\" for row in rows]
    tabular = [
        rf"\begin{{tabular}}{{{''.join('r' if right else 'l' for right in numeric)}}}",
        r"\toprule",
        " & ".join(map(_escape_latex, headings)) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if not caption:
        return "\n".join(tabular)
    words = _escape_latex(f"{caption.rstrip('.')}. {note}".strip())
    return "\n".join([r"\begin{table}", r"\centering", rf"\caption{{{words}}}", *tabular, r"\end{table}"])


def save_runs(path: str | Path, runs: Mapping[str, Any]) -> Path:
    """Write runs by label to one .npz file: every array exactly, and what made them."""
    target = Path(path)
    if target.suffix != ".npz":
        raise InvalidInputError(f"runs are saved as one .npz file; got {str(path)!r}. End the name in .npz.")
    written = {"file": _FILE, "version": __version__, "runs": [[label, _run_to_plain(run)] for label, run in runs.items()]}
    write_whole(target, to_bytes(written))
    return target


def load_runs(path: str | Path, kind: type[RunType]) -> dict[str, RunType]:
    """Read what `save_runs` wrote, as objects of `kind` by label."""
    value = from_bytes(read_whole(Path(path)))
    if not isinstance(value, dict) or value.get("file") != _FILE:
        raise SavedStateError(f"{path} holds something other than runs. Give a file that Run.save or Comparison.save wrote.")
    known = {field.name for field in fields(kind)}
    runs = {}
    for label, parts in value["runs"]:
        parts |= {"policy": _read_recipe(parts["policy"]), "environment": _read_recipe(parts["environment"])}
        runs[label] = kind(**{name: part for name, part in parts.items() if name in known})
    return runs


def _run_to_plain(run: Any) -> dict[str, Any]:
    parts = {field.name: getattr(run, field.name) for field in fields(run)}
    return parts | {"policy": _write_recipe(run.policy), "environment": _write_recipe(run.environment)}


def _write_recipe(thing: Any) -> dict[str, Any]:
    """A policy or an environment as plain values; one that no name finds, as its text."""
    name = type(thing).__name__
    if ENVIRONMENTS.get(name) is type(thing):
        parameters = {field.name: getattr(thing, field.name) for field in parameter_fields(thing)}
        nested = {key: _write_recipe(value) if is_dataclass(value) else value for key, value in parameters.items()}
        return {"environment": name, "parameters": nested}
    return (
        {"policy": to_mapping(thing)}
        if can_be_written(thing)
        else {"name": class_name(thing), "text": getattr(thing, "text", repr(thing))}
    )


def _read_recipe(written: dict[str, Any]) -> Any:
    if "text" in written:
        return Described(written["name"], written["text"])
    if "policy" in written:
        return policy_from_mapping(written["policy"])
    parameters = {
        key: _read_recipe(value) if isinstance(value, dict) else value for key, value in written["parameters"].items()
    }
    return ENVIRONMENTS[one_of("environment", written["environment"], ENVIRONMENTS)](**parameters)


def class_name(thing: Any) -> str:
    """The name of the class of a policy or an environment, also of one that a file only describes."""
    return thing.name if isinstance(thing, Described) else type(thing).__name__


def _plain_parameters(thing: Any) -> dict[str, Any]:
    """The parameters of a dataclass: plain values as they are, objects as the text that makes them."""
    if isinstance(thing, Described) or not is_dataclass(thing):
        return {}
    return {field.name: plain_value(getattr(thing, field.name)) for field in parameter_fields(thing)}


def plain_value(value: Any) -> Any:
    """A number or text as it is, and everything else as the text that makes it."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple) and len(value) == 1:
        return plain_value(value[0])
    return value if isinstance(value, bool | int | float | str | type(None)) else repr(value)


def _changed(policy: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that differ from the class's defaults."""
    if not values:
        return {}
    defaults = {}
    for field in parameter_fields(policy):
        if field.default is not MISSING:
            defaults[field.name] = plain_value(field.default)
        elif field.default_factory is not MISSING:
            defaults[field.name] = plain_value(field.default_factory())
    return {name: value for name, value in values.items() if name not in defaults or defaults[name] != value}


def final_column(kind: str) -> str:
    """The column of the final regret of a kind."""
    return "final_regret" if kind == "average" else f"final_{kind}_regret"


def _place(name: str) -> tuple[int, str]:
    """Where a column stands: in the order of the list, parameters behind it by prefix and name."""
    known = list(COLUMNS)
    if name in COLUMNS:
        return known.index(name), name
    for prefix in (ENVIRONMENT, POLICY, INFO):
        if name.startswith(prefix):
            return known.index(f"{prefix}*"), name
    return known.index("final_yue_regret"), name


def _is_number(cell: str) -> bool:
    return cell == "" or cell.lstrip("+-").replace(",", "").replace(".", "", 1).isdigit()


_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "$": r"\$",
    "{": r"\{",
    "}": r"\}",
    "\n": " ",
    "\\": r"\textbackslash{}",
}
_LATEX |= {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "“": "``", "”": "''"}


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
