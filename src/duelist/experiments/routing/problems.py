"""The routing experiments: which tables, which features, which policies, and a spec of each.

One problem is a table seen through one kind of features. All problems of a table have the same seed, so that trial n meets the
same prompts in the same order with the same luck, whatever the features: runs can be compared trial by trial.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.datasets.routing import ScoreTable, read_mix_instruct, read_routerbench
from duelist.datasets.sources import MissingDataError
from duelist.datasets.stand_ins import STAND_INS, make_stand_in
from duelist.experiments.routing.embeddings import WEIGHTINGS, CategoryDirections, category_means, category_weights
from duelist.experiments.routing.tables import Embed, RoutingTable, prepare_table
from duelist.experiments.sweep.spec import Spec, spec_from_mapping
from duelist.features import PrincipalComponents
from duelist.typing import FloatArray

SEED, TABLE_SEED, ROUNDS, TRIALS = 61, 0, 2500, 12
COST_WEIGHT = 0.2
DIAL = (0.0, 0.1, 0.2, 0.4, 0.8)  # weights of the cost at which FGTS plays for the curve of quality against cost
SHARPNESS = 4.0  # log-odds per unit of utility: a right answer wins 98 % of the votes against a wrong one of the same cost
GENERAL, BLOCKS = "general", "blocks"
FEATURES = (*WEIGHTINGS, GENERAL, BLOCKS)
DIAL_FEATURES = "excel-perf-cost"
_N_COMPONENTS = {GENERAL: 16, BLOCKS: 8}
_CURVE_POINTS = 100
_STAND_IN_PROMPTS = 3125
TITLES = {"routerbench": "RouterBench", "mix-instruct": "MixInstruct"}
_READERS = {"routerbench": read_routerbench, "mix-instruct": read_mix_instruct}

PAPER = "FGTS"
POLICIES: tuple[dict[str, Any], ...] = (
    {"policy": PAPER},
    {"policy": "FGTS", "label": "FGTS (recommended)", "parameters": {
        "eta": 2.0, "alpha": 0.01, "prior": {"kind": "Gaussian", "scale": 0.25}}},
    {"policy": "Foresight"},
    {"policy": "CoLSTIM"},
    {"policy": "MaxInP"},
    {"policy": "MaxPairUCB"},
    {"policy": "Uniform"},
)  # fmt: skip
EVERYWHERE = (PAPER, "CoLSTIM", "Uniform")  # play on all kinds of features; the others on `DIAL_FEATURES` alone


def routing_tables(folder: Path | None, only: Collection[str], embed: Embed) -> dict[str, RoutingTable]:
    """The tables to play on, by name: the files of a folder, or without one the stand-ins.

    Args:
        folder: with routerbench.csv or .parquet, mix-instruct.json, .jsonl or .parquet, and perhaps beside each
            NAME-embeddings.npy, one row per row of the file; None for the stand-ins.
        only: names; empty for all.
        embed: makes embeddings of texts, where a file has none.
    """
    names = [*STAND_INS] if folder is not None else [f"{name}-stand-in" for name in STAND_INS]
    for name in only:
        one_of("--only", name, names)
    wanted = [name for name in names if not only or name in only]
    if folder is None:
        kinds = {name: name.removesuffix("-stand-in") for name in wanted}
        tables = {name: make_stand_in(kind, _STAND_IN_PROMPTS, TABLE_SEED) for name, kind in kinds.items()}
        titles = {name: f"made up, in the shape of {TITLES[kind]}" for name, kind in kinds.items()}
    else:
        tables = {name: table for name in wanted if (table := _read(name, folder)) is not None}
        titles = TITLES
    if not tables:
        raise MissingDataError(
            f"{folder} holds none of the tables {', '.join(wanted)}. Put routerbench.csv or .parquet or mix-instruct.jsonl "
            f"there; `duelist data routerbench` says where to get them. Without --data, stand-ins are played."
        )
    return {name: prepare_table(name, titles[name], table, seed=TABLE_SEED, embed=embed) for name, table in tables.items()}


def _read(name: str, folder: Path) -> ScoreTable | None:
    files = sorted(path for path in folder.glob(f"{name}.*") if path.is_file())
    if not files:
        return None
    table = _READERS[name](files[-1])
    beside = folder / f"{name}-embeddings.npy"
    if not beside.exists():
        return table
    try:
        embeddings = np.load(beside, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{beside} must be an array of numbers. Save one with numpy.save.") from error
    return ScoreTable(**{**vars(table), "embeddings": np.asarray(embeddings, dtype=np.float64)})


def routing_features(table: RoutingTable, kind: str, cost_weight: float) -> tuple[FloatArray, FloatArray | None]:
    """Contexts (n_online, m) and the catalogue (K, m) of models, fitted on the offline part; None for a block per model.

    A 1 for each of a model's mean score and mean cost is appended to the context, and these to the model, so that what is true
    of a model on every prompt can be learnt at once. The catalogue is scaled so that features have mean square 1.
    """
    one_of("features", kind, FEATURES)
    offline, online = (table.embeddings[rows] for rows in (table.offline, table.online))
    if kind == BLOCKS:
        shorten = PrincipalComponents.fit(contexts=offline, n_components=_n_components(kind, offline))
        scale = np.sqrt(_n_components(kind, offline))
        return np.column_stack([scale * shorten(online), np.ones(len(online))]), None
    known = table.categories[table.offline]
    transform: Any = (
        PrincipalComponents.fit(contexts=offline, n_components=_n_components(kind, offline), scaling="each")
        if kind == GENERAL
        else CategoryDirections.fit(offline, known)
    )
    names = np.unique(known)
    scores, costs = (category_means(values[table.offline], known, names).T for values in (table.scores, table.paid))
    weights = category_weights("perf-cost" if kind == GENERAL else kind, scores, costs, cost_weight)
    models = weights @ category_means(transform(offline), known, names)
    overall = [table.scores[table.offline].mean(axis=0)] + ([] if table.costs is None else [costs.mean(axis=1)])
    contexts = np.column_stack([transform(online), np.ones((len(online), len(overall)))])
    catalogue = np.column_stack([models, *overall])
    catalogue = catalogue - catalogue.mean(axis=0)
    catalogue = catalogue / np.maximum(catalogue.std(axis=0), 1e-12)
    typical = np.sqrt((contexts**2).mean(axis=0) @ (catalogue**2).mean(axis=0) / contexts.shape[1])
    return contexts, catalogue / typical


def _n_components(kind: str, offline: FloatArray) -> int:
    return min(_N_COMPONENTS[kind], int(offline.shape[1]))


def routing_specs(
    table: RoutingTable, folder: Path, *, features: Sequence[str] = FEATURES, only: Collection[str] = ()
) -> dict[tuple[str, str, float], Spec]:
    """The experiments on a table by (table, features, weight of the cost), and last those of the dial.

    Args:
        table: the scores.
        folder: where contexts, catalogues, scores and costs are written.
        features: kinds of features.
        only: labels of policies; empty for all.
    """
    labels = [str(policy.get("label", policy["policy"])) for policy in POLICIES]
    for label in only:
        one_of("--policies", label, labels)
    chosen = [policy for policy, label in zip(POLICIES, labels, strict=True) if not only or label in only]
    weight = COST_WEIGHT if table.costs is not None else 0.0
    kinds = [kind for kind in features if table.costs is not None or kind != "perf-cost"]  # without costs, perf again
    wide = [policy for policy in chosen if policy["policy"] in EVERYWHERE and "label" not in policy]
    players = {kind: chosen if kind == DIAL_FEATURES else wide for kind in kinds}
    wanted: list[tuple[str, float, Sequence[Mapping[str, Any]]]] = [
        (kind, weight, policies) for kind, policies in players.items() if policies
    ]
    if table.costs is not None:
        wanted += [(DIAL_FEATURES, dial, POLICIES[:1]) for dial in DIAL if dial != weight]
    shared = _write(folder / table.name, scores=table.scores[table.online])
    if table.costs is not None:
        shared |= _write(folder / table.name, costs=table.costs[table.online])
    specs = {}
    for kind, cost_weight, policies in wanted:
        name = f"{table.name}-{kind}" + ("" if cost_weight == weight else f"-{round(100 * cost_weight)}")
        contexts, catalogue = routing_features(table, kind, cost_weight)
        own = _write(folder / name, contexts=contexts)
        if catalogue is not None:
            own |= {**_write(folder / name, catalogue=catalogue), "join": "product"}
        specs[table.name, kind, cost_weight] = spec_from_mapping(
            {
                "name": name,
                "title": f"{table.title}; features: {kind}; weight of the cost: {cost_weight:g}",
                "environment": {
                    "kind": "ScoredDuels", **shared, **own, "cost_weight": cost_weight, "sharpness": SHARPNESS,
                },
                "rounds": ROUNDS,
                "thin": ROUNDS // _CURVE_POINTS,
                "trials": TRIALS,
                "seed": SEED,
                "policies": [dict(policy) for policy in policies],
            }
        )  # fmt: skip
    return specs


def _write(stem: Path, **arrays: FloatArray) -> dict[str, str]:
    """Write arrays beside each other and return their paths by name."""
    paths = {}
    for name, array in arrays.items():
        path = stem.with_name(f"{stem.name}-{name}.npy")
        np.save(path, array)
        paths[name] = str(path)
    return paths
