"""Comparisons: the same instances for all, and a table whose numbers can be checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.environments.linear import LinearDuels
from duelist.policies.base import Policy

ENV = LinearDuels(dim=3, arms=6)


@pytest.mark.slow
def test_the_table_holds_the_statistics_of_the_final_regret_best_first() -> None:
    policies: dict[str, Policy[Any]] = {
        "floor": duelist.Uniform(),
        "plain": duelist.FGTS(mu=0.0),
        "tilted": duelist.FGTS(alpha=0.5),
    }
    result = duelist.compare(policies, ENV, rounds=150, trials=9, seed=0)
    rows = {str(row["label"]): row for row in result.table()}
    assert set(rows) == set(policies)
    for name, policy in policies.items():
        run = duelist.simulate(policy, ENV, rounds=150, trials=9, seed=0)
        final = sorted(run.final_regret.tolist())
        assert rows[name]["mean"] == pytest.approx(sum(final) / 9)
        assert rows[name]["median"] == pytest.approx(final[4])
        assert rows[name]["sd"] == pytest.approx((sum((x - sum(final) / 9) ** 2 for x in final) / 8) ** 0.5)
        # Linear interpolation between order statistics: 5 % of the way along 8 gaps is 0.4 of the first.
        assert rows[name]["q05"] == pytest.approx(final[0] + 0.4 * (final[1] - final[0]))
        assert rows[name]["q95"] == pytest.approx(final[8] - 0.4 * (final[8] - final[7]))
        assert rows[name]["weak"] == pytest.approx(float(run.weak_regret[:, -1].mean()))
    means = [float(row["mean"]) for row in result.table()]
    assert means == sorted(means)
    assert result.table()[-1]["label"] == "floor"


def test_runs_are_those_of_simulate() -> None:
    result = duelist.compare([duelist.FGTS(), duelist.Uniform()], ENV, rounds=40, trials=3, seed=2, workers=1)
    alone = duelist.simulate(duelist.FGTS(), ENV, rounds=40, trials=3, seed=2)
    np.testing.assert_array_equal(result.runs["FGTS"].regret, alone.regret)


def test_as_text_it_is_a_table_with_a_line_a_policy() -> None:
    text = str(duelist.compare([duelist.FGTS(), duelist.Uniform()], ENV, rounds=60, trials=3, seed=0))
    lines = text.splitlines()
    assert [line.split()[0] for line in lines] == ["label", "FGTS", "Uniform"]
    assert len({len(line) for line in lines}) == 1


def test_two_policies_of_one_class_need_names() -> None:
    with pytest.raises(InvalidInputError, match="names"):
        duelist.compare([duelist.FGTS(), duelist.FGTS(alpha=1.0)], ENV, rounds=5, trials=1)
    with pytest.raises(InvalidInputError, match="at least one policy"):
        duelist.compare([], ENV, rounds=5, trials=1)


def test_rounds_are_left_out_and_recommendations_recorded_as_in_simulate() -> None:
    env = duelist.LinearDuels(dim=3, arms=5)
    alone = duelist.simulate(duelist.MaxInP(), env, rounds=25, trials=2, every=10, simple_regret=5)
    run = duelist.compare([duelist.MaxInP()], env, rounds=25, trials=2, every=10, simple_regret=5).runs["MaxInP"]
    np.testing.assert_array_equal(run.rounds, [10, 20, 25])
    np.testing.assert_array_equal(run.regret, alone.regret)
    assert run.simple_regret is not None
    np.testing.assert_array_equal(run.simple_regret, alone.simple_regret)
