"""One look for page and figures: a fixed colour and marker per method, so that a method looks the same everywhere.

The colours are around the hues of Okabe and Ito: hue tells the family, lightness the member. Colour is never the only
sign where there is room: lines bear their names at their ends, and markers differ within a family.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcl.report.study import Row

INK = "#1f2937"
MUTED = "#667085"
GRID = "#e8ebf0"
EDGE = "#c5ccd6"  # of axes; and the swatch of a row without runs
LATER = "#f4f6f8"  # behind tasks that are still to come
CELL_INK = "#111827"  # on a coloured cell, which is the same in the dark

THEME = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", EDGE: "var(--edge)", LATER: "var(--later)"}
NIGHT = "#14181f"  # the page in the dark
SEEN = 4.5  # contrast of a line with the page

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
    "axes.edgecolor": EDGE,
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
    return lighter(_base(row), _shade(row))


def colour_at_night(row: Row) -> str:
    """The same on the dark page, where further configurations are lighter than what is seen of the first."""
    return lighter(in_the_dark(_base(row)), _shade(row))


def _base(row: Row) -> str:
    return getattr(packaged(row.method), "colour", "") or _spare(SPARE, row.method)


def _shade(row: Row) -> float:
    return min(0.22 * row.index, 0.55)


def lighter(colour: str, share: float) -> str:
    """Mixed with so much white."""
    return "#" + "".join(f"{round(channel + (255 - channel) * share):02x}" for channel in _channels(colour))


def in_the_dark(colour: str) -> str:
    """The same hue, as light as it must be to be seen on the dark page.

    >>> in_the_dark("#0072b2"), in_the_dark("#56b4e9")
    ('#338ec1', '#56b4e9')
    """
    steps = (lighter(colour, step / 20) for step in range(21))
    return next(shade for shade in steps if _luminance(shade) + 0.05 > SEEN * (_luminance(NIGHT) + 0.05))


def _channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _luminance(colour: str) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(colour))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def tint(colour: str) -> str:
    """The name under which the page's style sheet knows a colour, by day and in the dark.

    >>> tint("#0072b2"), tint(INK)
    ('var(--c0072b2)', 'var(--ink)')
    """
    return THEME.get(colour) or f"var(--c{colour.removeprefix('#')})"


def themed(svg: str, colours: Collection[str]) -> str:
    """A figure in the page's own colours, so that it goes dark with it; `colours` are those of rows."""
    names = {known: tint(known) for known in (*colours, *THEME)}

    def style(match: re.Match[str]) -> str:
        text = match[0].replace("stroke: #ffffff", "stroke: var(--paper)")
        text = text.replace('"fill: #ffffff"', '"fill: none"')  # the background; white letters say more than that
        return re.sub(r"#[0-9a-f]{6}", lambda found: names.get(found[0], found[0]), text)

    return re.sub(r'style="[^"]*"', style, svg)


def marker(row: Row) -> str:
    return getattr(packaged(row.method), "marker", "") or _spare(SPARE_MARKERS, row.method)


def line_style(row: Row) -> Any:
    return LINE_STYLES[1] if row.is_upper_bound else LINE_STYLES[row.index % len(LINE_STYLES)]


def _spare(choices: Sequence[str], method: str) -> str:
    """One and the same choice for a method, wherever it is shown."""
    return choices[zlib.crc32(method.encode()) % len(choices)]
