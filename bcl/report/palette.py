"""One look for all figures: a fixed colour and marker per method, so that a method is itself everywhere."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.colors import to_hex, to_rgb

from bcl.report.colours import COLOURS, GRID, INK, MUTED, SPARE
from bcl.report.entries import Entry

MARKERS = {
    **{"finetune": "X", "lwf": "o", "ewc": "s", "icarl": "D", "gem": "o", "agem": "s", "kdr": "^", "er": "o"},
    **{"er-ace": "s", "er-mir": "D", "der++": "^", "mer": "o", "ftml": "s"},
    **{"bcl-single": "o", "bcl-dual": "D", "bcl-dual-mir": "s", "offline": "_"},
}
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
def style() -> Iterator[None]:
    """Our settings and nobody else's: a figure does not depend on the user's matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def colour(entry: Entry) -> str:
    """The method's colour; its further configurations are lighter shades of it."""
    base = COLOURS.get(entry.method) or SPARE[_hash(entry.method) % len(SPARE)]
    share = min(0.22 * entry.index, 0.55)
    return str(to_hex([channel + (1 - channel) * share for channel in to_rgb(base)]))


def marker(entry: Entry) -> str:
    return MARKERS.get(entry.method) or SPARE_MARKERS[_hash(entry.method) % len(SPARE_MARKERS)]


def line_style(entry: Entry) -> Any:
    return LINE_STYLES[1] if entry.is_upper_bound else LINE_STYLES[entry.index % len(LINE_STYLES)]


def _hash(name: str) -> int:
    return zlib.crc32(name.encode())
