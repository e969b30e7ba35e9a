"""Colours and dashes that stay apart: for colour-blind eyes, and on paper without colour."""

from __future__ import annotations

from typing import NamedTuple

# The palette of Okabe & Ito (2008), without its yellow, which is too pale for lines on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
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
    """How one policy is drawn; the marker is for where no dashes can be seen."""

    colour: str
    dashes: Dashes
    marker: str


def line_of(number: int) -> Line:
    """The line of the policy with this number: 35 that differ in colour or dashes, and 42 in colour or marker."""
    return Line(OKABE_ITO[number % len(OKABE_ITO)], DASHES[number % len(DASHES)], MARKERS[number % len(MARKERS)])
