"""One look for page and figures: a fixed colour and marker per method, so that a method looks the same everywhere.

The colours are around the hues of Okabe and Ito: hue tells the family, lightness the member. Colour is never the only
sign where there is room: lines bear their names at their ends, and markers differ within a family.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcl.report.study import Row

INK = "#1f2937"
MUTED = "#667085"
GRID = "#e8ebf0"

SPARE = ("#117a8b", "#5c7a29", "#a0522d", "#4b5fa8", "#9e3d64", "#3f7d5c")  # for methods of the user's own
SPARE_MARKERS = ("P", "v", "<", ">", "h", "p")
LINE_STYLES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))

SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # a name is never a formula
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": "#c5ccd6",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "bcl",
    "pdf.fonttype": 42,
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Our settings and nobody else's: a figure does not depend on the user's matplotlibrc."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def packaged(method: str) -> Any:
    """The class of a method of this package, else None: a report imports no code of the user's."""
    from bcl.learners import METHODS
    from bcl.learners import method as learner

    return learner(method) if method in METHODS else None


def is_upper_bound(method: str) -> bool:
    return bool(getattr(packaged(method), "is_upper_bound", False))


def colour(row: Row) -> str:
    """The method's colour; its further configurations are lighter shades of it."""
    base = getattr(packaged(row.method), "colour", "") or _spare(SPARE, row.method)
    share = min(0.22 * row.index, 0.55)
    channels = [int(base[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(channel + (255 - channel) * share):02x}" for channel in channels)


def marker(row: Row) -> str:
    return getattr(packaged(row.method), "marker", "") or _spare(SPARE_MARKERS, row.method)


def line_style(row: Row) -> Any:
    return LINE_STYLES[1] if row.is_upper_bound else LINE_STYLES[row.index % len(LINE_STYLES)]


def _spare(choices: Sequence[str], method: str) -> str:
    """One and the same choice for a method, wherever it is shown."""
    return choices[zlib.crc32(method.encode()) % len(choices)]
