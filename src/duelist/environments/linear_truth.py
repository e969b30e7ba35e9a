"""What follows from a linear truth theta (lanes, dim), whatever the arms: who wins, and what a duel costs."""

from __future__ import annotations

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray
from duelist.core.duels import Duels
from duelist.core.stream_kernels import uniforms
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.preferences.links import WinLaw
from duelist.preferences.logistic import win_probability


def linear_outcomes(theta: FloatArray, streams: Streams, round_: int, duels: Duels, law: WinLaw = win_probability) -> IntArray:
    """Who wins, (lanes,): +1 the first, -1 the second, by the Bradley-Terry-Luce model or another law.

    One uniform a lane and round decides, whoever plays and under whatever law.
    """
    chance = np.empty(len(theta))
    uniforms(chance, streams.keys("outcome"), round_)
    logits = np.einsum("ld,ld->l", theta, duels.contrast)
    return np.where(chance < law(logits), 1, -1)


def linear_regret(theta: FloatArray, actions: ActionSet, duels: Duels, law: WinLaw = win_probability) -> Regret:
    """What these duels cost, from the true utilities and the true law of who wins."""
    best = actions.best(theta[:, None]).value[:, 0]
    gaps = best[:, None] - np.einsum("ld,ljd->lj", theta, duels.features)
    return Regret(gaps.mean(axis=1), gaps.min(axis=1), (law(gaps) - 0.5).mean(axis=1))
