"""Made-up tables have the shape of the published ones, and what the features of a router are meant to find."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import UnknownNameError
from duelist.datasets import STAND_INS, make_stand_in


@pytest.mark.parametrize("name", STAND_INS)
def test_a_stand_in_is_the_same_for_the_same_seed_and_has_the_named_shares(name: str) -> None:
    table, again, other = (make_stand_in(name, 4000, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(table.scores, again.scores)
    np.testing.assert_array_equal(table.embeddings, again.embeddings)
    assert not np.array_equal(table.scores, other.scores)
    assert table.scores.shape == (4000, len(table.models)) == (4000, 11)
    for category, share, _ in STAND_INS[name].categories:
        assert abs((table.categories == category).mean() - share) < 5 * np.sqrt(share * (1 - share) / 4000)


def test_prices_span_two_orders_and_only_routerbench_has_them() -> None:
    bench = make_stand_in("routerbench", 2000, seed=0)
    assert bench.costs is not None
    mean = bench.costs.mean(axis=0)
    assert (np.diff(mean) > 0).all()
    assert mean[-1] / mean[0] == pytest.approx(100.0)
    assert set(np.unique(bench.scores)) == {0.0, 1.0}
    mix = make_stand_in("mix-instruct", 2000, seed=0)
    assert mix.costs is None
    assert len(np.unique(mix.scores)) == mix.scores.size


def test_no_model_is_the_best_in_every_category() -> None:
    table = make_stand_in("routerbench", 8000, seed=0)
    best = {str(name): int(table.scores[table.categories == name].mean(axis=0).argmax()) for name in set(table.categories)}
    assert len(set(best.values())) >= 2
    with pytest.raises(UnknownNameError, match="routerbench"):
        make_stand_in("routerbank", 10, seed=0)
