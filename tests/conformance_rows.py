"""The rows of the conformance table: one a policy. A new policy adds a line here and must pass every test of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duelist
from duelist.posteriors.priors import UniformBall
from duelist.samplers.registry import SAMPLERS


@dataclass(frozen=True)
class Row:
    """A policy and what may be asked of it.

    Attributes:
        name: shown in the test's name.
        policy: the hyper-parameters.
        learns: False for the floor, which learns nothing from outcomes.
        forgets_order: whether swapping the pair and flipping the outcome changes nothing. With a Feel-Good term it exchanges
            the roles of the two draws instead, which the tests of FGTS check.
        margin: at most this fraction of Uniform's regret on the fixed problem.
    """

    name: str
    policy: Any
    learns: bool = True
    forgets_order: bool = True
    margin: float = 0.3


ROWS = [
    Row("Uniform", duelist.Uniform(), learns=False),
    Row("FGTS", duelist.FGTS(), forgets_order=False),
    Row("FGTS, mu=0", duelist.FGTS(mu=0.0)),
    Row("FGTS, strong", duelist.FGTS(alpha=0.5, prior=UniformBall(2.0)), forgets_order=False),
    *(Row(f"FGTS, {name}", duelist.FGTS(sampler=name), forgets_order=False) for name in SAMPLERS if name != "mala"),
    Row("FGTS, redraw", duelist.FGTS(same_arm="redraw"), forgets_order=False),
    Row("MaxInP", duelist.MaxInP()),
    Row("MaxPairUCB", duelist.MaxPairUCB()),
    Row("MaxPairUCB, local", duelist.MaxPairUCB(width="local", radius=2.5)),
    Row("CoLSTIM", duelist.CoLSTIM()),
    Row("CoLSTIM, theory", duelist.CoLSTIM(radius="theory", warmup="theory"), margin=0.5),
    Row("VACDB", duelist.VACDB()),
    Row("VACDB, widest", duelist.VACDB(explore="widest"), margin=0.5),  # it explores longer: 0.32 when this was written
    Row("StaD", duelist.StaD()),
    Row("SupCoLSTIM", duelist.SupCoLSTIM()),
    Row("Foresight", duelist.Foresight()),
    Row("FiniteModels", duelist.FiniteModels(), forgets_order=False),
    Row("FiniteModels, mu=0", duelist.FiniteModels(models=300, mu=0.0)),
]
