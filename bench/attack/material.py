"""What the files that are damaged belong to: a store with a suite, a stopped run, an archive, a cache, a saved learner.

They lie in `where/work`, are copied to `where/whole`, and are put back from there before every fault.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import bcl
from attack.children import Said, ask, fork
from attack.stores import Figures, figures, small_run, small_suite, suite_text, wrong_runs
from bcl.engine.checkpoint import digest
from bcl.errors import DamagedFileError, UserError
from bcl.runs.config import RunConfig
from bcl.runs.result import read_result
from bcl.runs.store import RunStore

FRESH = "--fresh"


@functools.cache
def material(where: Path) -> Material:
    """One for all kinds of faults in a directory."""
    return Material(where)


class Material:
    """Small runs of every kind of file, and whether what is made of them is right."""

    def __init__(self, where: Path):
        self.work, self.whole = where / "work", where / "whole"
        self.work.mkdir()
        self.data = self.work / "data"
        (self.work / "small.yaml").write_text(suite_text(["er"], 2, axis="memory"))
        self._well(small_suite("small.yaml"))
        self._well(["report", "store", "--archive", "archive"])
        self._stop(small_run("bcl-dual", 0, "stopped"))
        self._well(small_run("bcl-dual", 0, "ended"))
        own_data(self.work / "own.npz")
        self._well(self._own())
        bcl.save(learner(), self.work / "learner.safetensors")
        self.answers = learner().predict(_questions()).tolist()
        stores = ("store", "ended", "own")
        self.expected = {store: _figures(self.work / store) for store in stores}
        self.table = self._read("store")["table"]
        shutil.copytree(self.work, self.whole)

    def restore(self) -> None:
        shutil.rmtree(self.work)
        shutil.copytree(self.whole, self.work)

    def files(self, *patterns: str) -> list[Path]:
        return sorted(path for pattern in patterns for path in self.work.glob(pattern) if path.is_file())

    def judge(self, changed: Path) -> str:
        """What is wrong, after a file has changed."""
        place = changed.relative_to(self.work).parts[0]
        judges: dict[str, Callable[[Path], str]] = {
            **{"store": self._store, "archive": self._archive, "stopped": self._stopped, "data": self._own_data},
            **{"own.npz": self._own_data, "learner.safetensors": self._learner},
        }
        return judges[place](changed)

    def _store(self, changed: Path) -> str:
        read = self._read("store")
        if "problem" in read:
            return str(read["problem"])
        if not read["problems"] and self._misleads(read["table"]):
            return "the table changes and nobody notices"
        if changed.parent.name in self.expected["store"] and self._altered(changed) and not read["problems"]:
            return "a readable file changes and nobody notices"
        said = ask(["report", "store", "--json"], self.work)
        problem = said.problem(0, 2) or (said.code == 0 and self._runs(said, "store", bool(read["problems"])))
        if problem:
            return f"report: {problem}"
        said = ask(small_suite("small.yaml"), self.work)
        return said.problem(0, 1) or self._runs(said, "store", said.code == 1)

    def _misleads(self, table: str) -> bool:
        """Whether a row is another one than it was, and does not say that seeds are missing."""
        true = list(csv.DictReader(io.StringIO(self.table)))
        rows = list(csv.DictReader(io.StringIO(table)))
        fewer = [row for row in rows if row not in true and int(row["seeds"]) < int(row["seeds_planned"])]
        names = [(row["group"], row["method"]) for row in true]
        return len(rows) != len(true) or any(
            row not in true and (row not in fewer or (row["group"], row["method"]) not in names) for row in rows
        )

    def _altered(self, changed: Path) -> bool:
        """Whether a file that people read is there and is not what it was."""
        if changed.suffix not in (".yaml", ".csv", ".jsonl", ".json") or not changed.exists():
            return False
        return changed.read_bytes() != (self.whole / changed.relative_to(self.work)).read_bytes()

    def _archive(self, _: Path) -> str:
        read = self._read("archive")
        if "problem" in read:
            return str(read["problem"])
        if not read["problems"] and self._misleads(read["table"]):
            return "the table of the archive changes and nobody notices"
        fewer = bool(read["problems"]) or read["table"] != self.table  # its rows say which seeds are missing
        said = ask(["report", "archive", "--json"], self.work)
        return said.problem(0, 2) or (self._runs(said, "store", fewer) if said.code == 0 else "")

    def _stopped(self, _: Path) -> str:
        words = small_run("bcl-dual", 0, "stopped")
        said = ask(words, self.work)
        if said.code == 1:
            if problem := said.problem(1):
                return problem
            said = ask([*words, FRESH], self.work)
        return said.problem(0) or self._runs(said, "ended", False)

    def _own_data(self, changed: Path) -> str:
        said = ask(self._own("again"), self.work, data=self.data)
        if problem := said.problem(0, 2):
            return problem
        if said.code == 2 or changed.name == "own.npz":  # other data are another run, under another name
            return self._runs(said, "own", True, others=True) if said.code == 0 else ""
        return self._runs(said, "own", False)

    def _learner(self, changed: Path) -> str:
        def work() -> int:
            fresh = learner(steps=1)
            before = digest(dict(fresh.state_dict()))
            try:
                bcl.load(fresh, changed)
            except UserError:
                return 0 if digest(dict(fresh.state_dict())) == before else 3
            return 0 if fresh.predict(_questions()).tolist() == self.answers else 4

        said = fork(work, self.work)
        ends = {0: "", 3: "the learner changed though the file was refused", 4: "a damaged learner was loaded"}
        return ends.get(said.code, f"ended with {said.code}: {said.err[-600:]}")

    def _own(self, out: str = "own") -> list[str]:
        words = ["run", "npz:own.npz", "er", "--seed", "0", "--memory", "5", "--device", "cpu", "--workers", "1"]
        return [*words, "--out", out, "--json"]

    def _well(self, words: list[str]) -> None:
        if problem := ask(words, self.work, data=self.data).problem(0):
            raise SystemExit(f"bcl {' '.join(words)}, left alone, {problem}")

    def _stop(self, words: list[str]) -> None:
        """Leave a run in the middle: before such a change of a file that a checkpoint waits and no result is there."""
        store = self.work / words[words.index("--out") + 1]
        for at in range(30, 1, -1):
            ask(words, self.work, at=at)
            if list(store.glob("*/checkpoint.safetensors")) and not list(store.glob("*/result.json")):
                return
            shutil.rmtree(store, ignore_errors=True)
        raise SystemExit("no run could be stopped in the middle")

    def _read(self, place: str) -> dict[str, Any]:
        """The table of a directory, what cannot be read there, and whether weights are refused or right."""

        def work() -> int:
            from bcl.report.read import read_study
            from bcl.report.sheet import csv as as_csv
            from bcl.report.tables import results_sheet

            try:
                study = read_study(self.work / place)
            except UserError as error:
                print(json.dumps({"table": "", "problems": [str(error)]}))
                return 0
            problems = [*study.problems, *_weights(self.work / place)]
            print(json.dumps({"table": as_csv(results_sheet(study)), "problems": problems}))
            return 0

        said = fork(work, self.work)
        return json.loads(said.out) if said.code == 0 else {"problem": f"reading: {said.problem(0)}"}

    def _runs(self, said: Said, store: str, missing_ok: bool, others: bool = False) -> str:
        if others:
            try:
                found = {run["id"]: figures(run) for run in json.loads(said.out)["runs"]}
            except (ValueError, KeyError, TypeError) as error:
                return f"it printed no results ({error!r})"
            expected = self.expected[store]
            return "wrong result" if any(expected.get(id, one) != one for id, one in found.items()) else ""
        return wrong_runs(said.out, self.expected[store], missing_ok)


def _weights(root: Path) -> list[str]:
    """What is refused of the weights of a store's complete runs."""
    store, problems = RunStore(root), []
    for path in sorted(root.glob("*/result.json")):
        try:
            store.weights(RunConfig.from_json(read_result(path)["config"]))
        except DamagedFileError as error:
            problems.append(str(error))
    return problems


def _figures(store: Path) -> dict[str, Figures]:
    return {path.parent.name: figures(read_result(path)) for path in store.glob("*/result.json")}


def own_data(path: Path) -> None:
    """A small file of one's own data."""
    draw = np.random.default_rng(0)
    y = np.tile([0, 1, 2, 3], 15)
    x = (draw.normal(size=(60, 6)) + y[:, None]).astype(np.float32)
    np.savez(path, x=x, y=y, task=y // 2, split=np.where(np.arange(60) % 3 == 2, "test", "train"))
    os.utime(path, ns=(10**18, 10**18))


def learner(steps: int = 6, **hyper: Any) -> bcl.Learner:
    """One with a batch norm and a memory, which has learnt a little."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    made = bcl.ER(net, bcl.Setting.split([[0, 1], [2, 3]], shape=(6,), scenario="class", memory=8), **hyper)
    for batch in range(steps):
        made.observe(*one_batch(batch))
    return made


def one_batch(number: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    draw, t = torch.Generator().manual_seed(number), number // 3 % 2
    y = torch.randint(2 * t, 2 * t + 2, (5,), generator=draw)
    return torch.randn(5, 6, generator=draw) + y[:, None], y, t


def _questions() -> torch.Tensor:
    return torch.randn(7, 6, generator=torch.Generator().manual_seed(99))
