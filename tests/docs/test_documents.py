"""The documents are true: their Python runs, their commands parse, their links lead somewhere."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

import duelist
from duelist.cli.main import cli
from duelist.policies.registry import POLICIES

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
_FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)|<img src=\"([^\"]+)\"")


def blocks(document: Path, language: str) -> list[tuple[int, str]]:
    """The fenced blocks of a language, each with the line it starts on."""
    text = document.read_text(encoding="utf-8")
    return [(text.count("\n", 0, found.start(2)) + 1, found[2]) for found in _FENCE.finditer(text) if found[1] == language]


def named(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("document", [d for d in DOCUMENTS if blocks(d, "python")], ids=named)
def test_python_in_a_document_runs_from_top_to_bottom(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "duelist[jax]" in document.read_text(encoding="utf-8"):
        pytest.importorskip("jax", reason="this document needs the extra: pip install 'duelist[jax]'")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(document, "python"):
        # Blank lines in front, so that a traceback names the line of the document. Without the future imports of this file:
        # a web framework reads annotations, and the reader's are not text.
        exec(compile("\n" * (line - 1) + code, str(document), "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_between_documents_lead_to_files(document: Path) -> None:
    found = [link or image for link, image in _LINK.findall(document.read_text(encoding="utf-8"))]
    targets = [target for target in found if "://" not in target]
    assert [link for link in targets if not (document.parent / link).exists()] == []


def commands(program: str) -> list[tuple[str, list[str]]]:
    found = []
    for document in DOCUMENTS:
        for _, block in blocks(document, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] == program:
                    found.append((named(document), words[1:]))
    return found


def test_duelist_commands_in_documents_have_arguments_that_exist() -> None:
    found = commands("duelist")
    assert found
    for document, words in found:
        if words[0].startswith("-"):
            continue
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None, f"{document}: no command {words[0]}"
        command.make_context(words[0], words[1:])


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_scripts_that_a_document_names_are_there(document: Path) -> None:
    found = re.findall(r"python ((?:benchmarks|examples)/[\w/]+\.py)", document.read_text(encoding="utf-8"))
    assert [script for script in found if not (ROOT / script).exists()] == []


def test_make_commands_in_documents_are_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    found = commands("make")
    assert {words[0] for _, words in found} >= {"demo", "test"}
    assert {words[0] for _, words in found} <= targets


def test_every_policy_has_a_page_and_the_readme_leads_to_the_pages() -> None:
    assert "](docs/policies/)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for name in POLICIES:
        assert (ROOT / "docs" / "policies" / f"{name.lower()}.md").exists()


def imported_modules(code: str) -> list[str]:
    """The modules of duelist that a piece of Python imports."""
    names = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if name.split(".")[0] == "duelist"]


@pytest.mark.parametrize("source", [*(d for d in DOCUMENTS if blocks(d, "python")), *EXAMPLES], ids=named)
def test_documents_and_examples_import_from_the_root_or_a_room(source: Path) -> None:
    text = source.read_text(encoding="utf-8")
    pieces = [text] if source.suffix == ".py" else [code for _, code in blocks(source, "python")]
    deep = [module for piece in pieces for module in imported_modules(piece) if module.count(".") > 1]
    assert deep == [], f"import these names from their rooms, as in `from duelist.samplers import PolyaGamma`: {deep}"


def test_every_dependency_has_a_reason_in_the_documents() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [requirement for extra in project["optional-dependencies"].values() for requirement in extra]
    names = {re.split(r"[\[<>=; ]", requirement)[0] for requirement in [*project["dependencies"], *extras]} - {"duelist"}
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert {name for name in names if f"| {name} |" not in reasons} == set()


def test_every_name_that_the_architecture_page_shows_at_the_root_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"duelist\.([A-Za-z_]\w*)\(", text))
    assert shown
    assert shown <= set(duelist.__all__)


def test_the_skeleton_in_the_guide_is_the_policy_that_the_tests_play() -> None:
    guide = ROOT / "docs" / "develop" / "add-a-policy.md"
    skeleton = (ROOT / "tests" / "support" / "skeleton_policy.py").read_text(encoding="utf-8")
    assert next(code.strip() for _, code in blocks(guide, "py")) == skeleton.strip()
