"""Draws from a tilted normal belief in plain Python, for the tests of the policies that take them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from duelist.core.streams import Streams
from tests.support.oracles import Floats


class SlowDraws:
    """Two draws that move from round to round, each picked from fresh ones and the last by exp(bonus)."""

    def __init__(self, name: str, streams: Streams, dim: int, tries: int) -> None:
        self.name, self.streams, self.dim, self.tries = name, streams, dim, tries
        self.white = streams.normals(f"{name} start", 0, 2 * dim)[0].reshape(2, dim)
        self.stayed = 0

    def move(self, asked: int, theta: Floats, precision: Floats, bonus: Callable[[int, Floats], float]) -> list[Floats]:
        """theta_1 and theta_2 of a round, whose belief is N(theta, precision^-1); bonus(j, theta) is that of draw j."""
        lower = np.linalg.cholesky(precision)
        noise = self.streams.normals(self.name, asked, 2 * self.tries * self.dim)[0].reshape(2, self.tries, self.dim)
        draws = []
        for j in (0, 1):
            offered = [self.white[j], *noise[j]]
            thetas = [theta + np.linalg.solve(lower.T, white) for white in offered]
            weights = [math.exp(bonus(j, drawn)) for drawn in thetas]
            coin = float(self.streams.uniforms(f"{self.name} pick {j + 1}", asked)[0]) * sum(weights)
            picked = 0
            while coin > weights[picked]:
                coin -= weights[picked]
                picked += 1
            self.white[j] = offered[picked]
            self.stayed += picked == 0
            draws.append(thetas[picked])
        return draws
