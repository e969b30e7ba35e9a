"""What a sampler is: hyper-parameters apart from the state of its chains, and three verbs.

`start` places the chains at draws from the prior; `advance` moves them towards the current potential and returns the new
state; `report` says how they fare. A state is a value, so it can be stored, compared and resumed: `position` holds the draws,
and `info`, where there is one, holds counters that only `report` reads.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from duelist.core.streams import Streams
from duelist.kernels.philox import RandomSource
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.typing import FloatArray


class SamplerState(Protocol):
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
        """Chains at independent draws from the prior, one block of chains per lane."""

    def advance(self, potential: LinearPotential, state: Any, streams: Streams, round_: int, attempt: int = 0) -> Any:
        """Move every chain; (round_, attempt) names the random numbers, so the same call gives the same draws."""

    def report(self, state: Any) -> dict[str, FloatArray]:
        """Human-readable numbers, each (lanes,): acceptance and the like."""


class Trace(NamedTuple):
    """The path of every chain.

    Attributes:
        path: (lanes, chains, draws, dim) positions.
        energy: (lanes, chains, draws) the potential there.
    """

    path: FloatArray
    energy: FloatArray


class OnePassSampler(Sampler, Protocol):
    """A sampler that needs each duel only once."""

    def absorb(self, potential: LinearPotential, state: Any) -> Any:
        """The state after the newest duel of the potential, which need not be kept any longer."""


@runtime_checkable
class Tracer(Protocol):
    """A sampler that can run many draws in one call, with everything that it tunes held fixed."""

    def trace(self, potential: LinearPotential, state: Any, streams: Streams, round_: int, draws: int) -> tuple[Any, Trace]:
        """The state after `draws` draws, and the path of the chains."""


def trace(
    sampler: Sampler, potential: LinearPotential, state: Any, streams: Streams, round_: int, draws: int
) -> tuple[Any, Trace]:
    """Draw `draws` times from (round_) on: in one call where the sampler can, else one `advance` per draw."""
    if isinstance(sampler, Tracer):
        return sampler.trace(potential, state, streams, round_, draws)
    lanes, chains, dim = state.position.shape
    found = Trace(np.empty((lanes, chains, draws, dim)), np.empty((lanes, chains, draws)))
    for draw in range(draws):
        state = sampler.advance(potential, state, streams, round_ + draw)
        found.path[:, :, draw] = state.position
        found.energy[:, :, draw] = potential.value(state.position)
    return state, found


def random_source(streams: Streams, round_: int, attempt: int, chains: int) -> RandomSource:
    """The random numbers of a call of `advance`: every attempt has substreams of its own, one per chain."""
    return RandomSource(streams.keys("sampler"), round_, attempt * chains)


def prior_draws(prior: Prior, streams: Streams, *, chains: int, dim: int, round_: int = 0) -> FloatArray:
    """(lanes, chains, dim) independent draws from the prior, others for every round_."""
    return np.array(
        [
            [prior.sample(streams.generator(f"prior {chain}", lane, round_), dim) for chain in range(chains)]
            for lane in range(len(streams))
        ]
    )
