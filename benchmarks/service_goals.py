"""How often the verdicts of arenas are wrong, and how many votes they take, over simulated arenas.

    python benchmarks/service_goals.py --arenas 1000

An arena is that of the service, without HTTP and disk: its asks, answers and verdict. The verdict is asked for after every few
votes until it is decided, the most favourable way to be misled. Wrong is a verdict that the true utilities contradict. The
arena chooses pairs as it does by itself; beside it, random pairs. An arena that ran out of votes counts with all of them.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import beta

from duelist.service.arena.commands import Ask, Tell
from duelist.service.arena.goals import ArenaGoal
from duelist.service.arena.items import Item
from duelist.service.commands import CreateArena
from duelist.service.http.question_models import NewGoal
from duelist.service.http.request_models import NewArena
from duelist.service.http.requests import goal_of, spec_of
from duelist.service.insight.verdict import arena_verdict, verdict_inputs
from duelist.service.state import ServiceState
from duelist.typing import FloatArray

EVERY = 10  # votes between two looks


class Setting(NamedTuple):
    """A kind of arena: its goal, the number of items, and the standard deviation of their utilities."""

    goal: dict[str, Any]
    items: int
    spread: float


class Played(NamedTuple):
    """How an arena ended: whether the verdict was reached, whether it was wrong, and after how many votes."""

    decided: bool
    wrong: bool
    votes: int


SETTINGS = {
    "best of 4": Setting({"kind": "best"}, 4, 3.0),
    "top 2 of 4": Setting({"kind": "top", "k": 2}, 4, 3.0),
    "ranking of 4": Setting({"kind": "ranking"}, 4, 5.0),
    "promote, of 4": Setting({"kind": "promote", "challenger": "i0", "champion": "i1"}, 4, 1.5),
    "best of 3, hard": Setting({"kind": "best"}, 3, 0.5),
    "top 2 of 3, hard": Setting({"kind": "top", "k": 2}, 3, 0.5),
    "ranking of 3, hard": Setting({"kind": "ranking"}, 3, 0.5),
    "promote, of 3, hard": Setting({"kind": "promote", "challenger": "i0", "champion": "i1"}, 3, 0.2),
}


def play(setting: Setting, seed: int, options: argparse.Namespace, *, is_random: bool) -> Played:
    """One arena, until its verdict is reached or the votes are used up."""
    random = np.random.default_rng([seed, 1807])
    utilities = random.normal(0.0, setting.spread, setting.items)
    state, goal = _arena(setting, seed, options, is_random=is_random)
    arena = state.arena("arena")
    for vote in range(1, options.votes + 1):
        arena.goal = None if is_random else goal  # a goal of the kind promote would narrow random pairs down too
        asked = Ask("arena", vote, False).decide(state, 0)
        assert asked is not None  # only a repeated request has no event
        state.apply(asked)
        decision = arena.log[asked.body["number"]]
        wins = random.random() < expit(utilities[decision.first] - utilities[decision.second])
        told = Tell("arena", decision.id, "left" if wins else "right").decide(state, 0)
        assert told is not None
        state.apply(told)
        if vote % EVERY == 0:
            arena.goal = goal
            found = arena_verdict(verdict_inputs(arena))
            if found.verdict.decided:
                return Played(True, _is_wrong(setting.goal, [int(item[1:]) for item in found.items], utilities), vote)
    return Played(False, False, options.votes)


def _arena(setting: Setting, seed: int, options: argparse.Namespace, *, is_random: bool) -> tuple[ServiceState, ArenaGoal]:
    """An arena as a request to the service would make it."""
    items = [{"id": f"i{n}", "name": f"Item {n}"} for n in range(setting.items)]
    body: dict[str, Any] = {"id": "arena", "name": "Arena", "items": items, "seed": seed, "undo_seconds": 0.0}
    body["goal"] = {**setting.goal, "delta": options.delta, "evidence": options.evidence}
    if is_random or options.policy:
        body["policy"] = {"name": "Uniform" if is_random else options.policy}
    request = NewArena.model_validate_json(json.dumps(body))
    spec, goal = spec_of(request, {}), goal_of(NewGoal.model_validate_json(json.dumps(body["goal"])), "identity")
    state = ServiceState()
    made = [Item(f"i{n}", f"Item {n}", f"Item {n}") for n in range(setting.items)]
    created = CreateArena(spec, made, goal=goal).decide(state, 0)
    assert created is not None
    state.apply(created)
    return state, goal


def _is_wrong(goal: dict[str, Any], named: list[int], utilities: FloatArray) -> bool:
    if goal["kind"] == "ranking":
        return bool((np.diff(utilities[named]) > 0.0).any())
    others = [0, 1] if goal["kind"] == "promote" else range(len(utilities))
    rest = [n for n in others if n not in named]
    return bool(utilities[named].min() < utilities[rest].max())


def _compare(mine: list[int], by_chance: list[int]) -> str:
    middle, other = float(np.median(mine)), float(np.median(by_chance))
    means = f"{np.mean(by_chance):.0f} | {np.mean(mine) / np.mean(by_chance):.2f}"
    return f"{means} | {middle:.0f} and {other:.0f} | {middle / other:.2f}"


def main() -> None:
    """Print a table: share of wrong verdicts with a 95 % Clopper-Pearson interval, and votes beside random pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arenas", type=int, default=1000)
    parser.add_argument("--compared", type=int, default=200, help="arenas of those that random pairs are tried in too")
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--votes", type=int, default=600, help="most votes per arena")
    parser.add_argument("--evidence", choices=("pairs", "model"), default="pairs")
    parser.add_argument("--policy", default="", help="in place of the one that fits the goal")
    parser.add_argument("--only", default="", help="settings whose name holds this")
    parser.add_argument("--seed", type=int, default=0, help="of the first arena")
    options = parser.parse_args()
    print(f"delta {options.delta}, evidence {options.evidence}, {options.arenas} arenas, at most {options.votes} votes each")
    print("| setting | decided | wrong | 95 % interval of wrong | mean votes | of random pairs | ratio | medians | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, setting in SETTINGS.items():
        if options.only not in name:
            continue
        seeds = range(options.seed, options.seed + options.arenas)
        played = [play(setting, seed, options, is_random=False) for seed in seeds]
        compared = 0 if "hard" in name else min(options.compared, options.arenas)
        by_chance = [play(setting, seed, options, is_random=True).votes for seed in seeds[:compared]]
        wrong, n = sum(each.wrong for each in played), len(played)
        low = float(beta.ppf(0.025, wrong, n - wrong + 1)) if wrong else 0.0
        high = float(beta.ppf(0.975, wrong + 1, n - wrong)) if wrong < n else 1.0
        decided = sum(each.decided for each in played) / n
        mine = [each.votes for each in played[: compared or n]]
        beside = _compare(mine, by_chance) if compared else "- | - | - | -"
        print(
            f"| {name} | {decided:.3f} | {wrong / n:.4f} | {low:.4f} to {high:.4f} | {np.mean(mine):.0f} | {beside} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
