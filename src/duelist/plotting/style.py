"""Line styles that differ without colour vision and on paper without colour; making and saving figures."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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


def new_figure(width: float, height: float) -> Figure:
    """Make an empty figure of this size in inches, outside pyplot's global state."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, stem: Path) -> list[Path]:
    """Write `stem`.png for the screen and `stem`.pdf for print; the same figure gives the same bytes."""
    paths = [stem.with_name(f"{stem.name}.{format_}") for format_ in FORMATS]
    for path in paths:
        # The date in the file would make equal figures differ.
        metadata = {"CreationDate": None} if path.suffix == ".pdf" else {"Software": None}
        figure.savefig(path, dpi=DOTS_PER_INCH, metadata=metadata)
    return paths
