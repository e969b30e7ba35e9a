"""The command line answers quickly, and knows what it can do without loading it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import click
import pytest

from duelist.cli.main import COMMANDS, cli, main
from duelist.cli.policies import explanations, summary
from duelist.policies.registry import POLICIES, policies_by_shelf, shelf_title
from duelist.version import __version__


def printed_by(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def test_help_names_every_command_and_imports_no_numerical_library() -> None:
    program = (
        "import sys\nfrom duelist.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('numpy', 'numba', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    for name, command in COMMANDS.items():
        assert name in done.stdout
        assert command.summary in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_python_dash_m_is_the_same_command() -> None:
    done = subprocess.run([sys.executable, "-m", "duelist", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_in_the_table_can_be_loaded_and_has_the_name_it_is_listed_by(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert command.help


def test_an_unknown_command_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = printed_by(capsys, "rnu")
    assert code == 2
    assert "No such command 'rnu'" in err


def test_policies_lists_every_policy_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed_by(capsys, "policies")
    assert code == 0
    for name in POLICIES:
        assert name in out
    assert "alpha=0.1" in out


def test_policies_are_listed_by_shelf(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    _, out, _ = printed_by(capsys, "policies")
    places = [out.index(shelf_title(shelf)) for shelf in policies_by_shelf()]
    assert places == sorted(places)
    assert places[0] < out.index("RUCB") < places[1], "the rules for K arms come first"


def test_policies_with_a_name_explains_each_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed_by(capsys, "policies", "fgts")
    assert code == 0
    for parameter in ("eta", "alpha", "prior", "same_arm"):
        assert parameter in out
    assert "temper of the likelihood" in out


def test_policies_with_an_unknown_name_says_which_is_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = printed_by(capsys, "policies", "Unifrom")
    assert (code, out) == (2, "")
    assert "Did you mean 'Uniform'?" in err


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_has_a_line_about_itself_and_about_each_parameter(name: str) -> None:
    policy = POLICIES[name]
    assert summary(policy).endswith(".")
    meanings = explanations(policy)
    assert all(meanings.get(field.name) for field in fields(policy))
