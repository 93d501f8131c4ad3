"""Files of another run, learner or data set in the place of ours: whole, readable, and not ours."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import bcl
from attack import Tried
from attack.children import ask, generator
from attack.material import Material, learner, material
from attack.stores import small_run

OTHERS = (("bcl-dual", 1, ()), ("bcl-single", 0, ()), ("bcl-dual", 0, ("--set", "inner_lr=0.02")), ("er", 0, ()))
IN_A_RUN = ("result.json", "accuracy.csv", "log.jsonl", "config.yaml", "weights.safetensors")
Swap = Callable[[Material, Path, Random], tuple[Path, str]]  # puts a foreign file; gives its path, and what was done


def foreign(count: int, seed: int, where: Path) -> Tried:
    files, draw = material(where), generator(seed, "foreign")
    others = where / "others"
    others.mkdir()
    for number, (method, run_seed, more) in enumerate(OTHERS):
        words = small_run(method, run_seed, str(number), *more)
        for at in range(30, 1, -1):  # leave it in the middle, with a checkpoint
            ask(words, others, at=at)
            if list(others.glob(f"{number}/*/checkpoint.safetensors")):
                break
            shutil.rmtree(others / str(number), ignore_errors=True)
    for number, hyper in enumerate(({"lr": 0.7}, {"replay_batch": 3}, {"memory": "reservoir"})):
        bcl.save(learner(**hyper), others / f"{number}.safetensors")
    swaps: tuple[Swap, ...] = (
        checkpoint,
        checkpoint,
        file_of_a_run,
        file_of_a_run,
        whole_run,
        learner_file,
        array,
        record,
    )
    for _ in range(count):
        path, what = draw.choice(swaps)(files, others, draw)
        problem = files.judge(path)
        files.restore()
        yield what, problem


def checkpoint(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    (ours,) = files.files("stopped/*/checkpoint.safetensors")
    theirs = draw.choice(sorted(others.glob("*/*/checkpoint.safetensors")))
    shutil.copyfile(theirs, ours)
    return ours, f"the checkpoint of {theirs.parent.name} for that of {ours.parent.name}"


def file_of_a_run(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    del others
    name = draw.choice(IN_A_RUN)
    ours, theirs = draw.sample(files.files(f"store/*/{name}"), 2)
    shutil.copyfile(theirs, ours)
    return ours, f"{name} of {theirs.parent.name} for that of {ours.parent.name}"


def whole_run(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    """All files of another run, under our name."""
    del others
    ours, theirs = draw.sample([path.parent for path in files.files("store/*/result.json")], 2)
    shutil.rmtree(ours)
    shutil.copytree(theirs, ours)
    return ours / "result.json", f"the whole of {theirs.name} for {ours.name}"


def learner_file(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    ours = files.work / "learner.safetensors"
    theirs = draw.choice(sorted([*others.glob("*.safetensors"), *others.glob("*/*/checkpoint.safetensors")]))
    shutil.copyfile(theirs, ours)
    return ours, f"{theirs.relative_to(others)} for a saved learner"


def array(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    """Another array of the cache, or the manifest of another entry."""
    del others
    ours, theirs = draw.sample(files.files("data/own/*/*.npy"), 2)
    shutil.copyfile(theirs, ours)
    return ours, f"{theirs.name} for {ours.name} in the cache"


def record(files: Material, others: Path, draw: Random) -> tuple[Path, str]:
    """The record of another suite: with other labels and other settings, or of other runs."""
    del others
    ours = files.work / draw.choice(["store", "archive"]) / "suite.yaml"
    text = ours.read_text()
    old, new = draw.choice([("label: er", "label: ours"), ("memory: 10", "memory: 99"), ("title: A", "title: B")])
    ours.write_text(text.replace(old, new))
    return ours, f"a record with '{new}' for '{old}' in {ours.parent.name}"
