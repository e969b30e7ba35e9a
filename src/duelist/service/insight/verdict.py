"""Are we done? How far the votes of an arena have come towards its goal, and that as a sentence.

The error probability holds whenever one looks and however pairs were chosen; see `duelist.posteriors.stopping` for the theorems
and what they assume. Every answer that stands counts in full, also where the policy lets old votes fade.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.posteriors.priors import Gaussian
from duelist.posteriors.stopping.goals import Goal, Verdict
from duelist.posteriors.stopping.linear import LinearModel, Votes, linear_verdict
from duelist.posteriors.stopping.pairs import pair_verdict
from duelist.service.arena.arena import Arena
from duelist.service.arena.contest import win_counts
from duelist.service.arena.goals import ArenaGoal
from duelist.service.errors import ConflictError
from duelist.typing import FloatArray


class VerdictInputs(NamedTuple):
    """All that a verdict needs of an arena, copied so that votes may go on while it is computed.

    Attributes:
        goal: what shall be found out.
        items: numbers of the active items, ascending.
        ids: of these.
        names: of these.
        wins: (n_items, n_items) wins of the row's item over the column's; a tie is half a win each way, where ties are learnt.
        features: (n_items, dim) of all items, for evidence from a model; empty for counts.
        prior_scale: of that model.
        revision: of the arena.
    """

    goal: ArenaGoal
    items: tuple[int, ...]
    ids: tuple[str, ...]
    names: tuple[str, ...]
    wins: FloatArray
    features: FloatArray
    prior_scale: float
    revision: int


class ArenaVerdict(NamedTuple):
    """A verdict in terms of an arena.

    Attributes:
        goal: what was to be found out.
        verdict: its arms are places in `ids`.
        ids: of the active items.
        votes: answers behind it.
        sentence: the same in words.
        revision: of the arena.
    """

    goal: ArenaGoal
    verdict: Verdict
    ids: tuple[str, ...]
    votes: int
    sentence: str
    revision: int

    @property
    def items(self) -> list[str]:
        """Ids of the items that are named, best first."""
        return [self.ids[arm] for arm in self.verdict.arms]


def verdict_inputs(arena: Arena) -> VerdictInputs:
    """Copy what `arena_verdict` needs."""
    goal, table = arena.goal, arena.table
    if goal is None:
        raise ConflictError(f"arena {arena.spec.id!r} has no goal, so there is no verdict. Set one: PUT .../goal.")
    everyone, dim = tuple(range(len(table.items))), arena.learner.lane.dim
    prior = arena.learner.lane.policy.believed_prior()
    return VerdictInputs(
        goal,
        table.active,
        tuple(table.items[number].id for number in table.active),
        tuple(table.items[number].name for number in table.active),
        win_counts(arena),
        table.features(everyone, dim) if goal.evidence == "model" else np.empty((0, 0)),
        prior.scale if isinstance(prior, Gaussian) else 1.0,
        arena.revision,
    )


def arena_verdict(inputs: VerdictInputs) -> ArenaVerdict:
    """How far the votes have come."""
    goal, active = inputs.goal, list(inputs.items)
    if goal.kind == "promote" and not {goal.challenger, goal.champion} <= set(inputs.ids):
        raise ConflictError(f"{goal.challenger!r} and {goal.champion!r} must both be active for a verdict. Bring them back.")
    rows = goal.over({item: row for row, item in enumerate(inputs.ids)})
    if goal.kind == "top" and goal.k >= len(active):
        raise ConflictError(f"{goal.k} of {len(active)} active items are not a choice. Set another goal, or bring items back.")
    verdict, votes = _from_pairs(inputs, rows) if goal.evidence == "pairs" else _from_model(inputs, rows)
    return ArenaVerdict(goal, verdict, inputs.ids, votes, _sentence(inputs, verdict), inputs.revision)


def _from_pairs(inputs: VerdictInputs, goal: Goal) -> tuple[Verdict, int]:
    wins = inputs.wins[np.ix_(inputs.items, inputs.items)]
    if goal.kind == "promote":  # of all votes, only those on the two count
        pair = [goal.challenger, goal.champion]
        verdict = pair_verdict(wins[np.ix_(pair, pair)], Goal(kind="promote", delta=goal.delta, challenger=0, champion=1))
        return verdict._replace(arms=tuple(pair[arm] for arm in verdict.arms)), round(float(wins[np.ix_(pair, pair)].sum()))
    return pair_verdict(wins, goal), round(float(wins.sum()))


def _from_model(inputs: VerdictInputs, goal: Goal) -> tuple[Verdict, int]:
    first, second = np.nonzero(np.triu(inputs.wins + inputs.wins.T, 1))
    contrasts = inputs.features[first] - inputs.features[second]
    votes = Votes(contrasts, inputs.wins[first, second], inputs.wins[second, first])
    verdict = linear_verdict(inputs.features[list(inputs.items)], votes, goal, LinearModel(prior_scale=inputs.prior_scale))
    return verdict, round(float(inputs.wins.sum()))


def _sentence(inputs: VerdictInputs, verdict: Verdict) -> str:
    goal, n_items = inputs.goal, len(inputs.items)
    names = [f"“{inputs.names[arm]}”" for arm in verdict.arms]
    if goal.kind == "promote":
        beaten = goal.champion if inputs.ids[verdict.arms[0]] == goal.challenger else goal.challenger
        claim = f"{names[0]} is better than “{inputs.names[inputs.ids.index(beaten)]}”"
    elif goal.kind == "ranking":
        claim = "the ranking is " + ", ".join(names)
    elif goal.kind == "top":
        claim = f"the best {goal.k} of {n_items} are {_listed(sorted(names))}"
    else:
        claim = f"{names[0]} is the best of {n_items}"
    if verdict.decided:
        return f"Decided: {claim}. This is wrong with a probability of at most {goal.delta:.3g}, however often one looked."
    if math.isinf(verdict.votes_expected):
        return "Not decided yet, and the votes so far do not point to an end."
    more = math.ceil(verdict.votes_expected)
    return f"Not decided yet. It looks as if {claim}; about {more} more {'vote' if more == 1 else 'votes'} would settle it."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
