"""What the journal of a store says was done."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path


def journal(root: Path) -> list[tuple[str, str]]:
    if not (root / "journal.jsonl").exists():
        return []
    lines = (root / "journal.jsonl").read_text().splitlines()
    return [(line["run"], line["event"]) for line in map(json.loads, lines)]


def assert_computed_once(root: Path, runs: int) -> None:
    events = journal(root)
    finished = Counter(run for run, event in events if event == "finished")
    assert len(finished) == runs
    assert set(finished.values()) == {1}
    for run in finished:
        mine = [event for name, event in events if name == run]
        assert mine[-1] == "finished", "nobody touched it again"
    assert len(list(root.glob("*/result.json"))) == runs
    assert not list(root.glob("*/lock"))
    assert not list(root.glob("*/.*")), "nothing half written is left"
