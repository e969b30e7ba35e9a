"""What a sampler is: hyper-parameters apart from the chains, and two verbs.

`start` places the chains at draws from the prior; `advance` moves them towards the current potential and returns the new
chains. The chains are a value, so they can be stored, compared and resumed; `position` holds the draws.
"""

from __future__ import annotations

from typing import Any, Protocol

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
    """Moves chains towards a potential."""

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> Any:
        """Chains at independent draws from the prior, one block of chains a lane."""

    def advance(self, potential: LinearPotential, chains: Any, streams: Streams, round_: int, attempt: int = 0) -> Any:
        """Move every chain; (round_, attempt) names the random numbers, so the same call gives the same draws."""

    def report(self, chains: Any) -> dict[str, FloatArray]:
        """Numbers for a person, one a lane: acceptance and the like."""


def prior_draws(prior: Prior, streams: Streams, *, chains: int, dim: int, round_: int = 0) -> FloatArray:
    """(lanes, chains, dim) independent draws from the prior, others for every round_."""
    return np.array(
        [
            [prior.sample(streams.generator(f"prior {chain}", lane, round_), dim) for chain in range(chains)]
            for lane in range(len(streams))
        ]
    )
