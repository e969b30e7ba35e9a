"""Play a policy that shows slates: the round loop of `simulate` with rankings for answers.

An environment plays slates if its instances have `rankings(round_, slates) -> (lanes, choices)`: places in the slate, best
first. Those with utilities answer by the Plackett-Luce model. Regret is asked of `instance.regret` with the slates in place of
the duels: a mean, or a minimum, over what was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.base import Environment, Regret
from duelist.experiments.records import kept_rounds
from duelist.experiments.regret_columns import read_simple_regret
from duelist.policies.base import SlatePolicy
from duelist.typing import FloatArray


class SlateResults:
    """Columns that every block fills for its own lanes."""

    def __init__(self, trials: int, rounds: int, choices: int, simple_every: int = 0) -> None:
        self.simple_every = simple_every
        self.simple_rounds = kept_rounds(rounds, simple_every) if simple_every else None
        self.simple = None if self.simple_rounds is None else np.empty((trials, len(self.simple_rounds)))
        self.costs: dict[str, FloatArray] = {name: np.full((trials, rounds), np.nan) for name in Regret._fields}
        self.slates, self.rankings = (np.empty((trials, rounds, choices), dtype=np.int32) for _ in range(2))

    def columns(self) -> dict[str, Any]:
        """The fields of a `Run`. As of a pair, it says which of the first two places the ranking puts first."""
        places = np.argsort(self.rankings, axis=2)
        return {
            "regrets": {name: np.cumsum(cost, axis=1) for name, cost in self.costs.items()},
            "rounds": kept_rounds(self.slates.shape[1], 1),
            "first": self.slates[:, :, 0],
            "second": self.slates[:, :, 1],
            "outcomes": np.where(places[:, :, 0] < places[:, :, 1], 1, -1).astype(np.int8),
            "slates": self.slates,
            "rankings": self.rankings,
            "simple_regret": self.simple,
            "simple_rounds": self.simple_rounds,
        }

    def wants_recommendation(self, round_: int) -> bool:
        """Whether the simple regret of this round is to be kept."""
        return self.simple_rounds is not None and bool(self.simple_rounds[round_ // self.simple_every] == round_ + 1)

    def write_simple(self, block: slice, round_: int, regret: FloatArray) -> None:
        """Keep the simple regret of a round."""
        if self.simple is not None:
            self.simple[block, round_ // self.simple_every] = regret


def play_slates(
    policy: SlatePolicy[Any],
    environment: Environment,
    streams: Streams,
    rounds: Iterable[int],
    results: SlateResults,
    block: slice,
    tick: Callable[[int], None],
) -> dict[str, Any]:
    """Play one block of lanes and return the policy's report."""
    instance: Any = environment.instance(streams)
    if not hasattr(instance, "rankings"):
        raise InvalidInputError(
            f"{type(environment).__name__} answers pairs, and {type(policy).__name__}(choices={policy.choices}) shows slates. "
            f"Give its instances rankings(round_, slates), or play a policy for pairs, such as "
            f"{type(policy).__name__}(choices=2) or FGTS()."
        )
    horizon = results.slates.shape[1]
    state = policy.start(Problem(dim=environment.dim, lanes=len(streams), horizon=horizon), streams)
    for t in rounds:
        actions = instance.actions(t)
        slates, state = policy.choose(state, actions, streams)
        answers = _checked(instance.rankings(t, slates), slates.rows.shape, t)
        state = policy.learn(state, actions, slates, list(answers))
        for name, cost in zip(Regret._fields, instance.regret(actions, slates), strict=True):
            results.costs[name][block, t] = cost
        if results.wants_recommendation(t):
            results.write_simple(block, t, read_simple_regret(policy, state, actions, instance))
        results.slates[block, t], results.rankings[block, t] = slates.rows, answers
        tick(len(streams))
    return policy.report(state)


def _checked(rankings: Any, shape: tuple[int, ...], round_: int) -> Any:
    """Refuse what is no full ranking per lane, so that no policy has to."""
    if np.shape(rankings) != shape or (np.sort(rankings, axis=1) != np.arange(shape[1])).any():
        raise InvalidInputError(
            f"an environment's rankings must be {shape}, each row the places 0 to {shape[1] - 1}, best first; got {rankings!r} "
            f"in round {round_}."
        )
    return rankings
