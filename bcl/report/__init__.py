"""Tables and figures of results: HTML, SVG, PDF, Markdown, CSV, and the terminal."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bcl.report.figures import (
        accuracy_comparison,
        accuracy_matrices,
        accuracy_on_each_task,
        accuracy_over_time,
        as_svg,
        save_figures,
    )
    from bcl.report.html import write_report
    from bcl.report.summary import summarize
    from bcl.report.text import csv, markdown, table

__all__ = [
    "accuracy_comparison",
    "accuracy_matrices",
    "accuracy_on_each_task",
    "accuracy_over_time",
    "as_svg",
    "csv",
    "markdown",
    "save_figures",
    "summarize",
    "table",
    "write_report",
]

_FIGURES = ("accuracy_comparison", "accuracy_matrices", "accuracy_on_each_task", "accuracy_over_time")
_HOME = {
    **dict.fromkeys((*_FIGURES, "as_svg", "save_figures"), "figures"),
    **dict.fromkeys(("csv", "markdown", "table"), "text"),
    **{"summarize": "summary", "write_report": "html"},
}


def __getattr__(name: str) -> Any:
    """Imported on first use: a table in the terminal needs neither matplotlib nor jinja2."""
    if name not in _HOME:
        raise AttributeError(f"module 'bcl.report' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bcl.report.{_HOME[name]}"), name)
