"""What a choice must keep to: rows left out, shares of the duels, costs, and pairs that a voter has seen.

None of it reaches what the policy learns. The policy's state moves on as if nothing were limited, and only the pair that is
shown differs, so a journal can be replayed whatever the limits were, and they can change at any time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_array, finite_number
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels
from duelist.live.lane import Limits
from duelist.live.seen_pairs import Codes, SeenPairs, name_code
from duelist.typing import BoolArray, FloatArray

# Candidates whose shares are counted, those offered last; some 200 bytes each.
MOST_COUNTED = 2**16
_NO_PAIRS: Codes = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, kw_only=True)
class Guardrails:
    """Limits on how often candidates are shown, whatever the policy would like.

    The share of a candidate is the number of duels that showed it over the number of duels that could have, counted from when
    guardrails were set: a candidate that comes later is owed nothing of the past. A candidate is known by its features, or by
    the names that `choose` is given, where features change from one request to the next.

    Args:
        min_share: every candidate is shown in at least this share of duels, up to two duels. One that falls behind meets the
            policy's favourite. Of n candidates each can have 1/n at most, and a larger number counts as that.
        max_share: no candidate is shown in more than this share of duels, up to two duels; one that was is left out for a
            while. It is at least 2/n with n candidates, for two are shown in every duel.
        fallback: a name, or features (dim,): the candidate that is shown although it is excluded or had its share, where
            fewer than two others may be.

    Example:
        >>> Guardrails(min_share=0.02, max_share=0.5, fallback="small-model").max_share
        0.5
    """

    min_share: float = 0.0
    max_share: float = 1.0
    fallback: str | Sequence[float] | None = None

    def __post_init__(self) -> None:
        finite_number("min_share", self.min_share, at_least=0.0, at_most=1.0)
        finite_number("max_share", self.max_share, above=0.0, at_most=1.0)
        if self.min_share > self.max_share:
            raise InvalidInputError(
                f"min_share must be at most max_share; got {self.min_share:g} and {self.max_share:g}. No share is within both."
            )
        if self.fallback is not None and not isinstance(self.fallback, str):
            vector = finite_array("fallback", self.fallback, "(dim,)", 1)
            object.__setattr__(self, "fallback", tuple(vector.tolist()))

    @property
    def counts(self) -> bool:
        """Whether shares matter."""
        return self.min_share > 0.0 or self.max_share < 1.0

    def to_plain(self) -> dict[str, Any]:
        """As JSON values; `Guardrails(**plain)` is the inverse."""
        plain = asdict(self)
        return {**plain, "fallback": list(self.fallback)} if isinstance(self.fallback, tuple) else plain


class Conditions(NamedTuple):
    """What one ask wants, besides its features.

    Attributes:
        voter: who is asked.
        exclude: rows that must not be shown.
        cost: (n_arms,) of each row, in log-odds.
        names: (n_arms,) what each row is called.
    """

    voter: str | None = None
    exclude: tuple[int, ...] = ()
    cost: tuple[float, ...] | None = None
    names: tuple[str, ...] | None = None

    def to_body(self) -> dict[str, Any]:
        """What an `asked` event says of it."""
        return {name: value for name, value in self._asdict().items() if value}

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Conditions | None:
        """The inverse of `to_body`; None where there were none."""
        known: dict[str, Any] = {name: body[name] for name in cls._fields if name in body}
        for name in known.keys() - {"voter"}:
            known[name] = tuple(known[name])
        return cls(**known) if known else None


def check_conditions(
    actions: ActionSet,
    voter: str | None,
    exclude: Sequence[int] | None,
    cost: npt.ArrayLike | None,
    names: Sequence[str] | None,
) -> Conditions:
    """The conditions that these arguments of `Agent.choose` mean."""
    n_arms = finite_set(actions).n_arms
    if voter is not None and (not isinstance(voter, str) or not voter):
        raise InvalidInputError(f"voter must be a name, some text; got {voter!r}. Leave it out for somebody without a name.")
    rows = [] if exclude is None else list(exclude)
    for row in rows:
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < n_arms:
            raise InvalidInputError(f"exclude must list rows of features, 0 to {n_arms - 1}; got {row!r}.")
    numbers = None if cost is None else finite_array("cost", cost, "(n_arms,)", 1)
    if numbers is not None and numbers.shape != (n_arms,):
        raise InvalidInputError(
            f"cost must be ({n_arms},), one number per row of features; got {numbers.shape}. Use 0 for free."
        )
    called = None if names is None else tuple(names)
    if called is not None and (len(called) != n_arms or not all(isinstance(name, str) for name in called)):
        raise InvalidInputError(f"names must be {n_arms} texts, one per row of features; got {called!r}.")
    return Conditions(voter, tuple(map(int, rows)), None if numbers is None else tuple(numbers.tolist()), called)


def finite_set(actions: ActionSet) -> FiniteActions:
    """The set, if it has rows; otherwise why nothing can be limited."""
    if isinstance(actions, FiniteActions):
        return actions
    raise InvalidInputError(
        f"voter, exclude, cost, names and guardrails are about candidates with rows; got {type(actions).__name__}, which has "
        f"none. Offer features (n_arms, dim), or ask without them; a voter may also be given to learn."
    )


class Shares:
    """How often each candidate was offered and shown."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[int, int]] = {}  # offered last comes last

    def of(self, codes: Codes) -> tuple[FloatArray, FloatArray]:
        """(n,) how often each of these candidates was offered, and shown."""
        counts = np.array([self._counts.get(code, (0, 0)) for code in codes.tolist()], dtype=np.float64)
        return counts[:, 0], counts[:, 1]

    def add(self, offered: Codes, shown: Codes) -> None:
        """A duel was asked: one of the offered candidates (n,), with those shown (2,)."""
        pair = set(shown.tolist())
        for code in dict.fromkeys([*offered.tolist(), *pair]):
            n_offered, n_shown = self._counts.pop(code, (0, 0))
            self._counts[code] = (n_offered + 1, n_shown + (code in pair))
        while len(self._counts) > MOST_COUNTED:
            del self._counts[next(iter(self._counts))]

    def clear(self) -> None:
        """Count from here on."""
        self._counts.clear()

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        counts = np.array(list(self._counts.values()), dtype=np.int64).reshape(-1, 2)
        return {"candidates": np.array(list(self._counts), dtype=np.uint64), "counts": counts}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go to where `to_saved` was called."""
        counts = zip(saved["candidates"].tolist(), saved["counts"].tolist(), strict=True)
        self._counts = {code: (offered, shown) for code, (offered, shown) in counts}


class Guard:
    """What the choices of an agent keep to, and what must be remembered for that.

    Attributes:
        rails: the guardrails; None for none.
        cost_weight: what costs are multiplied by.
        seen: who was shown which pair.
        shares: how often candidates were shown, while guardrails want to know.
        asked_by: the voter of every pending duel that was asked with one.
    """

    def __init__(self) -> None:
        self.rails: Guardrails | None = None
        self.cost_weight = 1.0
        self.seen = SeenPairs()
        self.shares = Shares()
        self.asked_by: dict[int, str] = {}

    def set_guardrails(self, rails: Guardrails | None) -> None:
        """Keep to these from now on. Shares that were counted go on being counted."""
        self.rails = rails
        if rails is None or not rails.counts:
            self.shares.clear()

    def limits(self, actions: ActionSet, conditions: Conditions | None, policy: Any) -> Limits | None:
        """What the next pair must keep to; None for nothing."""
        finite, wants = finite_set(actions), conditions or Conditions()
        contents = finite.fingerprints[0]
        allowed, wanted = self._allowed(finite, wants)
        offsets = self._offsets(wants.cost, policy)
        rows = None if allowed.all() else np.flatnonzero(allowed)
        refused = _NO_PAIRS if wants.voter is None else self.seen.refused(wants.voter, contents[allowed])
        if rows is None and offsets is None and wanted < 0 and not len(refused):
            return None
        return Limits(contents, refused, rows, offsets, wanted)

    def record(self, number: int, actions: ActionSet, shown: Duels, conditions: Conditions | None) -> None:
        """A duel was asked."""
        finite, wants = finite_set(actions), conditions or Conditions()
        rows = [int(shown.first[0]), int(shown.second[0])]
        if wants.voter is not None:
            first, second = finite.fingerprints[0, rows].tolist()
            self.seen.add(wants.voter, first, second)
            self.asked_by[number] = wants.voter
        if self.rails is not None and self.rails.counts:
            codes = candidate_codes(finite, wants.names)
            self.shares.add(codes[_open_rows(finite, wants)], codes[rows])

    def _allowed(self, actions: FiniteActions, wants: Conditions) -> tuple[BoolArray, int]:
        """(n_arms,) which rows may be shown, at least two, and the one that must be; -1 for none."""
        open_rows, rails = _open_rows(actions, wants), self.rails
        if rails is None or not (rails.counts or rails.fallback is not None):
            return _at_least_two(open_rows, open_rows), -1
        codes = candidate_codes(actions, wants.names)
        n_open = max(len(np.unique(codes[open_rows])), 1)
        offered, shown = self.shares.of(codes)
        over = shown - max(rails.max_share, min(2.0 / n_open, 1.0)) * offered
        allowed = open_rows & (over <= 0.0)
        if allowed.sum() < 2 and rails.fallback is not None:
            allowed = allowed | _is_fallback(rails.fallback, actions, wants.names)
        for row in np.lexsort((codes, over)).tolist():  # of those that had their share, who is least above it
            if allowed.sum() >= 2:
                break
            allowed[row] |= open_rows[row]
        _at_least_two(allowed, open_rows)
        behind = np.where(allowed, min(rails.min_share, 1.0 / n_open) * (offered + 1.0) - shown, -math.inf)
        most = int(np.lexsort((codes, behind))[-1])
        return allowed, most if behind[most] >= 1.0 else -1

    def _offsets(self, cost: tuple[float, ...] | None, policy: Any) -> FloatArray | None:
        if cost is None:
            return None
        if not policy.weighs_offsets():
            raise InvalidInputError(
                f"{policy!r} does not choose by utilities that a cost could be taken from. Use FGTS, Foresight or CoLSTIM; a "
                f"policy of your own that plays OffsetActions says so with a method weighs_offsets."
            )
        numbers = -self.cost_weight * np.array(cost)
        # What all cost alike changes nothing, to the last bit.
        return None if (numbers == numbers[0]).all() else numbers

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        return {
            "guardrails": None if self.rails is None else self.rails.to_plain(),
            "cost_weight": self.cost_weight,
            "seen": self.seen.to_saved(),
            "shares": self.shares.to_saved(),
            "asked": np.array(list(self.asked_by), dtype=np.int64),
            "askers": np.array(list(self.asked_by.values()), dtype=np.str_),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go to where `to_saved` was called."""
        rails = saved["guardrails"]
        self.rails = None if rails is None else Guardrails(**rails)
        self.cost_weight = saved["cost_weight"]
        self.seen.restore(saved["seen"])
        self.shares.restore(saved["shares"])
        self.asked_by = dict(zip(saved["asked"].tolist(), saved["askers"].tolist(), strict=True))


def candidate_codes(actions: FiniteActions, names: tuple[str, ...] | None) -> Codes:
    """(n_arms,) a number for every candidate: of its name, or of its features where it has none."""
    if names is None:
        return np.asarray(actions.fingerprints[0])
    return np.array([name_code(name) for name in names], dtype=np.uint64)


def _open_rows(actions: FiniteActions, wants: Conditions) -> BoolArray:
    """(n_arms,) the rows that the ask does not exclude."""
    rows = np.ones(actions.n_arms, dtype=np.bool_)
    rows[list(wants.exclude)] = False
    return rows


def _is_fallback(fallback: str | Sequence[float], actions: FiniteActions, names: tuple[str, ...] | None) -> BoolArray:
    """(n_arms,) the first row that is the fallback, if there is one."""
    if isinstance(fallback, str):
        same = np.array([name == fallback for name in names or [""] * actions.n_arms])
    elif len(fallback) != actions.dim:
        raise InvalidInputError(
            f"the fallback of the guardrails has {len(fallback)} features; candidates have {actions.dim}. Set other guardrails."
        )
    else:
        same = (actions.features[0] == np.array(fallback)).all(axis=1)
    return np.asarray(same & (np.cumsum(same) == 1))


def _at_least_two(allowed: BoolArray, open_rows: BoolArray) -> BoolArray:
    if allowed.sum() < 2:
        raise InvalidInputError(
            f"{int(open_rows.sum())} of {len(open_rows)} candidates are left after exclude, and a duel needs two. Exclude "
            f"fewer, or set Guardrails(fallback=...) to a candidate that may always be shown."
        )
    return allowed
