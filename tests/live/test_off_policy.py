"""Estimates from a log are those of slow, obvious formulas, have the right mean, and their intervals cover the truth."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from duelist import FGTS, Agent, CoLSTIM, DuelistError, DuelLog, MaxInP, Uniform, evaluate_off_policy
from duelist.journal import MemoryJournal, SQLiteJournal
from duelist.live import PoorOverlapWarning
from duelist.typing import FloatArray
from tests.support.arenas import Stage
from tests.support.golden_files import unpack

ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [-1.0, 0.3]])
PAIRS = [*itertools.combinations(range(4), 2)]
PICKS, OPPONENTS = np.array([0.1, 0.5, 0.2, 0.2]), np.array([0.4, 0.3, 0.2, 0.1])
pytestmark = pytest.mark.filterwarnings("ignore::duelist.live.PoorOverlapWarning")


def wins(utilities: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(utilities[None] - utilities[:, None]))


def target_of(picks: FloatArray, opponents: FloatArray | None) -> FloatArray:
    """The probability of every pick with every opponent, one at a time."""
    table = np.zeros((len(picks), len(picks)))
    for a, b in itertools.product(range(len(picks)), repeat=2):
        if opponents is None:
            table[a, b] = 0.0 if a == b else picks[a] / (len(picks) - 1)
        else:
            table[a, b] = picks[a] * opponents[b]
    return table


def random_log(rounds: int, seed: int = 0) -> tuple[DuelLog, list[tuple[int, int, int, float]]]:
    """Duels with any propensities, two sets of candidates and ties."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, float]] = []
    for _ in range(rounds):
        i, j = (int(row) for row in rng.choice(4, 2, replace=False))
        rows.append((i, j, int(rng.choice([1, 1, -1, 0])), float(rng.uniform(0.05, 0.6))))
    sets = [ARMS if n % 3 else 0.7 * ARMS[:, ::-1] for n in range(rounds)]
    return DuelLog.of(sets, *zip(*rows, strict=True)), rows


# The estimates


@pytest.mark.parametrize("opponents", [None, OPPONENTS], ids=["any other", "another router"])
def test_the_mean_over_all_that_can_be_logged_is_the_value(opponents: FloatArray | None) -> None:
    # Every pair and every vote of one round, each as likely as it is: no chance is left, and no logistic model is behind it.
    rng = np.random.default_rng(1)
    beats = rng.uniform(size=(4, 4))
    beats = np.where(np.arange(4)[:, None] < np.arange(4), beats, 1.0 - beats.T)
    np.fill_diagonal(beats, 0.5)
    chances = rng.dirichlet(np.ones(len(PAIRS)))
    mean = 0.0
    for (i, j), chance in zip(PAIRS, chances, strict=True):
        for outcome, likely in ((1, beats[i, j]), (-1, beats[j, i])):
            log = DuelLog.of(ARMS, [i], [j], [outcome], [chance])
            against = None if opponents is None else lambda _: OPPONENTS
            mean += chance * likely * evaluate_off_policy(log, lambda _: PICKS, against=against, estimator="ips").estimate
    assert mean == pytest.approx(float((target_of(PICKS, opponents) * beats).sum()))


def test_a_model_of_the_votes_leaves_the_mean_alone() -> None:
    # The model is fitted to nine duels and judges the tenth. Whatever it says, the tenth adds a tenth of the value on average.
    earlier, _ = random_log(9)
    beats = wins(np.array([3.0, -1.0, 0.5, 0.0]))
    chances = np.random.default_rng(2).dirichlet(np.ones(len(PAIRS)))

    def mean(table: FloatArray) -> float:
        total = 0.0
        for (i, j), chance in zip(PAIRS, chances, strict=True):
            for outcome, likely in ((1, table[i, j]), (-1, table[j, i])):
                log = DuelLog.of(
                    [*(earlier.sets[one] for one in earlier.set_of), ARMS],
                    [*earlier.first, i],
                    [*earlier.second, j],
                    [*earlier.outcomes, outcome],
                    [*earlier.propensities, chance],
                )
                total += chance * likely * evaluate_off_policy(log, lambda _: PICKS, estimator="dr").estimate
        return total

    value = float((target_of(PICKS, None) * beats).sum())
    assert 10.0 * (mean(beats) - mean(np.full((4, 4), 0.5))) == pytest.approx(value - 0.5)


@pytest.mark.parametrize("opponents", [None, OPPONENTS], ids=["any other", "another router"])
def test_the_estimates_are_those_of_loops(opponents: FloatArray | None) -> None:
    log, rows = random_log(200)
    against = None if opponents is None else lambda _: OPPONENTS
    target = target_of(PICKS, opponents)
    needed = sum(target[a, b] for a, b in itertools.permutations(range(4), 2))
    plain, signed, weights, robust = 0.0, 0.0, 0.0, 0.0
    for n, (i, j, outcome, chance) in enumerate(rows):
        y = {1: 1.0, 0: 0.5, -1: 0.0}[outcome]
        plain += 0.5 + (target[i, j] * (y - 0.5) + target[j, i] * (1.0 - y - 0.5)) / chance
        signed += (target[i, j] * (y - 0.5) + target[j, i] * (0.5 - y)) / chance
        weights += (target[i, j] + target[j, i]) / chance
        beats = fitted_before(log, n - n % 20)[log.set_of[n]]
        robust += float((target * beats).sum())
        robust += (target[i, j] * (y - beats[i, j]) + target[j, i] * (1.0 - y - beats[j, i])) / chance
    found = {
        name: evaluate_off_policy(log, lambda _: PICKS, against=against, estimator=name) for name in ("ips", "snips", "dr")
    }
    assert found["ips"].estimate == pytest.approx(plain / 200)
    assert found["snips"].estimate == pytest.approx(0.5 + needed * signed / weights)
    assert found["dr"].estimate == pytest.approx(robust / 200, abs=1e-6)
    assert found["ips"].overlap == pytest.approx(weights / 200 / needed)


def fitted_before(log: DuelLog, start: int) -> list[FloatArray]:
    """Who beats whom in every set, by a logistic fit of SciPy to the duels before `start`."""
    if start == 0:
        return [np.full((4, 4), 0.5) for _ in log.sets]
    contrasts = np.array([log.sets[log.set_of[n]][log.first[n]] - log.sets[log.set_of[n]][log.second[n]] for n in range(start)])
    y = 0.5 + 0.5 * log.outcomes[:start]

    def loss(theta: FloatArray) -> float:
        margin = contrasts @ theta
        return float((y * np.logaddexp(0, -margin) + (1 - y) * np.logaddexp(0, margin)).sum() + 0.5 * theta @ theta)

    theta = optimize.minimize(loss, np.zeros(2), tol=1e-12).x
    return [wins(features @ theta) for features in log.sets]


def test_a_router_beside_itself_wins_half_of_the_votes_for_certain() -> None:
    log, _ = random_log(50)
    for estimator in ("ips", "snips", "dr"):
        value = evaluate_off_policy(log, 1, against=1, estimator=estimator)
        assert (value.estimate, value.standard_error, value.warning) == (0.5, 0.0, "")


def test_what_counts_is_stated() -> None:
    log = DuelLog.of(ARMS, [0, 0, 2], [1, 1, 3], [1, -1, 1], [0.5, 0.1, 0.2])
    value = evaluate_off_policy(log, 0, against=1, estimator="snips")
    assert value.effective_rounds == pytest.approx((2.0 + 10.0) ** 2 / (2.0**2 + 10.0**2))
    assert value.largest_weight == pytest.approx(10 / 12)
    assert value.overlap == pytest.approx(12 / 3)
    assert value.estimate == pytest.approx(2 / 12)
    assert (value.rounds, value.unknown) == (3, 0)


# The intervals


def simulated(policy: Any, exploration: float, rounds: int, seed: int) -> tuple[DuelLog, FloatArray]:
    """A log of a live agent on three arms, and who beats whom."""
    rng = np.random.default_rng(seed)
    utilities, arms = rng.normal(scale=0.8, size=3), np.eye(3)
    agent = Agent(policy, dim=3, seed=seed, exploration=exploration, keep_votes=False)
    rows = []
    for _ in range(rounds):
        duel = agent.choose(arms)
        won = rng.random() < wins(utilities)[duel.first, duel.second]
        agent.learn(duel, winner="first" if won else "second")
        rows.append((duel.first, duel.second, 1 if won else -1, duel.propensity))
    return DuelLog.of(arms, *zip(*rows, strict=True)), wins(utilities)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [FGTS(), MaxInP()], ids=lambda one: type(one).__name__)
def test_intervals_cover_the_truth(policy: Any) -> None:
    logs, hits, errors, halves = 40, dict.fromkeys(("ips", "snips", "dr"), 0), [], []
    for seed in range(logs):
        log, beats = simulated(policy, 0.2, 300, seed)
        for estimator in hits:
            value = evaluate_off_policy(log, 0, against=1, estimator=estimator)  # type: ignore[arg-type]
            hits[estimator] += value.low <= beats[0, 1] <= value.high
            errors.append(value.estimate - beats[0, 1])
            halves.append((value.high - value.low) / 2)
    # With a coverage of 0.95, 32 or fewer of 40 have probability 0.0007 for each of the six counts of this table.
    assert min(hits.values()) > 32, hits
    assert np.mean(halves) < 3.0 * np.sqrt(np.mean(np.square(errors))), "intervals that cover because they are endless"


def test_propensities_that_are_wrong_are_noticed() -> None:
    log, _ = simulated(Uniform(), 0.0, 500, 0)
    assert evaluate_off_policy(log, 0).warning == ""
    wrong = DuelLog.of(np.eye(3), log.first, log.second, log.outcomes, 0.6 * log.propensities)
    with pytest.warns(PoorOverlapWarning, match="add up to 1.6"):
        evaluate_off_policy(wrong, 0)


def test_a_pair_that_was_never_shown_is_noticed() -> None:
    log, _ = simulated(Uniform(), 0.0, 500, 0)
    without = log.select(np.array([{i, j} != {0, 1} for i, j in zip(log.first, log.second, strict=True)]))
    with pytest.warns(PoorOverlapWarning, match="never shown"):
        evaluate_off_policy(without, 0)
    with pytest.raises(DuelistError, match="no duel of the log shows a pair"):
        evaluate_off_policy(without, 0, against=1)
    with pytest.warns(PoorOverlapWarning, match="duels count"):
        evaluate_off_policy(log.select(slice(0, 40)), 0)


# Where logs come from


def test_a_journal_gives_the_duels_that_were_answered_and_not_taken_back() -> None:
    expected = []
    rng = np.random.default_rng(0)
    with MemoryJournal() as journal:
        agent = Agent(FGTS(), dim=2, journal=journal, exploration=0.3)
        for n in range(30):
            arms = ARMS + 0.1 * (n % 3)
            duel = agent.choose(arms)
            if n % 5 == 0:
                agent.skip(duel)
                continue
            winner = str(rng.choice(["first", "second", "tie"]))
            agent.learn(duel, winner=winner, voter="ann" if n % 7 == 0 else "bob")  # type: ignore[arg-type]
            if n % 7:
                outcome = {"first": 1, "second": -1, "tie": 0}[winner]
                expected.append((arms.tolist(), duel.first, duel.second, outcome, duel.propensity))
        agent.forget(voter="ann")
        log = DuelLog.from_journal(journal)
    found = zip(log.set_of, log.first, log.second, log.outcomes, log.propensities, strict=True)
    assert [(log.sets[one].tolist(), *rest) for one, *rest in found] == expected
    assert len(log.sets) == 3, "a set that comes again is kept once"


def test_a_compacted_journal_gives_the_duels_that_came_after(tmp_path: Path) -> None:
    features = np.eye(4)
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        agent = Agent(CoLSTIM(), dim=4, journal=journal, exploration=0.5)
        waiting = [agent.choose(features[:3]) for _ in range(4)]
        agent.learn(waiting[0], winner="first")
        agent.compact()
        agent.learn(waiting[1], winner="first")  # asked before: its set is gone
        later = [agent.choose(features) for _ in range(3)]
        for duel in later:
            agent.learn(duel, winner="second", voter="ann")
        log = DuelLog.from_journal(journal)
        assert list(zip(log.first, log.second, strict=True)) == [duel.rows for duel in later]
        np.testing.assert_allclose(log.propensities, [duel.propensity for duel in later])
        agent.forget(later[0])
        assert len(DuelLog.from_journal(journal)) == 2


def test_a_journal_of_version_0_1_0_is_read_in_the_order_that_it_knew(tmp_path: Path) -> None:
    with SQLiteJournal(unpack("journals/uniform.db.gz", tmp_path / "uniform.db")) as journal:
        log = DuelLog.from_journal(journal)
        asked = [record.body for record in journal.read() if record.kind == "asked"]
    assert len(log) > 10
    n_arms = len(log.sets[0])
    assert [body["probability"] for body in asked] == pytest.approx([1 / (n_arms * (n_arms - 1))] * len(asked))
    assert log.propensities == pytest.approx(np.full(len(log), 2 / (n_arms * (n_arms - 1))))


def test_an_export_of_the_service_is_a_log(tmp_path: Path) -> None:
    from duelist.service.insight.export import as_csv, as_parquet, table_of

    stage = Stage(items=4)
    stage.crowd(150, spread=1.0)
    table = table_of(stage.arena)
    (tmp_path / "votes.csv").write_text(as_csv(table))
    (tmp_path / "votes.parquet").write_bytes(as_parquet(table))
    log, other = (DuelLog.from_file(tmp_path / name) for name in ("votes.csv", "votes.parquet"))
    assert len(log) == len(other) == sum(outcome in ("left", "right", "tie") for outcome in table["outcome"]) > 100
    assert log.propensities == pytest.approx(other.propensities)
    names = log.names[0]
    wins_by_hand = sum(winner == names[0] for winner in table["winner"])
    losses = sum(loser == names[0] for loser in table["loser"])
    first = (log.first == 0) & (log.outcomes == 1) | (log.second == 0) & (log.outcomes == -1)
    second = (log.first == 0) & (log.outcomes == -1) | (log.second == 0) & (log.outcomes == 1)
    assert (first.sum(), second.sum()) == (wins_by_hand, losses)
    assert evaluate_off_policy(log, names[0]).estimate == evaluate_off_policy(other, 0).estimate
    with pytest.raises(DuelistError, match="not among the candidates"):
        evaluate_off_policy(log, "nobody")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ARMS, [0], [0], [1], [0.5]), "two different rows"),
        ((ARMS, [0], [7], [1], [0.5]), "two different rows"),
        ((ARMS, [0], [1], [2], [0.5]), "outcomes"),
        ((ARMS, [0], [1], [1], [0.0]), "propensity"),
        ((ARMS, [0], [1], [1], [1.5]), "propensity"),
        ((ARMS, [0, 1], [1], [1], [0.5]), "first, second and outcomes"),
        (([ARMS, ARMS], [0], [1], [1], [0.5]), "one each"),
        ((ARMS, [], [], [], []), "no answered duel"),
    ],
)
def test_a_log_that_makes_no_sense_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises(DuelistError, match=message):
        DuelLog.of(*arguments)


def test_a_candidate_must_be_on_offer_in_the_duels_that_are_selected_and_in_no_others(tmp_path: Path) -> None:
    rows = ["left,right,outcome,probability,candidates"]
    rows += ['a,b,left,0.5,"[""a"", ""b""]"'] * 3 + [
        'a,c,right,0.4,"[""a"", ""b"", ""c""]"',
        'b,c,,0.4,"[""a"", ""b"", ""c""]"',
    ] * 3
    (tmp_path / "votes.csv").write_text("\n".join(rows) + "\n")
    log = DuelLog.from_file(tmp_path / "votes.csv")
    assert len(log) == 6, "an ask without an answer says nothing"
    with pytest.raises(DuelistError, match="'c' is not among"):
        evaluate_off_policy(log, "c", against="a")
    later = log.select(slice(3, None))
    assert evaluate_off_policy(later, "c", against="a", estimator="snips").estimate == pytest.approx(1.0)


def test_a_router_that_makes_no_sense_is_refused() -> None:
    log, _ = random_log(10)
    for router in (7, -1, lambda _: np.array([0.5, 0.5]), lambda _: 0.5, lambda _: np.array([2.0, -1.0, 0.0, 0.0])):
        with pytest.raises(DuelistError, match="a router must pick"):
            evaluate_off_policy(log, router)
    blind = DuelLog.of(ARMS, [0], [1], [1], [math.nan])
    with pytest.raises(DuelistError, match="exploration"):
        evaluate_off_policy(blind, 0)
    mixed = DuelLog.of(ARMS, [0, 1], [1, 0], [1, 1], [math.nan, 0.5])
    with warnings.catch_warnings(record=True):
        assert evaluate_off_policy(mixed, 0).unknown == 1
