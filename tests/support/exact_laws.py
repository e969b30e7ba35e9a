"""Laws of played histories by plain NumPy: quadrature in dimension 1, a grid in dimension 2, parallel tempering beyond.

On the cone where one arm is the best, a *piece*, the tilt is linear and the potential convex. Quadrature and grid therefore go
piece by piece: the box around a piece shrinks until what is within 30 nats of the piece's minimum fills it, and by convexity
nothing outside the box counts if nothing at its edge does, which is checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from tests.support.oracles import Floats
from tests.support.played_histories import PlayedHistory

_DEPTH = 30.0  # nats above a piece's minimum that its box holds
_ZOOMS = 60


@dataclass(frozen=True)
class GridLaw:
    """A law in the plane: cells at points (n, 2), with their probability and sides (n, 2).

    Attributes:
        points: (n, 2) centres.
        weights: (n,) probabilities.
        sides: (n, 2) of the cells.
        edge: the largest weight density at the edge of a piece's box, as a share of the piece's largest.
    """

    points: Floats
    weights: Floats
    sides: Floats
    edge: float

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """(n, 2) independent draws, uniform within their cells."""
        rows = rng.choice(len(self.weights), size=n, p=self.weights)
        return np.asarray(self.points[rows] + (rng.random((n, 2)) - 0.5) * self.sides[rows])

    def arm_law(self, history: PlayedHistory) -> Floats:
        """(n_arms,) probability that each arm is the best."""
        law: Floats = np.bincount(history.best_arms(self.points), self.weights, len(history.arms)).astype(np.float64)
        return law


def _reach(history: PlayedHistory, j: int) -> float:
    """A radius beyond which the potential is fifty nats above its value at 0.

    There it is at least precision |theta|^2 / 2 - slope |theta|, the likelihood being positive.
    """
    if math.isfinite(history.radius):
        return history.radius
    longest = float(np.linalg.norm(history.arms, axis=1).max())
    slope = history.mu * (history.rounds * longest + float(np.linalg.norm(history.adversaries[j])))
    above = history.eta * math.log(2.0) * float((history.wins + history.losses).sum()) + 50.0
    return (slope + math.sqrt(slope**2 + 2.0 * history.precision * above)) / history.precision


def _box(low: Floats, high: Floats, n: int) -> tuple[Floats, Floats]:
    """Centres of n x n cells and their sides."""
    sides = (high - low) / n
    axes = [low[i] + (np.arange(n) + 0.5) * sides[i] for i in range(2)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2), sides


def _piece(history: PlayedHistory, j: int, arm: int, n: int) -> tuple[Floats, Floats, Floats]:
    """Points of the piece where `arm` is the best, the potential at them (infinite off the piece), and the sides of cells."""
    reach = _reach(history, j)
    low, high = np.full(2, -reach), np.full(2, reach)
    for _ in range(_ZOOMS):
        points, sides = _box(low, high, 80)
        energy = _energy_on_piece(history, j, arm, points)
        kept = points[energy <= energy.min() + _DEPTH]
        # Three cells more on each side: between points a valley may be deeper than at them.
        new_low, new_high = np.maximum(kept.min(axis=0) - 3 * sides, low), np.minimum(kept.max(axis=0) + 3 * sides, high)
        settled = ((new_high - new_low) > 0.8 * (high - low)).all()
        low, high = new_low, new_high
        if settled:
            break
    points, sides = _box(low, high, n)
    return points, _energy_on_piece(history, j, arm, points), sides


def _energy_on_piece(history: PlayedHistory, j: int, arm: int, points: Floats) -> Floats:
    energy = np.full(len(points), math.inf)
    inside = history.best_arms(points) == arm
    if inside.any():
        energy[inside] = history.potential(points[inside], j)
    return energy


def grid_law(history: PlayedHistory, j: int, n: int = 240) -> GridLaw:
    """The law of draw j = 0 or 1 in dimension 2, on n x n cells per piece."""
    pieces = [_piece(history, j, arm, n) for arm in range(len(history.arms))]
    lowest = min(float(energy.min()) for _, energy, _ in pieces)
    points, weights, all_sides, edge = [], [], [], 0.0
    for at, energy, sides in pieces:
        density = np.exp(lowest - energy)
        if not density.any():
            continue
        square = density.reshape(n, n)
        border = max(float(side.max()) for side in (square[0], square[-1], square[:, 0], square[:, -1]))
        # The wall of a ball ends the law itself.
        if not math.isfinite(history.radius):
            edge = max(edge, border / float(density.max()))
        kept = density > 0.0
        points.append(at[kept])
        weights.append(density[kept] * sides.prod())
        all_sides.append(np.broadcast_to(sides, at.shape)[kept])
    total = np.concatenate(weights)
    return GridLaw(np.concatenate(points), total / total.sum(), np.concatenate(all_sides), edge)


def _half_line(furthest: float) -> tuple[Floats, Floats]:
    """Nodes and trapezoid weights on [0, furthest]: fine where duels make the law narrow, and 3/4 of its width far out."""
    near = np.linspace(0.0, 0.05, 50, endpoint=False), np.linspace(0.05, 8.0, 400, endpoint=False)
    nodes = np.concatenate([*near, np.arange(8.0, furthest + 0.75, 0.75)])
    gaps = np.diff(nodes)
    weights = np.zeros(len(nodes))
    weights[:-1] += 0.5 * gaps
    weights[1:] += 0.5 * gaps
    return nodes, weights


def exact_play_on_the_line(alpha: float, *, rounds: int, trials: int, seed: int) -> Floats:
    """(trials,) regret of FGTS with exact draws in dimension 1: arms -1 and 1, |theta*| = 1, a standard normal prior.

    A draw matters by its sign alone, so each round draws the sign from its probability, by quadrature on both half lines.
    """
    rng = np.random.default_rng(seed)
    mu = alpha / math.sqrt(rounds)
    # The tilt's slope is at most 2 mu rounds, and the prior is a standard normal.
    nodes, weights = _half_line(2.0 * mu * rounds + 12.0)
    sides = np.array([1.0, -1.0])
    loss = np.logaddexp(0.0, -2.0 * sides[:, None] * nodes)  # of a win of arm 1 over arm -1, on either side
    star = rng.choice([-1.0, 1.0], size=trials)
    wins, adversary, regret = np.zeros((trials, 2)), np.zeros((trials, 2)), np.zeros(trials)
    for t in range(rounds):
        # log density [trial, draw, side, node]; a win of arm -1 mirrors a win of arm 1.
        duels = wins[:, 0, None, None] * loss + wins[:, 1, None, None] * loss[::-1]
        base = -0.5 * nodes**2 + mu * t * nodes - duels
        log_density = base[:, None] - mu * adversary[:, :, None, None] * (sides[:, None] * nodes)
        mass = np.exp(log_density - log_density.max(axis=(2, 3), keepdims=True)) @ weights
        above = mass[..., 0] / mass.sum(axis=2)
        arms = np.where(rng.random((trials, 2)) < above, 1.0, -1.0)
        regret += 1.0 - star * arms.mean(axis=1)
        adversary += arms[:, ::-1]
        differ = arms[:, 0] != arms[:, 1]
        above_won = rng.random(trials) < 1.0 / (1.0 + np.exp(-2.0 * star))
        wins[:, 0] += differ & above_won
        wins[:, 1] += differ & ~above_won
    return regret


def probability_above_zero(history: PlayedHistory, j: int) -> float:
    """P(theta > 0) of draw j in dimension 1, by the quadrature of `exact_play_on_the_line`."""
    nodes, weights = _half_line(max(_reach(history, j), 12.0))
    energy = np.stack([history.potential(side * nodes[:, None], j) for side in (1.0, -1.0)])
    above, below = np.exp(energy.min() - energy) @ weights
    return float(above / (above + below))


@dataclass(frozen=True)
class Tempered:
    """Draws by parallel tempering.

    Attributes:
        halves: two (n, dim) sets of draws, of independent ladders.
        least_swap: smallest acceptance of swaps between neighbours.
    """

    halves: tuple[Floats, Floats]
    least_swap: float


def temper(history: PlayedHistory, j: int, *, steps: int, rungs: int = 24, ladders: int = 4, seed: int = 0) -> Tempered:
    """The law of draw j by parallel tempering from the prior, an even number of ladders at a time.

    On the rung of inverse temperature b the law is prior x exp(-b evidence); random walks are shaped by its curvature at the
    mode of prior and likelihood. The first third is left out.
    """
    rng = np.random.default_rng([seed, j])
    heat = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, rungs)])
    factors = np.repeat(_walk_factors(history, heat), ladders, axis=0)
    b, size, dim = np.repeat(heat, ladders), len(heat) * ladders, history.dim
    theta = rng.standard_normal((size, dim)) / math.sqrt(history.precision)
    log_scale = np.full(len(heat), math.log(2.4 / math.sqrt(dim)))
    prior, evidence = history.prior(theta), history.evidence(theta, j)
    kept, swapped = [], np.zeros(rungs)
    for step in range(steps):
        # Mostly steps of one size, sometimes much longer or shorter ones.
        length = np.exp(np.repeat(log_scale, ladders) + 0.5 * rng.standard_normal(size))
        trial = theta + length[:, None] * np.einsum("nij,nj->ni", factors, rng.standard_normal((size, dim)))
        new_prior, new_evidence = history.prior(trial), history.evidence(trial, j)
        taken = np.log(rng.random(size)) < prior - new_prior + b * (evidence - new_evidence)
        theta[taken], prior[taken], evidence[taken] = trial[taken], new_prior[taken], new_evidence[taken]
        if step < steps // 3:
            log_scale += 0.05 * (taken.reshape(-1, ladders).mean(axis=1) - 0.25)
        for rung in range(step % 2, rungs, 2):
            low = np.arange(rung * ladders, (rung + 1) * ladders)
            gain = (heat[rung + 1] - heat[rung]) * (evidence[low + ladders] - evidence[low])
            low = low[np.log(rng.random(ladders)) < gain]
            swapped[rung] += 2.0 * len(low) / (ladders * steps)
            there, back = np.concatenate([low, low + ladders]), np.concatenate([low + ladders, low])
            theta[there], prior[there], evidence[there] = theta[back], prior[back], evidence[back]
        if step >= steps // 3 and step % 3 == 0:
            kept.append(theta[-ladders:].copy())
    coldest = np.stack(kept)
    one, two = (part.reshape(-1, dim) for part in np.split(coldest, 2, axis=1))
    return Tempered((one, two), float(swapped.min()))


def _walk_factors(history: PlayedHistory, heat: Floats) -> Floats:
    """(rungs, dim, dim) factors F with F F^T the inverse curvature on each rung."""
    totals, contrasts = history.wins + history.losses, history.contrasts

    def smooth(theta: Floats) -> float:
        margin = contrasts @ theta
        loss = float(totals @ np.logaddexp(0.0, -margin) + history.losses @ margin)
        return 0.5 * history.precision * float(theta @ theta) + history.eta * loss

    chance = 1.0 / (1.0 + np.exp(-contrasts @ minimize(smooth, np.zeros(history.dim), method="BFGS").x))
    hessian = history.eta * (contrasts.T * (totals * chance * (1.0 - chance))) @ contrasts
    ridge = history.precision * np.eye(history.dim)
    return np.stack([np.linalg.inv(np.linalg.cholesky(ridge + b * hessian)).T for b in heat])
