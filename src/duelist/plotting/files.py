"""Matplotlib at arm's length: asked for when a figure is wanted, and never through pyplot's global state."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from duelist.core.errors import DuelistError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf")


class MissingMatplotlibError(DuelistError, ImportError):
    """A figure was asked for, and matplotlib is not installed."""


def require_matplotlib() -> None:
    """Say how to install matplotlib if it is missing."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingMatplotlibError('figures need matplotlib, which is not installed. Run: pip install "duelist[plot]"')


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, that no global state knows of."""
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
        figure.savefig(path, dpi=200, metadata=metadata)
    return paths
