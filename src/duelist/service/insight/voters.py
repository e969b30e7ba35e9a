"""How reliable the voters of an arena are, and what standing on the left adds: estimated when asked for, and never learnt from.

The model is that of `duelist.live.crowd`, from the prior of the arena's policy and every win and tie that stands. Votes without
a voter count as those of one that has no name, and imports have no side.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.live.crowd import CrowdVotes
from duelist.policies.registry import plays_slates
from duelist.service.arena.arena import Arena
from duelist.service.arena.decisions import ASKED
from duelist.service.arena.outcomes import SIGNS, Outcome
from duelist.service.errors import ConflictError

NAMELESS = ""
_SIGN = np.array([float(SIGNS.get(outcome, 0)) for outcome in Outcome])


def crowd_votes(arena: Arena) -> CrowdVotes:
    """The votes of an arena of pairs, copied so that others may come while they are fitted."""
    learner, log = arena.learner, arena.log
    if plays_slates(learner.lane.policy):
        raise ConflictError("voters are compared on pairs, and this arena shows slates.")
    dim, outcome = learner.lane.dim, log.column("outcome").astype(np.int64)
    told = np.flatnonzero(np.isin(outcome, list(arena.spec.learnt_outcomes)))
    if learner.request_features is not None:
        settled, pair_of = learner.request_features.pairs, learner.request_features.pair_of
        both = np.array([settled[n] if n in settled else pair_of(log[n]) for n in told.tolist()]).reshape(-1, 2, dim)
        contrasts = both[:, 0] - both[:, 1]
    else:
        features = arena.table.features(tuple(range(len(arena.table.items))), dim)
        first, second = (log.column(name)[told] for name in ("first", "second"))
        contrasts = features[first] - features[second]
    sides = np.where(log.column("source")[told] == ASKED, np.where(log.column("flipped")[told], -1.0, 1.0), 0.0)
    # Numbers of those who voted, in their order; of no name comes first.
    present, voters = np.unique(log.column("voter")[told], return_inverse=True)
    names = list(arena.voters)
    prior = learner.lane.policy.believed_prior()
    # A ball without a Gaussian is one of the same variance.
    ball = (dim + 2) / prior.radius**2 if math.isfinite(prior.radius) else 0.0
    return CrowdVotes(
        contrasts=contrasts,
        outcomes=_SIGN[outcome[told]],
        sides=sides,
        voters=voters.reshape(-1).astype(np.int64),
        names=tuple(names[number] if number >= 0 else NAMELESS for number in present.tolist()),
        precision=float(prior.precision) + ball,
    )
