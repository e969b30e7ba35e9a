"""The rows of the conformance table: one per policy. A new policy adds a line here and must pass every test of the table."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

import duelist
from duelist.policies import (
    APO,
    BETCGLM,
    BEXP3,
    CCB,
    COLDB,
    CPPL,
    DPS,
    EUBO,
    FGTSVA,
    IDS,
    LDBDF,
    MAUPO,
    NDBTS,
    NDBUCB,
    POPBO,
    RCDB,
    RMED1,
    RMED2F,
    RUCB,
    SCB,
    SFGTS,
    BeatTheMean,
    BestArm,
    DoubleTS,
    InterleavedFilter,
    KLPolicy,
    ListwiseFGTS,
    MaxMinLCB,
    NonlinearFGTS,
    SelfSparring,
    TopTwoTS,
    VersatileDB,
)
from duelist.posteriors.priors import UniformBall
from duelist.preferences.ties import Davidson, LearntDavidson
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
        variant: True for another setting of a policy that has a row already. Properties that do not depend on settings are
            checked on the first row of a class alone.
        compiled_by_jax: True where the last digit of a reported number may depend on the lanes beside it, for JAX compiles
            other code for another number of lanes. Pairs and regret must be equal all the same.
        rounds: of a run whose length is of no account.
        other_sampler: True for FGTS with another sampler than its own.
        bounded: False where memory grows with every round, which the policy's page must say.
    """

    name: str
    policy: Any
    learns: bool = True
    forgets_order: bool = True
    margin: float = 0.3
    variant: bool = False
    bounded: bool = True
    compiled_by_jax: bool = False
    rounds: int = 60
    other_sampler: bool = False


ROWS = [
    Row("Uniform", duelist.Uniform(), learns=False),
    Row("FGTS", duelist.FGTS(), forgets_order=False),
    Row("FGTS, mu=0", duelist.FGTS(mu=0.0), variant=True),
    Row("FGTS, strong", duelist.FGTS(alpha=0.5, prior=UniformBall(2.0)), forgets_order=False, variant=True),
    *(
        Row(f"FGTS, {name}", duelist.FGTS(sampler=name), forgets_order=False, variant=True, other_sampler=True)
        for name in SAMPLERS
        if name != "mala"
    ),
    Row("FGTS, redraw", duelist.FGTS(same_arm="redraw"), forgets_order=False, variant=True),
    Row("MaxInP", duelist.MaxInP()),
    Row("MaxPairUCB", duelist.MaxPairUCB()),
    Row("MaxPairUCB, local", duelist.MaxPairUCB(width="local", radius=2.5), variant=True),
    Row("RCDB", RCDB()),
    Row("RCDB, asked", RCDB(alpha=0.3, weigh="asked"), variant=True),
    Row("LDBDF", LDBDF()),
    Row("LDBDF, half", LDBDF(arrival=0.5, window=10), variant=True),
    Row("COLDB", COLDB(users=3)),
    # Both explore for most of 600 rounds.
    Row("BETCGLM", BETCGLM(), margin=0.7),
    Row("BEXP3", BEXP3(), margin=0.9),
    Row("CoLSTIM", duelist.CoLSTIM()),
    Row("CoLSTIM, theory", duelist.CoLSTIM(radius="theory", warmup="theory"), margin=0.5, variant=True),
    Row("VACDB", duelist.VACDB()),
    Row("VACDB, variance", duelist.VACDB(radius="variance", scale=1e-4), margin=0.5, variant=True),
    # It explores longer: 0.32 when this was written.
    Row("VACDB, widest", duelist.VACDB(explore="widest"), margin=0.5, variant=True),
    Row("StaD", duelist.StaD()),
    Row("SupCoLSTIM", duelist.SupCoLSTIM()),
    Row("Foresight", duelist.Foresight()),
    Row("FiniteModels", duelist.FiniteModels(), forgets_order=False),
    Row("FiniteModels, mu=0", duelist.FiniteModels(models=300, mu=0.0), variant=True),
    Row("TopTwoTS", TopTwoTS()),
    Row("DPS", DPS()),
    Row("FGTSVA", FGTSVA()),
    # A strong bonus explores for long.
    Row("FGTSVA, strong", FGTSVA(strength=0.3, floor=0.4), margin=0.6, variant=True),
    Row("SFGTS", SFGTS(), forgets_order=False),
    Row("SFGTS, strong", SFGTS(alpha=1.0, cap=1.0, sharpness=3.0), forgets_order=False, margin=0.6, variant=True),
    Row("IDS", IDS()),
    # It looks for the best arm, and counts only the better of the two.
    Row("EUBO", EUBO(), margin=0.5),
    Row("KLPolicy", KLPolicy()),
    # These play to know: what a duel costs is no concern of theirs.
    Row("APO", APO(), margin=1.3),
    Row("BestArm", BestArm(), margin=1.3),
    Row("BestArm, top 3", BestArm(k=3), margin=1.3, variant=True),
    # Rules without features learn every pair by itself: 600 rounds are few for 16 arms.
    Row("RUCB", RUCB(), margin=0.9),
    Row("DoubleTS", DoubleTS(), margin=0.9),
    Row("DoubleTS, regret", DoubleTS(tie_break="regret"), margin=0.9, variant=True),
    Row("RMED1", RMED1(), margin=0.9),
    Row("RMED2F", RMED2F(), margin=1.1),
    Row("VersatileDB", VersatileDB(), forgets_order=False, margin=0.9),
    Row("SelfSparring", SelfSparring(), margin=0.9),
    Row("CCB", CCB(), margin=0.95),
    # These explore first, and 600 rounds are over before they have dropped more than a few arms.
    Row("BeatTheMean", BeatTheMean(width=0.5), margin=1.0),
    Row("InterleavedFilter", InterleavedFilter(), margin=1.1),
    Row("SCB", SCB(), margin=1.1),
    Row("MaxMinLCB", MaxMinLCB(), margin=0.6),
    Row("POPBO", POPBO(), margin=0.6),
    # With fresh arms JAX compiles anew whenever the number of sets has doubled; 20 rounds cross five doublings, and the
    # curvature is used from round 8 on.
    Row("NonlinearFGTS", NonlinearFGTS(), forgets_order=False, bounded=False, compiled_by_jax=True, rounds=20, margin=0.6),
    Row("NDBUCB", NDBUCB(), bounded=False, compiled_by_jax=True, rounds=20, margin=0.6),
    Row("NDBTS", NDBTS(), bounded=False, compiled_by_jax=True, rounds=20, margin=0.6),
    *(
        Row(f"ListwiseFGTS, {name}", policy, forgets_order=False, variant=True, bounded=False, margin=0.5)
        for name, policy in {
            "pairs": ListwiseFGTS(choices=2),
            "ties": ListwiseFGTS(choices=2, ties=Davidson()),
            "learnt ties": ListwiseFGTS(choices=2, ties=LearntDavidson()),
        }.items()
    ),
]


@dataclass(frozen=True)
class SlateRow:
    """A policy for slates.

    Attributes:
        name: shown in the test's name.
        policy: the hyper-parameters.
        margin: at most this fraction of Uniform's regret per round in the end; None for a rule that plays to know, and whose
            recommendations alone get better.
    """

    name: str
    policy: Any
    margin: float | None = 0.3


SLATE_ROWS = [
    SlateRow("ListwiseFGTS", ListwiseFGTS()),
    SlateRow("ListwiseFGTS, ranking", ListwiseFGTS(choices=3, feedback="ranking", mu=0.0)),
    SlateRow("ListwiseFGTS, ties", ListwiseFGTS(choices=3, ties=LearntDavidson())),
    # Its slates hold different arms: regret stays at that of the best four of eight.
    SlateRow("CPPL", CPPL(), margin=0.7),
    SlateRow("CPPL, three", CPPL(choices=3, width=0.1), margin=0.6),
    SlateRow("MAUPO", MAUPO(), margin=None),
]


def is_installed(policy: Any) -> bool:
    """Whether the extra that a policy needs is there."""
    return not policy.extra or importlib.util.find_spec(policy.extra) is not None
