"""What a run has measured, as plain JSON. What is read is checked: a result belongs to its directory, is what was
written there, and its measures follow from its accuracy matrix."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from bcl.engine.checkpoint import write_atomically
from bcl.engine.position import Evaluation, LogEntry
from bcl.errors import DamagedFileError, MissingDataError
from bcl.metrics import all_metrics, continual_metrics, prequential_accuracy

ARCHIVE = "runs.jsonl"
TOLERANCE = 1e-6  # of a measure that is computed again


class _Required(TypedDict):
    """What every result has."""

    id: str  # the name of the run's directory
    benchmark: str
    scenario: str
    method: str
    seed: int
    acc: float
    fm: float | None
    la: float | None
    bwt: float | None
    fwt: float | None
    anytime: float | None
    accuracy_matrix: list[list[float]]  # a row after each task, a column per task
    before: list[float]  # accuracy on every task before anything was learnt
    steps: int
    seconds: float
    config: dict[str, Any]
    code: str  # digest of the code that computed it
    diverged: bool  # the weights are not finite at the end
    weights_sha256: str
    versions: dict[str, str]
    hardware: str
    finished: str  # UTC
    command: str  # runs it again
    checksum: str  # of all the rest


class Result(_Required, total=False):
    """One run; accuracies in percent. None: not defined where only the end was measured."""

    passes: dict[str, float] | None  # forward and backward, per arriving sample; older results have none
    stored_bytes: dict[str, int]  # beside the network: in memories, and in copies of the network; likewise
    time: dict[str, float]  # the seconds of every phase, and of making the learner; older results have none
    files: dict[str, str]  # SHA-256 of what people read beside it, by name; older results have none
    sources: dict[str, str]  # where hyper-parameters come from that are not the method's defaults; likewise
    chance: list[float]  # the accuracy of a guess on the tasks seen so far, after each task; likewise
    prequential: float  # accuracy on every mini-batch before it was learnt; where it was asked for
    prequential_windows: list[list[int]]  # [samples, right answers] of stretches of the stream
    evaluations: list[Evaluation]  # every few mini-batches, on the tasks seen so far; where it was asked for
    aaa: float  # these follow from the evaluations: see bcl/metrics.py
    min_acc: float | None
    wc_acc: float
    stability_gap: float | None


def checksum(result: Mapping[str, Any]) -> str:
    """SHA-256 of everything in a result but its checksum."""
    content = {key: value for key, value in result.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sealed(content: Mapping[str, Any]) -> Result:
    """A result with its checksum."""
    return cast(Result, {**content, "checksum": checksum(content)})


def read_result(path: Path) -> Result:
    """The result of a run's directory, checked; DamagedFileError says what is wrong with it and how to mend it."""
    try:
        return _parse(path.read_text(encoding="utf-8"), path.parent)
    except (OSError, ValueError) as error:
        raise DamagedFileError(f"{path} is damaged ({error}); delete {path.parent} and run again") from error


def write_archive(results: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Results in one file, a line each: to be kept, published and compared. `find_results` reads it."""
    lines = sorted((result["benchmark"], result["id"], json.dumps(result)) for result in results)
    write_atomically(path, "".join(f"{line}\n" for _, _, line in lines).encode())


def find_results(root: str | os.PathLike[str]) -> tuple[list[Result], list[str]]:
    """The results of all complete runs below a directory, and of its archives; a line for each that is damaged."""
    root = Path(root)
    if not root.is_dir():
        raise MissingDataError(f"{root} is not a directory; give one that `bcl run` or `bcl suite run` wrote")
    results, problems = [], []
    for path in sorted(path for path in root.rglob("result.json") if path.is_file()):
        try:
            results.append(read_result(path))
        except DamagedFileError as error:
            problems.append(str(error))
    for path in sorted(path for path in root.rglob(ARCHIVE) if path.is_file()):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines:
            problems.append(f"{path} is empty; get a fresh copy")
        for number, line in enumerate(lines, 1):
            try:
                results.append(_parse(line))
            except ValueError as error:
                problems.append(f"{path}, line {number}, is damaged ({error}); get a fresh copy")
    return results, problems


def log_lines(log: Iterable[LogEntry]) -> bytes:
    """log.jsonl: a line after each task."""
    return "".join(json.dumps(entry) + "\n" for entry in log).encode()


def matrix_table(matrix: Sequence[Sequence[float]], after: Iterable[int]) -> bytes:
    """accuracy.csv: the accuracy matrix, with the number of the task that each row was measured after."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["after_task", *(f"task_{j + 1}" for j in range(len(matrix[0])))])
    rows.writerows([task, *row] for task, row in zip(after, matrix, strict=True))
    return table.getvalue().encode()


def evaluations_table(evaluations: Iterable[Evaluation], tasks: int) -> bytes:
    """evaluations.csv: the accuracy on the tasks seen so far after so many mini-batches; empty: still to come."""
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["steps", *(f"task_{j + 1}" for j in range(tasks))])
    rows.writerows([one["steps"], *one["accuracy"], *[""] * (tasks - len(one["accuracy"]))] for one in evaluations)
    return table.getvalue().encode()


def _parse(text: str, directory: Path | None = None) -> Result:
    """A result from its text; a ValueError says what is wrong with it."""
    try:
        content = json.loads(text)
        _check(content)
        if directory is not None:
            if content["id"] != directory.name:
                raise ValueError(f"it is the result of {content['id']}")
            _check_beside(content, directory)
    except KeyError as error:
        raise ValueError(f"'{error.args[0]}' is missing") from error
    except (ValueError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    return cast(Result, content)


def _check(content: Any) -> None:
    """Raise a ValueError, or what follows from a strange structure, unless the content is a result."""
    if content["checksum"] != checksum(content):
        raise ValueError("its content does not match its checksum")
    for key in Result.__required_keys__ - content.keys():
        raise KeyError(key)
    matrix, before = content["accuracy_matrix"], content["before"]
    rows, columns = len(matrix), len(before)
    if {len(row) for row in matrix} != {columns} or not (rows in (1, columns) or content["diverged"]):
        raise ValueError("its accuracy matrix does not have a row and a column per task")
    if not all(0.0 <= value <= 100.0 for row in (*matrix, before) for value in row):  # False for NaN, too
        raise ValueError("an accuracy is not between 0 and 100")
    _check_metrics(content, all_metrics(matrix, before), "accuracy matrix")
    if "prequential" in content:
        _check_windows(content["prequential"], content["prequential_windows"])
    if "evaluations" in content:
        _check_evaluations(content, columns)


def _check_metrics(content: Any, found: Mapping[str, float | None], source: str) -> None:
    for name, value in found.items():
        stored = content[name]
        if value is None or stored is None:
            same = value is stored
        else:
            same = math.isclose(value, stored, rel_tol=0.0, abs_tol=TOLERANCE)
        if not same:
            raise ValueError(f"its {name} does not follow from its {source}")


def _check_evaluations(content: Any, tasks: int) -> None:
    steps = [one["steps"] for one in content["evaluations"]]
    rows = [one["accuracy"] for one in content["evaluations"]]
    in_order = all(type(step) is int for step in steps) and steps == sorted({*steps})
    if not in_order or any(len(row) > tasks for row in rows):
        raise ValueError("its evaluations are not one after another, of the tasks seen so far")
    if not all(0.0 <= value <= 100.0 for row in rows for value in row):
        raise ValueError("an accuracy of its evaluations is not between 0 and 100")
    _check_metrics(content, continual_metrics(rows), "evaluations")


def _check_windows(accuracy: float, windows: list[list[int]]) -> None:
    if not all(type(right) is type(samples) is int and 0 <= right <= samples for samples, right in windows):
        raise ValueError("its prequential windows are not numbers of samples and of right answers")
    found = prequential_accuracy(windows)
    if found is None or not math.isclose(found, accuracy, rel_tol=0.0, abs_tol=TOLERANCE):
        raise ValueError("its prequential accuracy does not follow from its windows")


def _check_beside(content: Result, directory: Path) -> None:
    """The files that people read, where they are there: what was written, and in accord with the matrix."""
    for name, digest in content.get("files", {}).items():
        path = directory / name
        if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise ValueError(f"{name} is not what was written beside it")
    matrix = content["accuracy_matrix"]
    log, table = directory / "log.jsonl", directory / "accuracy.csv"
    after = range(1, len(matrix) + 1) if len(matrix) > 1 else [len(matrix[0])]
    if log.exists():
        entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
        if [entry["accuracy"] for entry in entries] != matrix:
            raise ValueError("log.jsonl does not agree with its accuracy matrix")
        after = [entry["after_task"] for entry in entries]
    if table.exists() and table.read_bytes() != matrix_table(matrix, after):
        raise ValueError("accuracy.csv does not agree with its accuracy matrix")
