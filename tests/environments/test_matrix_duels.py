"""Preference matrices: regrets by hand, winners, and matrices that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.matrix import MatrixDuels
from duelist.history.duels import duels_between

WITH_WINNER = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.9], [0.3, 0.1, 0.5]]
CYCLE = [[0.5, 0.8, 0.4], [0.2, 0.5, 0.7], [0.6, 0.3, 0.5]]


def costs_of_pair(matrix: Any, first: int, second: int, kind: str) -> dict[str, float]:
    instance = MatrixDuels(matrix=matrix, regret=kind).instance(Streams(0, [0]))  # type: ignore[arg-type]
    actions = instance.actions(0)
    regret = instance.regret(actions, duels_between(actions, np.array([first]), np.array([second])))
    return {name: float(column[0]) for name, column in regret.kinds().items()}


def test_regrets_of_a_matrix_with_a_winner_are_those_by_hand() -> None:
    # Arm 0 beats both. Shares of others beaten: 1, 1/2, 0. Mean wins: 0.65, 0.65, 0.2.
    assert costs_of_pair(WITH_WINNER, 1, 2, "condorcet") == pytest.approx(
        {"average": 0.15, "weak": 0.1, "yue": 0.15, "condorcet": 0.15, "copeland": 0.75, "borda": 0.225}
    )
    assert costs_of_pair(WITH_WINNER, 0, 2, "copeland") == pytest.approx(
        {"average": 0.5, "weak": 0.0, "yue": 0.1, "condorcet": 0.1, "copeland": 0.5, "borda": 0.225}
    )


def test_regrets_of_a_cycle_are_those_by_hand_and_it_has_no_condorcet_regret() -> None:
    # Every arm beats one other. Mean wins: 0.6, 0.45, 0.45.
    found = costs_of_pair(CYCLE, 1, 2, "borda")
    assert np.isnan(found.pop("condorcet"))
    # Against arm 0, the Borda winner: it beats arm 1 with 0.8 and arm 2 with 0.4.
    assert found == pytest.approx({"average": 0.15, "weak": 0.15, "yue": 0.1, "copeland": 0.0, "borda": 0.15})
    with pytest.raises(InvalidInputError, match='regret="copeland"'):
        MatrixDuels(matrix=CYCLE).instance(Streams(0, [0]))


def test_costs_are_those_of_a_slow_loop_over_random_matrices() -> None:
    for seed in range(20):
        env = MatrixDuels.random(5, seed=seed)
        matrix = env.given
        assert matrix is not None
        np.testing.assert_allclose(matrix + matrix.T, 1.0)
        beaten = [sum(matrix[i, j] > 0.5 for j in range(5) if j != i) / 4 for i in range(5)]
        mean_win = [sum(matrix[i, j] for j in range(5) if j != i) / 4 for i in range(5)]
        winners = [i for i in range(5) if beaten[i] == 1.0]
        costs = env.instance(Streams(0, [0])).costs
        np.testing.assert_allclose(costs["copeland"][0], [max(beaten) - b for b in beaten])
        np.testing.assert_allclose(costs["borda"][0], [max(mean_win) - b for b in mean_win])
        expected = matrix[winners[0]] - 0.5 if winners else np.full(5, np.nan)
        np.testing.assert_allclose(costs["condorcet"][0], expected)


def test_the_cycle_has_a_winner_and_no_order_below_it() -> None:
    matrix = MatrixDuels.cycle(7, lead=0.1, margin=0.3).given
    assert matrix is not None
    assert (matrix[0, 1:] == 0.6).all()
    below = matrix[1:, 1:]
    for i in range(6):
        # Of the five others, two lie ahead on the circle, two behind, and one opposite.
        assert sorted(below[i, [j for j in range(6) if j != i]].round(3).tolist()) == [0.2, 0.2, 0.5, 0.8, 0.8]
    np.testing.assert_allclose(matrix + matrix.T, 1.0)


def test_drawn_matrices_differ_by_trial_and_the_cycle_has_its_winner_anywhere() -> None:
    instance = MatrixDuels(matrix="cycle", arms=6).instance(Streams(0, range(40)))
    assert len(set(instance.winner.tolist())) > 3
    for lane, winner in enumerate(instance.winner):
        others = [j for j in range(6) if j != winner]
        np.testing.assert_allclose(instance.win[lane, winner, others], 0.55)
    strengths = MatrixDuels(arms=4).instance(Streams(0, [0])).win[0]
    logits = np.log(strengths / (1.0 - strengths))
    np.testing.assert_allclose(logits[0, 1] + logits[1, 2], logits[0, 2], atol=1e-9)  # utilities exist


def test_a_run_has_every_regret_under_its_name() -> None:
    run = duelist.simulate(duelist.Uniform(), MatrixDuels(matrix=WITH_WINNER), rounds=30, trials=3)
    assert set(run.regrets) == {"average", "weak", "yue", "condorcet", "copeland", "borda"}
    np.testing.assert_array_equal(run.regrets["average"], run.regret)
    np.testing.assert_array_equal(run.regrets["condorcet"], run.regret)
    by_hand = np.cumsum([[[1.0, 0.5, 0.0][a] + [1.0, 0.5, 0.0][b] for a, b in zip(*rows, strict=True)]
                         for rows in zip(run.first, run.second, strict=True)], axis=1)  # fmt: skip
    np.testing.assert_allclose(run.regrets["copeland"], np.arange(1, 31) - by_hand / 2)


def test_a_matrix_may_come_from_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "m.npy", WITH_WINNER)
    (tmp_path / "m.csv").write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in WITH_WINNER))
    (tmp_path / "plain.csv").write_text("\n".join(",".join(map(str, row)) for row in WITH_WINNER))
    for name in ("m.npy", "m.csv", "plain.csv"):
        env = MatrixDuels(matrix=str(tmp_path / name))
        assert env.given is not None
        np.testing.assert_array_equal(env.given, WITH_WINNER)
        assert env.matrix == str(tmp_path / name)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"matrix": [[0.5, 0.6], [0.6, 0.5]]}, "1 - P"),
        ({"matrix": [[0.0, 7.0], [3.0, 0.0]]}, "divide by"),
        ({"matrix": [[0.5, 0.5, 0.5]]}, r"\(K, K\)"),
        ({"matrix": "nowhere.csv"}, "cannot be read"),
        ({"matrix": "letters.txt"}, r"\.csv"),
        ({"matrix": CYCLE, "features": np.eye(2)}, "one row per arm"),
        ({"regret": "bordo"}, "borda"),
    ],
)
def test_what_is_no_matrix_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        MatrixDuels(**settings).instance(Streams(0, [0]))
