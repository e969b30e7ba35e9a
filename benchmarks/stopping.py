"""How often stopping rules are wrong, and how many votes they take, over simulated problems.

    python benchmarks/stopping.py --problems 1000

In every problem the rule is asked after every few votes until it decides, the most favourable way to be misled. Pairs are
random, or the two arms that stand between the rule and its verdict, or those of the policy `BestArm`, whose own verdict it is
then. Wrong is a verdict that the true utilities contradict.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import beta

from duelist.actions import FiniteActions
from duelist.core import Problem, Streams
from duelist.policies import BestArm
from duelist.posteriors import Goal, Verdict, Votes, linear_verdict, log_evidence_against_best, pair_verdict
from duelist.typing import FloatArray

EVERY = 10  # votes between two looks


class Setting(NamedTuple):
    """A kind of problem: evidence "pairs" or "linear", the goal, arms, dimension of features, how pairs are chosen, ties.

    `pairs` is "random", "active", or "BestArm" for that policy with its own verdict.
    """

    evidence: str
    goal: str
    arms: int
    dim: int = 0
    pairs: str = "random"
    spread: float = 1.0
    tie_chance: float = 0.0


class Played(NamedTuple):
    """How a problem ended: whether the rule stopped, whether it was wrong, and after how many votes."""

    stopped: bool
    wrong: bool
    votes: int


SETTINGS = {
    "pairs, best of 5, random": Setting("pairs", "best", 5),
    "pairs, best of 5, active": Setting("pairs", "best", 5, pairs="active"),
    "pairs, best of 5, nearly equal": Setting("pairs", "best", 5, pairs="active", spread=0.05),
    "pairs, best of 5, ties": Setting("pairs", "best", 5, tie_chance=0.3),
    "pairs, top 2 of 5": Setting("pairs", "top", 5),
    "pairs, ranking of 4": Setting("pairs", "ranking", 4, spread=2.0),
    "pairs, promote": Setting("pairs", "promote", 2),
    "pairs, promote, nearly equal": Setting("pairs", "promote", 2, spread=0.02),
    "linear, best of 8": Setting("linear", "best", 8, 3),
    "linear, best of 8, nearly equal": Setting("linear", "best", 8, 3, spread=0.1),
    "linear, top 2 of 8": Setting("linear", "top", 8, 3),
    "linear, ranking of 4": Setting("linear", "ranking", 4, 3, spread=2.0),
    "linear, promote": Setting("linear", "promote", 2, 3),
    "linear, promote, nearly equal": Setting("linear", "promote", 2, 3, spread=0.02),
    "BestArm, best of 8": Setting("linear", "best", 8, 3, pairs="BestArm"),
    "BestArm, top 2 of 8": Setting("linear", "top", 8, 3, pairs="BestArm"),
}


def play(name: str, seed: int, *, delta: float, most_votes: int) -> Played:
    """One problem, asked until it is decided or the votes are used up."""
    setting, random = SETTINGS[name], np.random.default_rng([seed, 8160])
    goal = Goal(kind=setting.goal, delta=delta, k=2 if setting.goal == "top" else 1)
    features = random.normal(size=(setting.arms, setting.dim)) if setting.dim else np.eye(setting.arms)
    utilities = features @ random.normal(0.0, setting.spread, features.shape[1])
    if setting.pairs == "BestArm":
        return _play_best_arm(features, utilities, goal, setting, random, most_votes)
    wins = np.zeros((setting.arms, setting.arms))
    for votes in range(1, most_votes + 1):
        i, j = _next_pair(wins, setting, random)
        score = _vote(utilities[i] - utilities[j], setting, random)
        wins[i, j] += score
        wins[j, i] += 1.0 - score
        if votes % EVERY == 0:
            verdict = _verdict(setting, features, wins, goal)
            if verdict.decided:
                return Played(True, _is_wrong(goal, verdict.arms, utilities), votes)
    return Played(False, False, most_votes)


def _play_best_arm(
    features: FloatArray, utilities: FloatArray, goal: Goal, setting: Setting, random: np.random.Generator, most_votes: int
) -> Played:
    """One problem of `BestArm`: it chooses every pair, and its own verdict says when to stop."""
    policy, arms, streams = (
        BestArm(k=goal.k, delta=goal.delta),
        FiniteActions(features),
        Streams(0, [int(random.integers(2**31))]),
    )
    state = policy.start(Problem(dim=features.shape[1]), streams)
    for votes in range(1, most_votes + 1):
        duels, state = policy.choose(state, arms, streams)
        score = _vote(utilities[duels.first[0]] - utilities[duels.second[0]], setting, random)
        state = policy.learn(state, arms, duels, np.array([round(2.0 * score - 1.0)]))
        if votes % EVERY == 0:
            (verdict,) = policy.verdict(state, arms)
            if verdict.decided:
                return Played(True, _is_wrong(goal, verdict.arms, utilities), votes)
    return Played(False, False, most_votes)


def _vote(difference: float, setting: Setting, random: np.random.Generator) -> float:
    """1 where the first won, 0 where the second did, and half of it for a tie."""
    win = expit(difference)
    if random.random() < setting.tie_chance * 2.0 * min(win, 1.0 - win):
        return 0.5
    return float(random.random() < win)


def _next_pair(wins: FloatArray, setting: Setting, random: np.random.Generator) -> tuple[int, int]:
    if setting.pairs == "active":  # the arm that may best be the best, and the next
        first, second = np.argsort(log_evidence_against_best(wins) + 1e-6 * random.random(len(wins)))[:2]
        return int(first), int(second)
    first, second = random.choice(len(wins), 2, replace=False)
    return int(first), int(second)


def _verdict(setting: Setting, features: FloatArray, wins: FloatArray, goal: Goal) -> Verdict:
    if setting.evidence == "pairs":
        return pair_verdict(wins, goal)
    i, j = np.triu_indices(len(wins), 1)
    return linear_verdict(features, Votes(features[i] - features[j], wins[i, j], wins[j, i]), goal)


def _is_wrong(goal: Goal, arms: tuple[int, ...], utilities: FloatArray) -> bool:
    if goal.kind == "ranking":
        return bool((np.diff(utilities[list(arms)]) > 0.0).any())
    rest = [j for j in range(len(utilities)) if j not in arms]
    return bool(utilities[list(arms)].min() < utilities[rest].max())


def main() -> None:
    """Print a table: share of wrong verdicts with a 95 % Clopper-Pearson interval, and votes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--delta", type=float, default=0.1)
    parser.add_argument("--votes", type=int, default=2000, help="most votes per problem")
    parser.add_argument("--only", default="", help="settings whose name holds this")
    options = parser.parse_args()
    print(f"delta = {options.delta}, {options.problems} problems, at most {options.votes} votes, a look every {EVERY}")
    print("| setting | stopped | wrong | 95 % interval of wrong | median votes of those stopped |\n|---|---|---|---|---|")
    for name in SETTINGS:
        if options.only not in name:
            continue
        played = [play(name, seed, delta=options.delta, most_votes=options.votes) for seed in range(options.problems)]
        wrong, n = sum(each.wrong for each in played), len(played)
        low = float(beta.ppf(0.025, wrong, n - wrong + 1)) if wrong else 0.0
        high = float(beta.ppf(0.975, wrong + 1, n - wrong)) if wrong < n else 1.0
        votes = [each.votes for each in played if each.stopped]
        middle = f"{np.median(votes):.0f}" if votes else "-"
        print(f"| {name} | {len(votes) / n:.3f} | {wrong / n:.4f} | {low:.4f} to {high:.4f} | {middle} |", flush=True)


if __name__ == "__main__":
    main()
