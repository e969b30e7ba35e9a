"""What a voter has seen, against a plain count of pairs."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.core.serialize import from_bytes, to_bytes
from duelist.live import seen_pairs
from duelist.live.seen_pairs import Codes, SeenPairs, all_pair_codes, pair_codes


def codes(*numbers: int) -> Codes:
    return np.array(numbers, dtype=np.uint64)


def code_of(pair: frozenset[int]) -> int:
    one, other = pair
    return int(pair_codes(codes(one), codes(other))[0])


ITEMS = st.integers(0, 5)
SHOWN = st.lists(st.tuples(st.sampled_from(["ann", "bob"]), st.tuples(ITEMS, ITEMS).filter(lambda pair: pair[0] != pair[1])))


@given(SHOWN, st.lists(ITEMS, min_size=1, unique=True))
def test_all_but_the_least_shown_pairs_are_refused(shown: list[tuple[str, tuple[int, int]]], offered: list[int]) -> None:
    seen, counts = SeenPairs(), Counter[frozenset[int]]()
    for voter, (one, other) in shown:
        seen.add(voter, one, other)
        counts[frozenset((one, other))] += voter == "ann"
    pairs = [frozenset(pair) for pair in combinations(offered, 2)]
    least = min((counts[pair] for pair in pairs), default=0)
    expected = {code_of(pair) for pair in pairs if counts[pair] > least}
    assert set(seen.refused("ann", codes(*offered)).tolist()) == expected


def test_of_many_candidates_every_pair_seen_is_refused_until_all_may_have_been(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_pairs, "_LISTED", 3)
    seen, offered = SeenPairs(), codes(1, 2, 3, 4)
    shown = [frozenset(pair) for pair in combinations(range(1, 5), 2)]
    for number, pair in enumerate(shown):
        assert set(seen.refused("ann", offered).tolist()) == {code_of(one) for one in shown[:number]}
        seen.add("ann", *pair)
    assert not len(seen.refused("ann", offered))


def test_a_pair_has_one_number_in_either_order_and_no_other_pair_has_it() -> None:
    many = np.random.default_rng(0).integers(0, 2**63, size=200).astype(np.uint64)
    pairs = list(combinations(many, 2))
    one, other = codes(*(int(a) for a, _ in pairs)), codes(*(int(b) for _, b in pairs))
    assert (pair_codes(one, other) == pair_codes(other, one)).all()
    # Item numbers are small and next to each other: they must spread as well.
    for numbers in (many, np.arange(200, dtype=np.uint64)):
        assert len(np.unique(all_pair_codes(numbers))) == 200 * 199 // 2


def test_beyond_its_bounds_who_was_asked_longest_ago_counts_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_pairs, "MOST_SHOWN", 4)
    monkeypatch.setattr(seen_pairs, "MOST_VOTERS", 3)
    seen, offered = SeenPairs(), codes(1, 2, 3)

    def known() -> str:
        return "".join(voter for voter in "abcd" if len(seen.refused(voter, offered)))

    for voter in "abca":
        seen.add(voter, 1, 2)
    assert known() == "abc"
    seen.add("d", 1, 2)  # a fourth voter, and a fifth pair
    assert known() == "acd"
    seen.add("a", 1, 3)  # a fifth pair of three voters
    assert known() == "ad"
    for _ in range(9):
        seen.add("a", 2, 3)
    assert known() == "a"
    assert sum(seen.to_saved()["lengths"]) <= 4


@given(SHOWN)
def test_saving_and_loading_changes_nothing(shown: list[tuple[str, tuple[int, int]]]) -> None:
    seen, again = SeenPairs(), SeenPairs()
    for voter, pair in shown:
        seen.add(voter, *pair)
    saved = to_bytes(seen.to_saved())
    again.restore(from_bytes(saved))
    assert to_bytes(again.to_saved()) == saved
