"""Line styles that differ without colour vision and on paper without colour; making and saving figures."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from duelist.core.errors import DuelistError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# The palette of Okabe & Ito (2008), with grey instead of its yellow, which is too pale for lines on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#888888")
Dashes = tuple[int, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = (
    (0, ()),
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (6, 1.5, 1.2, 1.5)),
    (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)),
)
MARKERS = ("o", "s", "^", "D", "v", "P")


class Line(NamedTuple):
    """The line style of one policy; the marker is for figures without lines."""

    colour: str
    dashes: Dashes
    marker: str


def line_style(number: int) -> Line:
    """Return the line style with this number: 40 differ in colour or dashes, and 24 in colour or marker."""
    return Line(OKABE_ITO[number % len(OKABE_ITO)], DASHES[number % len(DASHES)], MARKERS[number % len(MARKERS)])


FORMATS = ("png", "pdf")
DOTS_PER_INCH = 200  # of PNG files


class MissingMatplotlibError(DuelistError, ImportError):
    """A figure was asked for, and matplotlib is not installed."""


def require_matplotlib() -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingMatplotlibError('figures need matplotlib, which is not installed. Run: pip install "duelist[plot]"')


def new_figure(width: float, height: float, *, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Make an empty figure of this size in inches, outside pyplot's global state; `layout` None for one that places its parts.

    A layout engine measures everything by drawing it once more for every file.
    """
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: Path, *, digest: str = "") -> list[Path]:
    """Write `stem`.png for the screen and `stem`.pdf for print; the same figure gives the same bytes.

    Args:
        figure: what to write.
        stem: folder and name.
        digest: of what the figure shows, kept in the files; see `is_drawn`.
    """
    paths = _paths(stem)
    for path in paths:
        # The date in the file would make equal figures differ.
        metadata = {"CreationDate": None, "Keywords": digest} if path.suffix == ".pdf" else {"Software": None, "Source": digest}
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata=metadata)
    return paths


def is_drawn(stem: Path, digest: str) -> bool:
    """Whether both files are there and show what has this digest."""
    return all(path.is_file() and digest.encode() in path.read_bytes() for path in _paths(stem))


def _paths(stem: Path) -> list[Path]:
    return [stem.with_name(f"{stem.name}.{format_}") for format_ in FORMATS]


def figure_digest(*shown: Any) -> str:
    """A digest of data and of the code that draws them: equal ones give the same figure."""
    digest = hashlib.blake2b(_code().encode(), digest_size=16)
    _feed(digest, shown)
    return digest.hexdigest()


@cache
def _code() -> str:
    here = Path(__file__).parent
    files = [*sorted(here.glob("*.py")), here.parent / "experiments" / "statistics.py"]
    return version("matplotlib") + "".join(hashlib.blake2b(file.read_bytes()).hexdigest() for file in files)


def _feed(digest: Any, value: Any) -> None:
    """Add a value to a digest: arrays by their bytes, dataclasses and collections by their parts, the rest by its text."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif is_dataclass(value) and not isinstance(value, type):
        _feed(digest, {field.name: getattr(value, field.name) for field in fields(value)})
    elif isinstance(value, Mapping):
        for name, part in value.items():
            digest.update(f"{name}\0".encode())
            _feed(digest, part)
    elif isinstance(value, list | tuple):
        digest.update(f"{len(value)}\0".encode())
        for part in value:
            _feed(digest, part)
    else:
        digest.update(f"{value!r}\0".encode())
