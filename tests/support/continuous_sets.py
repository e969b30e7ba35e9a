"""One of each continuous action set, two lanes of dimension 3, for tables of tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from duelist.actions.ball import BallActions, SphereActions
from duelist.actions.box import BoxActions
from duelist.actions.custom import CustomActions
from duelist.actions.ellipsoid import EllipsoidActions
from duelist.actions.finite import FiniteActions
from duelist.actions.plans import PlanActions
from duelist.actions.polytope import PolytopeActions
from duelist.actions.product import ProductActions
from duelist.typing import FloatArray

LANES, DIM = 2, 3


class TwoOfThree:
    """Subsets of two: what maximises is the two largest entries."""

    def best(self, theta: FloatArray) -> FloatArray:
        chosen = np.zeros(DIM)
        chosen[np.argsort(-theta, kind="stable")[:2]] = 1.0
        return chosen

    def contains(self, phi: FloatArray) -> bool:
        return bool(np.isin(phi, (0.0, 1.0)).all() and phi.sum() == 2.0)

    def sample(self, generator: np.random.Generator) -> FloatArray:
        return self.best(generator.standard_normal(DIM))


def octahedron(size: float) -> PolytopeActions:
    """|x| + |y| + |z| <= size."""
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return PolytopeActions(signs, np.full(8, size), LANES)


def simplex() -> PolytopeActions:
    """Probabilities of three things: a polytope that is flat."""
    rows = np.r_[-np.eye(3), np.ones((1, 3)), -np.ones((1, 3))]
    return PolytopeActions(rows, np.r_[np.zeros(3), 1.0, -1.0], LANES)


def make_sets() -> dict[str, Any]:
    """By name; all can be saved but the user's own."""
    rng = np.random.default_rng(0)
    return {
        "ball": BallActions(LANES, DIM, 1.5),
        "sphere": SphereActions(LANES, DIM, 0.5),
        "box": BoxActions([-1.0, 0.0, 2.0], [1.0, 3.0, 2.5], LANES),
        "box a lane": BoxActions(rng.uniform(-2, 0, (LANES, DIM)), rng.uniform(0, 2, (LANES, DIM))),
        "ellipsoid": EllipsoidActions(rng.standard_normal((LANES, DIM, DIM)), rng.standard_normal(DIM)),
        "octahedron": octahedron(2.0),
        "simplex": simplex(),
        "product": ProductActions([FiniteActions(rng.standard_normal((LANES, 4, 1))), BallActions(LANES, 2)]),
        "product of products": ProductActions(
            [ProductActions([BoxActions([0.0], [1.0], LANES)]), EllipsoidActions(rng.standard_normal((2, 2)), lanes=LANES)]
        ),
        "plans": PlanActions(rng.dirichlet(np.ones(3), (3, 2)), 3, features=rng.standard_normal((3, 2, DIM)), lanes=LANES),
        "own": CustomActions(TwoOfThree(), dim=DIM, name="two of three", lanes=LANES),
    }


SETS = make_sets()
