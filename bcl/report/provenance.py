"""Where a row's hyper-parameters come from. A rival at its defaults is not a tuned one, and every table says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bcl.report.style import packaged
from bcl.runs.presets import SET, sources
from bcl.streams import BENCHMARKS

DEFAULTS = "defaults"
TUNED = "tuned"


def sources_of(run: Mapping[str, Any]) -> dict[str, str] | None:
    """By hyper-parameter, without those at their defaults; None where it is not known.

    A result that does not say it is compared with the package's chosen values and the method's defaults.
    """
    if isinstance(run.get("sources"), Mapping):
        return {str(name): str(source) for name, source in run["sources"].items()}
    learner, hyper = packaged(run["method"]), (run.get("config") or {}).get("hyper")
    if learner is None or not isinstance(hyper, Mapping):
        return None
    home = BENCHMARKS.get(run["benchmark"])
    place = (run["benchmark"], run["scenario"], home.scenario if home else run["scenario"], run["method"])
    return sources(*place, hyper, asdict(learner.Hyper()), own=False)


def origin(run: Mapping[str, Any]) -> str:
    """tuned: a file of chosen values has some; set: some were given by hand alone; defaults; empty: not known."""
    found = sources_of(run)
    if found is None:
        return ""
    kinds = {source == SET for source in found.values()}
    return TUNED if False in kinds else SET if kinds else DEFAULTS


def by_source(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The hyper-parameters of every source: files first, then what was set, then defaults. An empty name: not known."""
    found, hyper = sources_of(run), (run.get("config") or {}).get("hyper") or {}
    grouped: dict[str, dict[str, Any]] = {}
    for name, value in hyper.items():
        grouped.setdefault("" if found is None else found.get(name, DEFAULTS), {})[name] = value
    return dict(sorted(grouped.items(), key=lambda item: (item[0] == DEFAULTS, item[0] == SET)))
