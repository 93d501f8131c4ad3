"""Strange words on the command line: one line and exit code 2, help, or the command does what it says."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

COMMANDS = (
    ["list"],
    ["list", "methods"],
    ["run", "split-digits", "finetune"],
    ["suite", "show", "digits"],
    ["suite", "show", "own.yaml"],
    ["suite", "run", "own.yaml"],
    ["tune", "split-digits", "finetune", "--trials", "1", "--seeds", "1"],
    ["report", "store"],
    ["report", "nowhere", "--json"],
    ["data", "status"],
    ["data", "verify"],
    ["data", "import", "mnist", "."],
    ["check", "finetune"],
    ["speed", "finetune"],
    ["run", "npz:x.npz", "er"],
    ["run", "folder:.", "er"],
)
SMALL = {"run": ["--tasks", "2", "--samples", "10", "--workers", "1", "--device", "cpu", "--seeds", "1"]}
OPTIONS = (
    *(
        "--seeds",
        "--seed",
        "--tasks",
        "--samples",
        "--memory",
        "--set",
        "--scenario",
        "--device",
        "--net",
        "--out",
        "--json",
    ),
    *("--workers", "--precision", "--save-every", "--fresh", "--stop-diverged", "--engine", "--address", "--log", "-o"),
    *(
        "--help",
        "--version",
        "--trials",
        "--grid",
        "--search",
        "--finalists",
        "--save",
        "--tables",
        "--figures",
        "--archive",
    ),
)
VALUES = (
    *("", " ", "-", "--", "0", "-1", "1", "2.5", "1e9", "1000000000", "99999999999999999999", "nan", "inf", "²", "٣"),
    *(
        "task",
        "class",
        "er",
        "lr=0.1",
        "lr=nan",
        "lr=",
        "=",
        "lr",
        "memory=ring",
        "x" * 5000,
        "\udcff",
        "a\nb",
        "\x1b[31m",
    ),
    *(
        "pipe",
        "pipe/x",
        "/proc/nothing",
        "../..",
        "no:thing",
        "os:getcwd",
        "json:loads",
        "cpu",
        "cuda",
        "{}",
        "[1]",
    ),
    *("%s%n", "$(id)", "; ls", "'", '"', "\\", "\0", "🦊", "ray", "fp32", "bf16", "grid", "optuna", "tensorboard"),
)


def case(draw: Random, where: Path) -> tuple[str, Callable[[], str | None]]:
    words = list(draw.choice(COMMANDS))
    for _ in range(draw.choice([1, 1, 2, 3])):
        how = draw.random()
        if how < 0.6:
            words += [draw.choice(OPTIONS), draw.choice(VALUES)]
        elif how < 0.75:
            words.append(draw.choice([*OPTIONS, *VALUES]))
        elif how < 0.9 and words:
            words[draw.randrange(len(words))] = draw.choice(VALUES)
        elif words:
            del words[draw.randrange(len(words))]
    words = [*words[:1], *SMALL.get("".join(words[:1]), []), *words[1:]]
    return f"words {words!r:.400}", lambda: _given(words, where)


def _given(words: list[str], where: Path) -> str | None:
    from bcl.cli import main

    place = where / "words"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "own.yaml").write_text(
        "{seeds: 1, runs: [{benchmark: split-digits, method: finetune, tasks: 2, samples: 10}]}"
    )
    os.mkfifo(place / "pipe")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(place), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(words))
    if code not in (0, 1, 2):
        return f"exit code {code}: {err.getvalue()[-300:]}"
    said = [line for line in err.getvalue().splitlines() if line.startswith("bcl: ")]
    if code == 2 and not said and "Usage" not in err.getvalue():
        return f"exit code 2 and no line: {err.getvalue()[-300:]!r}"
    return "more than one line" if code == 2 and len(said) > 1 else None
