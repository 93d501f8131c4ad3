"""One pipeline from a store to tables and figures: HTML, SVG, PDF, Markdown, CSV, LaTeX, JSON, and the terminal."""

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
    from bcl.report.grouping import from_results
    from bcl.report.page import write_report
    from bcl.report.read import read_study
    from bcl.report.summary import as_json, summarize
    from bcl.report.tables import sheets
    from bcl.report.terminal import table

__all__ = [
    "accuracy_comparison",
    "accuracy_matrices",
    "accuracy_on_each_task",
    "accuracy_over_time",
    "as_json",
    "as_svg",
    "from_results",
    "read_study",
    "save_figures",
    "sheets",
    "summarize",
    "table",
    "write_report",
]

_FIGURES = ("accuracy_comparison", "accuracy_matrices", "accuracy_on_each_task", "accuracy_over_time")
_HOME = {
    **dict.fromkeys((*_FIGURES, "as_svg", "save_figures"), "figures"),
    **{"from_results": "grouping", "read_study": "read", "as_json": "summary", "summarize": "summary"},
    **{"sheets": "tables", "table": "terminal", "write_report": "page"},
}


def __getattr__(name: str) -> Any:
    """Imported on first use: a table in the terminal needs neither matplotlib nor jinja2."""
    if name not in _HOME:
        raise AttributeError(f"module 'bcl.report' has no attribute '{name}'")
    return getattr(importlib.import_module(f"bcl.report.{_HOME[name]}"), name)
