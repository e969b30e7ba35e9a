"""Compiled code is used while its sources are what they were, wherever it may be kept, and never gets in the way.

Every test works on a tiny package that is called duelist and has the real decorators, in processes of their own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import duelist

pytestmark = pytest.mark.slow

KERNELS = Path(duelist.__file__).parent / "kernels"

CALLEE = """
from duelist.kernels.compile import inner

@inner
def weight(x):
    return 2.0 * x
"""
CALLER = """
import numpy as np
from duelist.kernels.callee import weight
from duelist.kernels.compile import entry

@entry
def weigh(values):
    for i in range(values.shape[0]):
        values[i] = weight(values[i])
"""
# Weighs 1.0 and says how many functions were compiled, and where they are kept.
USE = """
import json
import numpy as np
from duelist.kernels.caller import weigh
from duelist.kernels.callee import weight
value = np.ones(1)
weigh(value)
misses = sum(sum(each.stats.cache_misses.values()) for each in (weigh, weight))
print(json.dumps([value[0], misses, weigh.stats.cache_path]))
"""


class Outcome(NamedTuple):
    """What a process computed, how many functions it compiled, and where it keeps them."""

    value: float
    compiled: int
    kept_in: str | None


def make_package(folder: Path) -> Path:
    """The folder that holds a package duelist of one kernel and one part that it calls, in another file."""
    kernels = folder / "tree" / "duelist" / "kernels"
    kernels.mkdir(parents=True)
    for inside in (kernels.parent, kernels):
        (inside / "__init__.py").write_text("")
    for name in ("compile.py", "cache.py"):
        shutil.copy(KERNELS / name, kernels / name)
    (kernels / "callee.py").write_text(CALLEE)
    (kernels / "caller.py").write_text(CALLER)
    return folder / "tree"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """With nothing compiled yet."""
    return make_package(tmp_path)


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = make_package(tmp_path_factory.mktemp("compiled"))
    first = use(made)
    assert (first.value, first.compiled) == (2.0, 2)
    return made


@pytest.fixture
def compiled(compiled_once: Path, tmp_path: Path) -> Path:
    """With its kernel compiled, beside the source: a copy, with the times of the files."""
    return Path(shutil.copytree(compiled_once, tmp_path / "tree"))


def run(
    package: Path,
    *,
    program: str = USE,
    cache: Path | None = None,
    home: Path | None = None,
    before: str = "",
) -> str:
    """What a program prints last."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    environment |= {"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(home or package / "home")}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-c", f"{before}\n{program}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def use(package: Path, *, cache: Path | None = None, home: Path | None = None, before: str = "") -> Outcome:
    return Outcome(*json.loads(run(package, cache=cache, home=home, before=before)))


def edit(package: Path) -> None:
    callee = package / "duelist" / "kernels" / "callee.py"
    callee.write_text(callee.read_text().replace("2.0 * x", "3.0 * x"))


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*.nb?"))


def make_unwritable(package: Path) -> None:
    """Let nothing be written beside the source: permissions do not stop root, a file in the place of the folder does."""
    for folder in (package / "duelist", package / "duelist" / "kernels"):
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        (folder / "__pycache__").write_text("")


def test_an_edited_part_gives_new_numbers_in_the_kernels_of_other_files(compiled: Path) -> None:
    second = use(compiled)
    assert (second.value, second.compiled) == (2.0, 0)
    edit(compiled)
    edited, again = use(compiled), use(compiled)
    assert (edited.value, edited.compiled) == (3.0, 2)
    assert (again.value, again.compiled) == (3.0, 0)


def test_edits_do_not_pile_up_on_disk(compiled: Path) -> None:
    before = entries(compiled)
    callee = compiled / "duelist" / "kernels" / "callee.py"
    for n in range(2):
        callee.write_text(f"# {n}\n" + callee.read_text())  # the function moves to another line
        assert use(compiled).compiled == 2
    assert len(before) == 4  # an index and one version each
    assert entries(compiled) == before


def test_numba_cache_dir_comes_first_then_the_folder_beside_the_source(compiled: Path, tmp_path: Path) -> None:
    beside = use(compiled)
    assert beside.kept_in == str(compiled / "duelist" / "kernels" / "__pycache__")
    cache = tmp_path / "cache"
    asked, again = use(compiled, cache=cache), use(compiled, cache=cache)
    assert asked.compiled == 2  # what lies beside the source is not looked at
    assert asked.kept_in is not None
    assert Path(asked.kept_in).parent == cache
    assert (again.value, again.compiled) == (2.0, 0)
    edit(compiled)
    edited = use(compiled, cache=cache)
    assert (edited.value, edited.compiled) == (3.0, 2)


def test_a_read_only_installation_compiles_into_the_users_cache(package: Path, tmp_path: Path) -> None:
    make_unwritable(package)
    first, second = (use(package, home=tmp_path / "home") for _ in range(2))
    assert (first.value, first.compiled) == (2.0, 2)
    assert first.kept_in is not None
    assert Path(first.kept_in).is_relative_to(tmp_path / "home")
    assert (second.value, second.compiled) == (2.0, 0)
    edit(package)
    assert use(package, home=tmp_path / "home").value == 3.0


def test_an_image_that_was_warmed_up_compiles_nothing_on_a_read_only_disk(compiled: Path, tmp_path: Path) -> None:
    # A user without a home, who may read what lies beside the source but not write there.
    refuse = "import tempfile\ndef no(*_, **__): raise PermissionError(13, 'read-only')\ntempfile.TemporaryFile = no"
    outcome = use(compiled, home=tmp_path / "home", before=refuse)
    assert (outcome.value, outcome.compiled, outcome.kept_in) == (2.0, 0, None)


def test_where_nothing_can_be_written_kernels_work_all_the_same(package: Path, tmp_path: Path) -> None:
    make_unwritable(package)
    (tmp_path / "file").write_text("")
    for cache in (None, tmp_path / "file" / "cache"):
        outcome = use(package, cache=cache, home=tmp_path / "file" / "home")
        assert (outcome.value, outcome.compiled, outcome.kept_in) == (2.0, 2, None)


def test_on_a_disk_that_is_mounted_read_only(package: Path, tmp_path: Path) -> None:
    mount = f"mount --bind {package} {package} && mount -o remount,ro,bind {package}"
    inside = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*inside, mount], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount a folder")
    home = tmp_path / "home"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    environment |= {"PYTHONPATH": str(package), "HOME": str(home), "PROGRAM": USE, "PYTHON": sys.executable}
    found = []
    for _ in range(2):
        command = [*inside, f'{mount} && exec "$PYTHON" -c "$PROGRAM"']
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        found.append(Outcome(*json.loads(done.stdout)))
    assert [outcome.compiled for outcome in found] == [2, 0]
    assert found[0].kept_in is not None
    assert Path(found[0].kept_in).is_relative_to(home)


def test_a_tree_that_moved_takes_its_compiled_code_along(compiled: Path, tmp_path: Path) -> None:
    moved = compiled.rename(tmp_path / "elsewhere")
    outcome = use(moved)
    assert (outcome.value, outcome.compiled) == (2.0, 0)


def test_importing_kernels_reads_hashes_and_writes_nothing(package: Path, tmp_path: Path) -> None:
    # Python itself reads sources to import them, but opens none for writing and hashes none with hashlib.
    watch = """
import hashlib, sys
import numba, llvmlite
seen = []
def notice(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append(arguments[0])
    elif event in ("os.remove", "os.mkdir", "os.rename", "tempfile.mkstemp"):
        seen.append(event)
def counted(name, real):
    return lambda *arguments, **options: seen.append(name) or real(*arguments, **options)
for name in ("blake2b", "sha1", "sha256"):
    setattr(hashlib, name, counted(name, getattr(hashlib, name)))
sys.addaudithook(notice)
from duelist.kernels.caller import weigh
print(seen)
"""
    assert run(package, program=watch, home=tmp_path / "home") == "[]"
    assert entries(package) == []
    assert not (tmp_path / "home").exists()


def test_code_that_changed_after_it_was_imported_is_neither_kept_nor_used(package: Path) -> None:
    """The process runs the old code; kept under the digest of the new files, it would poison every process after it."""
    callee = package / "duelist" / "kernels" / "callee.py"
    change = (
        "import duelist.kernels.caller, pathlib, time\ntime.sleep(0.05)\n"
        f"path = pathlib.Path({str(callee)!r})\npath.write_text(path.read_text().replace('2.0', '3.0'))"
    )
    outcome = use(package, before=change)
    assert (outcome.value, outcome.compiled, outcome.kept_in) == (2.0, 2, None)
    assert use(package).value == 3.0


def test_broken_entries_are_compiled_again(compiled: Path) -> None:
    for path in compiled.rglob("*.nb?"):
        path.write_bytes(b"no pickle")
    outcome = use(compiled)
    assert (outcome.value, outcome.compiled) == (2.0, 2)


def test_an_entry_written_by_older_code_after_the_index_is_not_used(compiled: Path) -> None:
    old = {path: path.read_bytes() for path in compiled.rglob("*.nbc")}
    edit(compiled)
    use(compiled)
    for path, content in old.items():
        path.write_bytes(content)
    assert use(compiled).value == 3.0


def test_without_our_cache_numbas_own_serves(package: Path) -> None:
    (package / "duelist" / "kernels" / "kernel_cache.py").write_text("raise ImportError('Numba changed')\n")
    first, second = use(package), use(package)
    assert (first.value, first.compiled) == (2.0, 2)
    assert (second.value, second.compiled) == (2.0, 0)


def test_kernels_run_as_plain_python_when_numba_is_told_to(package: Path) -> None:
    program = "import numpy as np\nfrom duelist.kernels.caller import weigh\nv = np.ones(1)\nweigh(v)\nprint(v[0])"
    before = "import os\nos.environ['NUMBA_DISABLE_JIT'] = '1'"
    assert run(package, program=program, before=before) == str(np.float64(2.0).item())
