"""What a sampler is: hyper-parameters apart from the chains, and two verbs.

`start` places the chains at draws from the prior; `advance` moves them towards the current potential and returns the new
chains. The chains are a value, so they can be stored, compared and resumed; `position` holds the draws.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.streams import Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.priors import Prior


class Chains(Protocol):
    """Where the chains stand, and what their next step needs."""

    @property
    def position(self) -> FloatArray:
        """(lanes, chains, dim) the current draw of every chain."""


class Sampler(Protocol):
    """Moves chains towards a potential.

    Attributes:
        exact: whether its draws have the posterior as their limit.
        one_pass: whether it needs each duel only once, so that a policy need not keep them.
    """

    exact: ClassVar[bool]
    one_pass: ClassVar[bool]

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> Any:
        """Chains at independent draws from the prior, one block of chains a lane."""

    def advance(self, potential: LinearPotential, chains: Any, streams: Streams, round_: int, attempt: int = 0) -> Any:
        """Move every chain; (round_, attempt) names the random numbers, so the same call gives the same draws."""

    def report(self, chains: Any) -> dict[str, FloatArray]:
        """Numbers for a person, one a lane: acceptance and the like."""


class Trace(NamedTuple):
    """The path of every chain.

    Attributes:
        path: (lanes, chains, draws, dim) positions.
        energy: (lanes, chains, draws) the potential there.
    """

    path: FloatArray
    energy: FloatArray


@runtime_checkable
class Tracer(Protocol):
    """A sampler that can run many draws in one call, with whatever it tunes held fixed."""

    def trace(self, potential: LinearPotential, chains: Any, streams: Streams, round_: int, draws: int) -> tuple[Any, Trace]:
        """The chains after `draws` draws, and their path."""


def traced(
    sampler: Sampler, potential: LinearPotential, chains: Any, streams: Streams, round_: int, draws: int
) -> tuple[Any, Trace]:
    """Run `draws` draws from (round_) on: in one call where the sampler can, else one `advance` a draw."""
    if isinstance(sampler, Tracer):
        return sampler.trace(potential, chains, streams, round_, draws)
    lanes, n_chains, dim = chains.position.shape
    trace = Trace(np.empty((lanes, n_chains, draws, dim)), np.empty((lanes, n_chains, draws)))
    for draw in range(draws):
        chains = sampler.advance(potential, chains, streams, round_ + draw)
        trace.path[:, :, draw] = chains.position
        trace.energy[:, :, draw] = potential.value(chains.position)
    return chains, trace


def prior_draws(prior: Prior, streams: Streams, *, chains: int, dim: int, round_: int = 0) -> FloatArray:
    """(lanes, chains, dim) independent draws from the prior, others for every round_."""
    return np.array(
        [
            [prior.sample(streams.generator(f"prior {chain}", lane, round_), dim) for chain in range(chains)]
            for lane in range(len(streams))
        ]
    )
