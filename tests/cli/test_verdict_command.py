"""`duelist verdict` ends with 0 where the goal is reached, 1 where not, and 2 where there is nothing to say."""

from __future__ import annotations

from click.testing import CliRunner

from duelist.cli.main import cli
from duelist.service import local_service


def test_the_exit_status_is_the_gate() -> None:
    with local_service() as service, service.client() as client:
        arena = client.create_arena("Release", ["old", "new", "third"])
        read = {"DUELIST_KEY": client.make_key("ci", role="read", arena=arena)}

        def gate(place: str = arena) -> tuple[int, str]:
            done = CliRunner().invoke(cli, ["verdict", service.url, place], env=read)
            return done.exit_code, done.output

        client.set_goal(arena, "promote", challenger="new", champion="old")
        assert gate()[0] == 1
        for _ in range(14):
            client.tell_winner(client.ask(arena), "new")
        assert gate() == (0, f"{client.verdict(arena)['sentence']}\n")
        client.set_goal(arena, "promote", challenger="old", champion="new")
        assert gate()[0] == 1  # decided, and not for the challenger
        client.set_goal(arena, "best")
        assert gate()[0] == 1
        assert CliRunner().invoke(cli, ["verdict", service.url, "elsewhere"], env=read).exception is not None
