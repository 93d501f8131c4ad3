"""The colours of page and figures, around the hues of Okabe and Ito: hue tells the family, lightness the member.

Colour is not left alone where there is room: lines bear their names at their ends, and markers differ within a family.
"""

from __future__ import annotations

INK = "#1f2937"
MUTED = "#667085"
GRID = "#e8ebf0"

COLOURS = {
    # bounds
    "finetune": "#8b93a1",
    "offline": "#1f2937",
    # regularization and distillation: yellow and rose
    "lwf": "#aab41f",
    "ewc": "#8a7300",
    "icarl": "#d98cb3",
    "kdr": "#a84a7f",
    # gradient projection: green
    "gem": "#009e73",
    "agem": "#6cc5a8",
    # replay: blue
    "er": "#0072b2",
    "er-ace": "#56b4e9",
    "er-mir": "#0b3c6f",
    "der++": "#7a8ee0",
    # meta-learning: violet
    "mer": "#6a3d9a",
    "ftml": "#b48fd6",
    # bilevel: orange to red
    "bcl-single": "#e69f00",
    "bcl-dual": "#d1490c",
    "bcl-dual-mir": "#8c1c13",
}
SPARE = ("#117a8b", "#5c7a29", "#a0522d", "#4b5fa8", "#9e3d64", "#3f7d5c")  # for methods of the user's own
