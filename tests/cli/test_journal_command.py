"""`duelist journal`: an agent's journal is described and compacted without a line of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from duelist.cli.main import cli
from duelist.core.errors import InvalidInputError
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from tests.support.agents import ARMS, Ends, bytes_of

SETTINGS: dict[str, Any] = {"dim": 4, "seed": 3, "max_pending": 7}
VOTER = "ann.of.green.gables@example.org"


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, ["journal", *map(str, arguments)])


def test_info_says_whose_journal_it_is_and_what_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    with SQLiteJournal(path) as journal:
        agent = Agent(FGTS(), **SETTINGS, journal=journal)
        for _ in range(3):
            agent.learn(agent.choose(ARMS), "first", voter=VOTER, time=1_700_000_000.0)
        agent.choose(ARMS)
    said = run("info", path).output
    assert "FGTS, dim 4, seed 3" in said
    assert "4 asked, 3 told, 1 opened" in said
    assert f"on question 2 at 2023-11-14 22:13:20 UTC by {VOTER}" in said
    assert "none since the journal was compacted" in (run("compact", path), run("info", path))[1].output


@pytest.mark.parametrize("changed", [False, True])
def test_compacting_leaves_the_same_agent_and_nothing_of_its_voters(changed: bool, tmp_path: Path) -> None:
    path, after = tmp_path / "votes.db", CoLSTIM() if changed else FGTS()
    reference = Agent(FGTS(), **SETTINGS)
    with SQLiteJournal(path) as journal:
        agent = Agent(FGTS(), **SETTINGS, journal=journal)
        for one in (agent, reference):
            for _ in range(20):
                one.learn(one.choose(ARMS), "first", voter=VOTER)
            if changed:
                one.change_policy(after)
            one.choose(ARMS)
    done = run("compact", path)
    assert "20 answers stay learnt" in done.output
    assert VOTER.encode() not in path.read_bytes()
    with SQLiteJournal(path) as journal:
        assert len(list(journal.read())) == 1
        assert bytes_of(Agent(after, **SETTINGS, journal=journal), tmp_path) == bytes_of(reference, tmp_path)


def test_a_journal_of_slates_can_be_compacted_too(tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "slates.db") as journal:
        slates = SlateAgent(ListwiseFGTS(choices=3), dim=4, seed=0, journal=journal)
        slate = slates.choose(ARMS)
        slates.learn(slate, winner=slate.rows[0])
    assert "1 answers stay learnt" in run("compact", tmp_path / "slates.db").output


def test_what_is_no_journal_of_an_agent_is_refused_with_a_reason(tmp_path: Path) -> None:
    missing, empty, foreign, own = (tmp_path / name for name in ("missing.db", "empty.db", "service.db", "own.db"))
    SQLiteJournal(empty).close()
    with SQLiteJournal(foreign) as journal:
        journal.transact(lambda turn: turn.append("arena_created", {}))
    with SQLiteJournal(own) as journal:
        Agent(Ends(), dim=2, journal=journal)
    for path, reason in ((missing, "no file"), (empty, "empty"), (foreign, "service"), (own, "Ends")):
        with pytest.raises(InvalidInputError, match=reason):
            CliRunner().invoke(cli, ["journal", "compact", str(path)], catch_exceptions=False)
    assert not missing.exists()
