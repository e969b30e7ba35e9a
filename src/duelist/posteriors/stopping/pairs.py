"""Verdicts from counts of wins, without features and without a model of utilities.

The evidence that i is better than j, from w wins of i in n duels of the two, is the mixture

    E_ij = 2^n  integral over p in (1/2, 1] of  p^w (1 - p)^(n - w)  d Beta(p | 1/2, 1/2) * 2.

**Theorem.** If in every duel of the two, given all that happened before, the expected score of i (1 for a win, 1/2 for a tie)
is at most 1/2, then E_ij is a nonnegative supermartingale that starts at 1, so P(E_ij >= 1 / a at any time) <= a (Ville).
For a bet on p multiplies by at most 1 + (2p - 1)(2x - 1) at the score x (equality at 0 and 1; less at a tie), which is 1 or
less on average; a mixture of supermartingales is one. How pairs were chosen, and when one looks, does not matter.

    best      M_j = 1/2 E(j against all others together) + 1/2 mean_k E_kj   is evidence that j is not the best;
              the arm that is left is named when M_j >= 1 / delta for all others: wrong only if M of the best arm got there.
    top, ranking    E_ij >= K (K - 1) / (2 delta) for a chain of pairs from i to j: each of the K (K - 1) / 2 wrong statements
              "i is better than j" is ever made with probability 2 delta / (K (K - 1)) at most.
    promote   E_ij >= 1 / delta.

Conditions: for "best", an arm that scores at least 1/2 against each other (a Condorcet winner); for "top" and "ranking", an
order of the arms such that the better of two scores at least 1/2, as with utilities. Voters may differ and chances may drift
as long as that holds in every duel.

References: Robbins (1970), Statistical Methods Related to the Law of the Iterated Logarithm, for mixtures; Ramdas, Gruenwald,
Vovk & Shafer (2023), Game-Theoretic Statistics and Safe Anytime-Valid Inference. The order is that of Schulze (2011), on
evidence.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln, logsumexp, xlogy

from duelist.core.checks import finite_array
from duelist.core.errors import InvalidInputError
from duelist.posteriors.stopping.goals import Goal, Verdict, verdict_from
from duelist.typing import FloatArray

_HALF = 0.5  # parameter of the Beta mixture: Jeffreys' prior, whose cost is 1/2 log n


def log_pair_evidence(wins: npt.ArrayLike, losses: npt.ArrayLike) -> FloatArray:
    """Log E of every element: evidence that the chance to win is above 1/2. A tie is half a win and half a loss.

    Example:
        >>> log_pair_evidence([0, 14, 7], [0, 2, 7]).round(2).tolist()
        [0.0, 4.11, -1.56]
    """
    won, lost = np.asarray(wins, dtype=np.float64) + _HALF, np.asarray(losses, dtype=np.float64) + _HALF
    with np.errstate(divide="ignore"):  # no evidence at all is -inf
        above = np.log(2.0 * betainc(lost, won, 0.5))
    return np.asarray((won + lost - 2.0 * _HALF) * math.log(2.0) + betaln(won, lost) - betaln(_HALF, _HALF) + above)


def pair_verdict(wins: npt.ArrayLike, goal: Goal) -> Verdict:
    """How far counts of wins have come towards a goal.

    Args:
        wins: (n_arms, n_arms) how often the row's arm beat the column's; a tie is half a win each way.
        goal: what one wants to know, with delta.

    Example:
        >>> pair_verdict([[0, 30, 28], [4, 0, 20], [3, 12, 0]], Goal(kind="best")).arms
        (0,)
    """
    table = _check_wins(wins)
    goal.check_arms(len(table))
    pairs = log_pair_evidence(table, table.T)
    np.fill_diagonal(pairs, -np.inf)
    if goal.kind == "best" or (goal.kind == "top" and goal.k == 1):
        return _best_verdict(table, pairs, goal)
    if goal.kind == "promote":
        order = [goal.challenger, goal.champion]
        if pairs[goal.champion, goal.challenger] > pairs[goal.challenger, goal.champion]:
            order.reverse()
        chains, statements = pairs, 1
    else:
        chains, statements = _strongest_chains(pairs), len(table) * (len(table) - 1) // 2
        order = _schulze_order(chains)
    needed = goal.pairs(order)
    log_evidence = min(float(chains[i, j]) for i, j in needed) - math.log(statements)
    border = needed
    if goal.kind == "top":  # with chains, the two arms at the border stand for their sides
        last, first = order[goal.k - 1], order[goal.k]
        border = [(i, first) for i in order[: goal.k]] + [(last, j) for j in order[goal.k + 1 :]]
    wanted = math.log(statements / goal.delta)
    votes = sum(_votes_needed(table, pairs, i, j, wanted) for i, j in border if chains[i, j] < wanted)
    return verdict_from(goal, goal.claim(order), log_evidence, votes)


def deciding_pairs(wins: npt.ArrayLike, goal: Goal, generator: np.random.Generator) -> list[tuple[int, int]]:
    """The pairs that stand between the votes and a verdict, the least certain first: what to ask about next.

    Any rule for choosing pairs leaves the error probability as it is; this one saves votes. For "best" it is the arm that may
    best be the best, against each other arm, those first that may well be it too; for the other goals the pairs that the claim
    needs, by the evidence of their chains. Equal ones come in random order.

    Args:
        wins: as for `pair_verdict`.
        goal: what one wants to know.
        generator: for the order of equals.

    Example:
        >>> deciding_pairs([[0, 30, 8], [4, 0, 9], [7, 8, 0]], Goal(kind="best"), np.random.default_rng(0))[0]
        (0, 2)
    """
    table = _check_wins(wins)
    goal.check_arms(len(table))
    noise = 1e-9 * generator.random(table.shape)
    if goal.kind == "best" or (goal.kind == "top" and goal.k == 1):
        leader, *others = (int(arm) for arm in np.argsort(log_evidence_against_best(table) + noise[0]))
        return [(leader, other) for other in others]
    pairs = log_pair_evidence(table, table.T) + noise
    np.fill_diagonal(pairs, -np.inf)
    if goal.kind == "promote":
        return [(goal.challenger, goal.champion)]
    chains = _strongest_chains(pairs)
    needed = goal.pairs(_schulze_order(chains))
    return sorted(needed, key=lambda pair: float(chains[pair] + noise[pair]))


def log_evidence_against_best(wins: npt.ArrayLike) -> FloatArray:
    """(n_arms,) log M_j: evidence that the arm is not the best, from wins (n_arms, n_arms)."""
    table = _check_wins(wins)
    pairs = log_pair_evidence(table, table.T)
    np.fill_diagonal(pairs, -np.inf)
    together = log_pair_evidence(table.sum(axis=0), table.sum(axis=1))
    return np.asarray(np.logaddexp(together, logsumexp(pairs, axis=0) - math.log(len(table) - 1)) - math.log(2.0))


def _best_verdict(table: FloatArray, pairs: FloatArray, goal: Goal) -> Verdict:
    against = log_evidence_against_best(table)
    best = int(np.argmin(against))
    others = np.arange(len(table)) != best
    wanted = math.log(2 * (len(table) - 1) / goal.delta)  # if one opponent has to show it alone
    votes = 0.0
    for j in np.flatnonzero(others & (against < -math.log(goal.delta))):
        votes += min(_votes_needed(table, pairs, i, int(j), wanted) for i in range(len(table)) if i != j)
    return verdict_from(goal, (best,), float(against[others].min()), votes)


def _votes_needed(table: FloatArray, pairs: FloatArray, i: int, j: int, wanted: float) -> float:
    """Duels of the two until their evidence is as wanted, if i goes on winning as often; a duel brings KL(p, 1/2)."""
    total = table[i, j] + table[j, i]
    p = (table[i, j] + 0.5) / (total + 1.0)
    if p <= 0.5:
        return math.inf
    gain = float(xlogy(p, 2.0 * p) + xlogy(1.0 - p, 2.0 * (1.0 - p)))
    return max(wanted - float(pairs[i, j]), 0.0) / gain


def _strongest_chains(pairs: FloatArray) -> FloatArray:
    """(n_arms, n_arms) evidence of the best chain from i to j: that of its weakest link."""
    chains = pairs.copy()
    for k in range(len(chains)):
        np.maximum(chains, np.minimum(chains[:, k, None], chains[None, k]), out=chains)
    return chains


def _schulze_order(chains: FloatArray) -> list[int]:
    """Rows, best first: i before j if the chains from i to j are stronger than those back, which is an order (Schulze)."""
    above = chains > chains.T
    np.fill_diagonal(above, False)
    return [int(i) for i in np.argsort(-above.sum(axis=1), kind="stable")]


def _check_wins(wins: npt.ArrayLike) -> FloatArray:
    table = finite_array("wins", wins, "(n_arms, n_arms)", 2)
    if table.shape[0] != table.shape[1] or table.shape[0] < 2 or (table < 0.0).any():
        raise InvalidInputError(
            f"wins must be (n_arms, n_arms) counts of at least 0, with two arms or more; got shape {table.shape}"
            f"{' and negative counts' if (table < 0.0).any() else ''}."
        )
    table = table.copy()
    np.fill_diagonal(table, 0.0)  # an arm beside itself says nothing
    return table
