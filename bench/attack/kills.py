"""SIGKILL at any time of `bcl run` and `bcl suite run`; then the same command again, until it is done.

The result must be that of the uninterrupted run bit for bit, and a result that was there before must stay as it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from attack import Tried
from attack.children import Said, ask, generator
from attack.stores import Figures, figures, kept, small_run, small_suite, suite_text, wrong_runs, wrong_store
from bcl.learners import METHODS
from bcl.runs.result import read_result

AT_MOST = 4  # kills of one run before it is let go on to its end
CHANGES = 60  # of files, that a small run makes at most
SHARE_OF_WORKERS = 0.03  # of all rounds: they start processes of their own, which takes seconds


@dataclass
class Command:
    """A command, what it comes to when nothing happens, and how long that takes."""

    words: list[str]
    expected: dict[str, Figures] = field(default_factory=dict)
    seconds: float = 0.0

    def learn(self, where: Path) -> None:
        said = ask(self.words, where)
        if problem := said.problem(0):
            raise SystemExit(f"bcl {' '.join(self.words)}, left alone, {problem}")
        results = [read_result(path) for path in (where / "store").glob("*/result.json")]
        self.expected = {result["id"]: figures(result) for result in results}
        self.seconds = said.seconds
        shutil.rmtree(where / "store")


def kills(count: int, seed: int, where: Path) -> Tried:
    draw = generator(seed, "kills")
    (where / "small.yaml").write_text(suite_text(["finetune", "er"], 1))
    runs = [Command(small_run(method, number)) for number, method in enumerate(METHODS)]
    runs += [
        Command(small_run("er", 0, "store", "--set", f"memory={kind}")) for kind in ("reservoir", "balanced", "dynamic")
    ]
    suite, crew = Command(small_suite("small.yaml")), Command(small_suite("small.yaml", workers=2))
    done = 0
    while done < count:
        command = crew if draw.random() < SHARE_OF_WORKERS else draw.choice([*runs, suite])
        if not command.expected:
            command.learn(where)
        for killed, problem in _round(command, where, draw.randint(1, min(AT_MOST, count - done)), draw):
            done += killed
            if killed or problem:
                yield f"bcl {' '.join(command.words)}", problem
        shutil.rmtree(where / "store", ignore_errors=True)


def _round(command: Command, where: Path, times: int, draw: Random) -> Iterator[tuple[bool, str]]:
    """Kill a command some times, and let it end: whether it was killed, and what is wrong (with the last kill)."""
    struck, problem = 0, ""
    for _ in range(times):
        before = kept(where / "store")
        said = _strike(command, where, draw)
        struck += said.killed
        problem = problem or ("" if said.killed else said.problem(0))
        problem = problem or _lost(before, where / "store")
    before = kept(where / "store")
    said = ask(command.words, where)
    problem = problem or said.problem(0) or wrong_runs(said.out, command.expected)
    problem = problem or _lost(before, where / "store") or wrong_store(where / "store", command.expected)
    for number in range(struck):
        yield True, problem if number == struck - 1 else ""
    if not struck:
        yield False, problem


def _strike(command: Command, where: Path, draw: Random) -> Said:
    if "2" in command.words or draw.random() < 0.5:
        return ask(command.words, where, after=draw.uniform(0.0, command.seconds), whole=draw.random() < 0.5)
    return ask(command.words, where, at=draw.randint(1, CHANGES))


def _lost(before: dict[str, bytes], store: Path) -> str:
    after = kept(store)
    changed = [id for id, content in before.items() if after.get(id) != content]
    return f"the result of {changed[0]} was lost or changed" if changed else ""
