"""Puts results into what is published.

python bench/publish.py results/paper/table1 STORE [STORE ...]                runs, into the archive of a suite
python bench/publish.py results/paper/tuning/split-cub.jsonl FILE [FILE ...]  trials, as `bcl tune --json` prints them

A line of a store's suite, or a method that `bcl run` ran, becomes the line of the archive that has its group and its
label. Runs that the line had stay in it if they have the same configuration and count beside the store's (see
bcl/report/grouping.py: latest), as further seeds do; else the store's take their place. Where the archive has no such
line, it follows the last one of its group. Other lines stay as they are. `--label NAME` gives a store of one line
another label.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError
from bcl.report.grouping import latest
from bcl.runs.result import ARCHIVE, checksum, find_results, write_archive
from bcl.streams import benchmark
from bcl.studies.plan import HEAD, RECORD, read_record

Line = dict[str, Any]


def publish(archive: Path, store: Path, label: str = "") -> int:
    """How many runs the archive then has of the store."""
    record, suite = read_record(archive), read_record(store)
    if record is None:
        raise InputError(f"{archive} has no {RECORD}: it is not the archive of a suite")
    ours = _sound(store)
    lines = suite["lines"] if suite else _by_method(ours)
    if label and len(lines) != 1:
        raise InputError(f"{store} has {len(lines)} lines; --label names the line of a store that has one")
    found = {result["id"]: result for result in (*_sound(archive), *ours)}
    taken = 0
    for line in lines:
        done = [run for run in line["runs"] if run in found]
        if done:
            _place(record["lines"], {**line, "label": label or line["label"], "runs": done}, found)
            taken += len(done)
    wanted = [found[run] for run in dict.fromkeys(run for line in record["lines"] for run in line["runs"])]
    write_archive(wanted, archive / ARCHIVE)
    content = {key: value for key, value in record.items() if key != "checksum"}
    text = yaml.safe_dump({"checksum": checksum(content), **content}, sort_keys=False, allow_unicode=True, width=120)
    write_atomically(archive / RECORD, (HEAD + text).encode())
    return taken


def publish_trials(archive: Path, searched: Path) -> int:
    """Every trial of a search is a line more; `tasks` where there were others than the benchmark's tuning tasks."""
    search = json.loads(searched.read_text(encoding="utf-8"))
    usual = benchmark(search["benchmark"]).tuning_tasks
    beside = {} if search["tasks"] == usual else {"tasks": search["tasks"]}
    lines = [
        json.dumps(
            {"method": method, **beside, "values": row["values"], "seeds": len(row["accs"])}
            | {key: row[key] if row[key] is None else round(row[key], 2) for key in ("acc", "la")}
            | {key: [round(value, 2) for value in row[key]] for key in ("accs", "las")}
        )
        for method, rows in search["trials"].items()
        for row in rows
    ]
    before = archive.read_text(encoding="utf-8") if archive.exists() else ""
    write_atomically(archive, "".join([before, *(f"{line}\n" for line in lines if line not in before)]).encode())
    return len(lines)


def _sound(place: Path) -> list[Any]:
    results, problems = find_results(place)
    if problems:
        raise InputError(problems[0])
    return results


def _by_method(results: list[Any]) -> list[Line]:
    """The lines of `bcl run`, which keeps no plan: a method each."""
    lines: dict[tuple[str, str], Line] = {}
    for result in sorted(results, key=lambda result: result["seed"]):
        names = {key: result[key] for key in ("benchmark", "scenario", "method")}
        start = {"group": result["benchmark"], "label": result["method"], **names, "settings": {}, "set": {}}
        start |= {"seeds": 0, "problem": "", "runs": []}
        line = lines.setdefault((result["benchmark"], result["method"]), start)
        line["runs"].append(result["id"])
        line["seeds"] = len(line["runs"])
    return list(lines.values())


def _place(lines: list[Line], new: Line, found: Mapping[str, Any]) -> None:
    """Into the line that it is, else after the last one of its group."""
    named = [i for i, line in enumerate(lines) if (line["group"], line["label"]) == (new["group"], new["label"])]
    same = [i for i in named if (lines[i].get("set") or {}) == new["set"]] if len(named) > 1 else named
    if same:
        before = lines[same[0]]
        had = [run for run in before["runs"] if run in found and _alike(found[run], found[new["runs"][0]])]
        both = [found[run] for run in dict.fromkeys([*had, *new["runs"]])]
        left_out = {result["id"] for result in latest(both)[1]}
        kept = [result["id"] for result in both if result["id"] not in left_out]
        lines[same[0]] = {**before, "seeds": max(before["seeds"], new["seeds"]), "runs": kept}
        return
    last = max((i for i, line in enumerate(lines) if line["group"] == new["group"]), default=len(lines) - 1)
    lines.insert(last + 1, new)


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs differ in their seed alone, as far as both say what they had."""
    first, second = ({**run["config"], **run["config"]["hyper"], "seed": 0, "hyper": 0} for run in (one, other))
    return all(first[name] == second[name] for name in first.keys() & second.keys())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("stores", type=Path, nargs="+", metavar="store")
    parser.add_argument("--label", default="")
    asked = parser.parse_args()
    for one in asked.stores:
        if asked.archive.suffix == ".jsonl":
            print(f"{one}: {publish_trials(asked.archive, one)} trials")
        else:
            print(f"{one}: {publish(asked.archive, one, asked.label)} runs")
