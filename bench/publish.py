"""Puts results into what is published.

python bench/publish.py results/paper/table1 STORE [STORE ...]                runs, into the archive of a suite
python bench/publish.py results/paper/tuning/split-cub.jsonl FILE [FILE ...]  trials, as `bcl tune --json` prints them

A line of a store's suite becomes the line of the archive that has its group, its label and its settings, and where
several have its name, what it sets. A method that `bcl run` ran becomes the line whose runs differ from its own in the
seed alone, if there is one, else the line of its benchmark, scenario and settings that has its name as its label. Runs
that the line had stay in it if they have the same configuration and count beside the store's (see
bcl/report/grouping.py: latest), as further seeds do; else the store's take their place. Where the archive has no such
line, it follows the last one of its group. Other lines stay as they are. A store may be an archive itself.

`--label NAME` gives a store of one line another label. `--known` takes the lines alone that the archive has, with what
they set, and leaves others out. `--suite NAME` begins the archive of a suite, where there is none, with its lines and
without runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from bcl.engine.checkpoint import write_atomically
from bcl.errors import InputError, UserError
from bcl.learners import METHODS, method
from bcl.report.grouping import latest
from bcl.runs.result import ARCHIVE, checksum, find_results, write_archive
from bcl.runs.store import RunStore
from bcl.streams import benchmark
from bcl.studies.plan import HEAD, RECORD, Planned, read_record, save_record
from bcl.studies.suite import load

Line = dict[str, Any]


def begin(archive: Path, name: str) -> None:
    """The record of a suite none of whose runs is there; if it is there, it stays."""
    suite, record = load(name), read_record(archive)
    if record is None:
        store = RunStore(archive)
        store.prepare()
        save_record(store, suite, [Planned(line, ()) for line in suite.lines])
    elif record["suite"] != suite.name:
        raise InputError(f"{archive} is the archive of {record['suite']}, not of {suite.name}")


def publish(archive: Path, store: Path, label: str = "", known: bool = False) -> int:
    """How many runs the archive then has of the store."""
    record, suite = read_record(archive), read_record(store)
    if record is None:
        raise InputError(f"{archive} has no {RECORD}: it is not the archive of a suite; --suite NAME begins one")
    published, ours = _sound(archive), _sound(store)
    lines = suite["lines"] if suite else _by_configuration(ours)
    if label and len(lines) != 1:
        raise InputError(f"{store} has {len(lines)} lines; --label names the line of a store that has one")
    found = {result["id"]: result for result in (*published, *ours)}
    there, theirs = ({result["id"] for result in some} for some in (published, ours))
    for line in record["lines"]:  # the archive of a store that is not complete has the whole plan
        line["runs"] = [run for run in line["runs"] if run in there]
    taken, taken_by = 0, set[int | None]()
    for line in lines:
        done = [run for run in line["runs"] if run in theirs]
        new = {**line, "label": label or line["label"], "runs": done}
        if suite:
            told = ["settings", *(["set"] if known or _shared(lines, new) else [])]
            same = _same(record["lines"], new, told)
        else:
            new["group"], same = _of_run(record["lines"], new, found, taken_by)
            taken_by.add(same)
        if done and (same is not None or not known):
            _place(record["lines"], new, same, found, told=("set",) if suite else ())
            taken += len(done)
    if not taken:
        return 0
    wanted = [found[run] for run in dict.fromkeys(run for line in record["lines"] for run in line["runs"])]
    write_archive(wanted, archive / ARCHIVE)
    content = {key: value for key, value in record.items() if key != "checksum"}
    text = yaml.safe_dump({"checksum": checksum(content), **content}, sort_keys=False, allow_unicode=True, width=120)
    write_atomically(archive / RECORD, (HEAD + text).encode())
    return taken


def publish_trials(archive: Path, searched: Path) -> int:
    """Every trial of a search is a line more; `tasks` where there were others than the benchmark's tuning tasks."""
    try:
        lines = _trials(json.loads(searched.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{searched} is not a file of what `bcl tune --json` prints") from error
    before = archive.read_text(encoding="utf-8") if archive.exists() else ""
    write_atomically(archive, "".join([before, *(f"{line}\n" for line in lines if line not in before)]).encode())
    return len(lines)


def _trials(search: Mapping[str, Any]) -> list[str]:
    usual = benchmark(search["benchmark"]).tuning_tasks
    beside = {} if search["tasks"] == usual else {"tasks": search["tasks"]}
    return [
        json.dumps(
            {"method": method, **beside, "values": row["values"], "seeds": len(row["accs"])}
            | {key: row[key] if row[key] is None else round(row[key], 2) for key in ("acc", "la")}
            | {key: [round(value, 2) for value in row[key]] for key in ("accs", "las")}
        )
        for method, rows in search["trials"].items()
        for row in rows
    ]


def _sound(place: Path) -> list[Any]:
    results, problems = find_results(place)
    if problems:
        raise InputError(problems[0])
    return results


def _by_configuration(results: list[Any]) -> list[Line]:
    """The lines of `bcl run`, which keeps no plan: a configuration each, called as its method."""
    lines: list[tuple[Any, Line]] = []
    for result in sorted(results, key=lambda result: result["seed"]):
        line = next((line for first, line in lines if _alike(first, result)), None)
        if line is None:
            names = {key: result[key] for key in ("benchmark", "scenario", "method")}
            line = {"group": result["benchmark"], "label": result["method"], **names, "settings": {}, "set": {}}
            line |= {"seeds": 0, "problem": "", "runs": []}
            lines.append((result, line))
        line["runs"].append(result["id"])
        line["seeds"] = len(line["runs"])
    return [line for _, line in lines]


def _of_run(lines: list[Line], new: Line, found: Mapping[str, Any], taken: set[int | None]) -> tuple[str, int | None]:
    """The group of what `bcl run` ran, and where its line is, if there is one that no other of its store has become."""
    run = found[new["runs"][0]]
    for i, line in enumerate(lines):
        if new["label"] in (new["method"], line["label"]) and any(_alike(found[id], run) for id in line["runs"]):
            return line["group"], i
    here = [
        i
        for i, line in enumerate(lines)
        if (line["benchmark"], line["scenario"]) == (run["benchmark"], run["scenario"])
    ]
    called = [i for i in here if lines[i]["label"] == new["label"]]
    told = {name for i in called for name in lines[i].get("set") or {} if len(called) > 1}
    differ = {i: _differences(lines[i], run, found, told) for i in called}
    same = next((i for i in called if not differ[i] and i not in taken), None)
    if called and same is None:
        what = ", ".join(differ[called[0]]) or "hyper-parameters, of which the store has several"
        raise InputError(
            f"{run['id']} is not of the archive's line {lines[called[0]]['group']}, {new['label']}: they differ in"
            f" {what}; publish it by itself, with --label NAME"
        )
    return lines[(called or here)[0]]["group"] if here else new["group"], same


def _differences(line: Line, run: Mapping[str, Any], found: Mapping[str, Any], told: set[str]) -> list[str]:
    """In what a run differs from a line's runs, or from what is set for it where it has none. Another device or
    precision is no difference, and of hyper-parameters only those count that tell lines of one name from each other."""
    ours, planned = run["config"], line["settings"] | {"hyper": line.get("set") or {}}
    theirs = found[line["runs"][0]]["config"] if line["runs"] else planned
    usual = method(line["method"]).Hyper() if line["method"] in METHODS else None
    pairs = [
        *(
            (name, ours[name], theirs[name])
            for name in theirs.keys() & ours.keys() - {"seed", "hyper", "device", "precision"}
        ),
        *((name, ours["hyper"].get(name), theirs["hyper"].get(name, getattr(usual, name, None))) for name in told),
    ]
    return [f"{name} ({value}; there {other})" for name, value, other in sorted(pairs, key=str) if value != other]


def _same(lines: Sequence[Line], new: Line, told: Sequence[str]) -> int | None:
    """Where the line is that it is: of its name, and alike in what is told. Lines of a plan differ in their settings,
    as in the memory along an axis. A line that is alone with its name, there and in its store, stays it when other
    values are set for it."""
    told = [*told, "set"] if _shared(lines, new) else told
    same = (i for i in _named(lines, new) if all((lines[i].get(key) or {}) == (new.get(key) or {}) for key in told))
    return next(same, None)


def _shared(lines: Sequence[Line], new: Line) -> bool:
    return len(_named(lines, new)) > 1


def _named(lines: Sequence[Line], new: Line) -> list[int]:
    return [i for i, line in enumerate(lines) if (line["group"], line["label"]) == (new["group"], new["label"])]


def _place(lines: list[Line], new: Line, same: int | None, found: Mapping[str, Any], told: Sequence[str] = ()) -> None:
    """Into the line that it is, which then says of `told` what it says, else after the last one of its group."""
    if same is not None:
        before = lines[same]
        had = [run for run in before["runs"] if run in found and _alike(found[run], found[new["runs"][0]])]
        both = [found[run] for run in dict.fromkeys([*had, *new["runs"]])]
        left_out = {result["id"] for result in latest(both)[1]}
        kept = [result["id"] for result in both if result["id"] not in left_out]
        said = {key: new[key] for key in told}
        lines[same] = {**before, **said, "seeds": max(before["seeds"], new["seeds"]), "runs": kept}
        return
    last = max((i for i, line in enumerate(lines) if line["group"] == new["group"]), default=len(lines) - 1)
    lines.insert(last + 1, new)


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two runs differ in their seed alone. A hyper-parameter younger than a run had its default there."""
    usual = method(one["method"]).Hyper() if one["method"] in METHODS else None
    ours, theirs = one["config"]["hyper"], other["config"]["hyper"]
    defaults = {name: getattr(usual, name, None) for name in ours.keys() | theirs.keys()}
    if defaults | ours != defaults | theirs:
        return False
    first, second = ({**run["config"], "seed": 0, "hyper": 0} for run in (one, other))
    return all(first[name] == second[name] for name in first.keys() & second.keys())


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("archive", type=Path)
    parser.add_argument("stores", type=Path, nargs="+", metavar="store")
    parser.add_argument("--label", default="")
    parser.add_argument("--known", action="store_true", help="leave out lines that the archive does not have")
    parser.add_argument("--suite", default="", help="begin its archive, where there is none")
    asked = parser.parse_args(words)
    try:
        if asked.suite:
            begin(asked.archive, asked.suite)
        for one in asked.stores:
            if asked.archive.suffix == ".jsonl":
                print(f"{one}: {publish_trials(asked.archive, one)} trials")
            else:
                print(f"{one}: {publish(asked.archive, one, asked.label, asked.known)} runs")
    except UserError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
