"""The script that measures the package counts what it says, on a package small enough to count by hand."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

FILES = {
    "__init__.py": "",
    "alone.py": "def wide(a, b, c, d, e, f, g, h, *, i): ...\n",
    "base.py": "from small import left, right\n",
    "left.py": "def load():\n    from small.right import name\n",
    "right.py": "import small.left\n",
    "environments/__init__.py": "",
    "environments/hard.py": "",
    "kernels/__init__.py": "",
    "kernels/wide.py": "class Holder:\n    def wide(self, a, b, c, d, e, f, g, h, i): ...\n",
    "rooms/__init__.py": "",
    "rooms/__init__.pyi": "from small.rooms.public import Name as Name\n",
    "rooms/public.py": "from small import alone\n",
}


def measures(folder: Path) -> dict[str, Any]:
    package = folder / "small"
    for name, text in FILES.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    tool = runpy.run_path(str(ROOT / "benchmarks" / "house.py"))
    return {one.name: one for one in tool["measure"](package)}


def test_a_small_package_is_measured_as_by_hand(tmp_path: Path) -> None:
    found = measures(tmp_path)
    assert found["modules"].value == "7"
    assert found["the same, shelves not counted"].value == "6"
    assert found["imported by exactly one other"].details == (
        "small.alone <- small.rooms.public",
        "small.rooms.public <- small.rooms (stub)",
    )
    assert found["the same, exports by rooms not counted"].details == ("small.alone <- small.rooms.public",)
    assert found["largest folder"].value == "4 (small)"
    assert found["more than 8 parameters, outside kernels"].details == ("small.alone.wide: 9",)
    assert found["more than 8 parameters, inside kernels"].details == ("small.kernels.wide.Holder.wide: 9",)


def test_a_cycle_is_found_also_through_an_import_inside_a_function(tmp_path: Path) -> None:
    cycles = measures(tmp_path)["import cycles"]
    assert not cycles.within
    assert cycles.details == ("small.left -> small.right -> small.left",)
