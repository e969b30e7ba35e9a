"""The plan of `duelist reproduce routing`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duelist.cli.output import make_folder
from duelist.cli.plan import Options, Plan, first_given, resize_family, result_folder
from duelist.experiments.families.problems import STAGES
from duelist.experiments.routing.problems import routing_specs, routing_tables
from duelist.service import HashingEmbedder

ROUTING = "routing"
_HASHED_DIM = 256
_FINAL = STAGES[0]  # one stage: nothing is tuned, and the seed is the spec's own
QUICK_ROUNDS, QUICK_TRIALS = 200, 3


def routing_plan(options: Options) -> Plan:
    """Plan every kind of features on every table of scores: those of the folder `options.data`, else made-up ones."""
    from duelist.reports.routing import routing_report

    folder = result_folder(ROUTING, options) / "tables"
    make_folder(folder)
    tables = routing_tables(options.data, options.only, HashingEmbedder(dim=_HASHED_DIM).embed)
    rounds = first_given(options.rounds, QUICK_ROUNDS if options.quick else None)
    trials = first_given(options.trials, QUICK_TRIALS if options.quick else None)
    limits = Options(rounds=rounds, trials=trials, seed=options.seed)
    specs = {
        key: resize_family(spec, _FINAL, limits)
        for table in tables.values()
        for key, spec in routing_specs(table, folder, only=options.policies).items()
    }

    def report(results: Mapping[Any, Any], command: str, seconds: float) -> Any:
        return routing_report(tables, results, command=command, seconds=seconds)

    return Plan(specs, ROUTING, report)
