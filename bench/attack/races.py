"""Threads that share a learner with a batch norm: whatever they do at once, it is as if they took turns.

All learn from the same batch, so that the learner passes through the same states whoever is first: a prediction, a
saved file or a copy must be that of one of these states, and the last state must be the one after all batches.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

import bcl
from attack import Tried
from attack.children import generator
from attack.material import learner, one_batch
from bcl.engine.checkpoint import digest, read

CALLS = 3  # of each thread in a race
PATIENCE = 60.0
BATCH, QUESTIONS = one_batch(0), one_batch(1)[0]


@cache
def states(steps: int) -> tuple[list[str], list[str]]:
    """The digests of a learner after 0, 1, ... further batches, and of its answers."""
    made, whole, answers = learner(steps=1), [], []
    for step in range(steps + 1):
        if step:
            made.observe(*BATCH)
        whole.append(digest(dict(made.state_dict())))
        answers.append(digest({"answer": made.predict(QUESTIONS)}))
    return whole, answers


def races(count: int, seed: int, where: Path) -> Tried:
    draw = generator(seed, "races")
    jobs = ("observe", "observe", "predict", "predict", "save", "load", "state_dict", "deepcopy")
    for _ in range(count):
        crew = ["observe", *draw.choices(jobs, k=draw.choice([1, 2, 3]))]
        yield f"race {', '.join(crew)}", race(crew, where)


def race(crew: list[str], where: Path) -> str:
    """Let threads do these things at once; what went wrong."""
    made = learner(steps=1)
    whole, answers = states(CALLS * crew.count("observe"))
    problems: list[str] = []
    start = threading.Barrier(len(crew))

    def predict(name: str) -> None:
        if digest({"answer": made.predict(QUESTIONS)}) not in answers:
            problems.append(f"{name}: an answer of no state")

    def save(name: str) -> None:
        bcl.save(made, where / name)
        if digest(read(where / name)[0]) not in whole:
            problems.append(f"{name}: a file of no state")

    def load(name: str) -> None:
        """The state as it is, back into it: only the waiting is tried."""
        with made.lock:
            bcl.save(made, where / name)
            bcl.load(made, where / name)

    def shown(name: str) -> None:
        if {key: tensor.shape for key, tensor in made.state_dict().items()}.keys() != learner(0).state_dict().keys():
            problems.append(f"{name}: other names")

    def duplicate(name: str) -> None:
        if digest(dict(copy.deepcopy(made).state_dict())) not in whole:
            problems.append(f"{name}: a copy of no state")

    work: dict[str, Callable[[str], object]] = {
        **{"observe": lambda _: made.observe(*BATCH), "predict": predict, "save": save, "load": load},
        **{"state_dict": shown, "deepcopy": duplicate},
    }

    def thread(number: int, job: str) -> None:
        try:
            start.wait(PATIENCE)
            for _ in range(CALLS):
                work[job](f"{job}-{number}")
        except Exception as error:
            problems.append(f"{job}: {error!r}")

    threads = [threading.Thread(target=thread, args=pair, daemon=True) for pair in enumerate(crew)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(PATIENCE)
    if any(one.is_alive() for one in threads):
        return "threads wait for each other"
    if digest(dict(made.state_dict())) != whole[-1]:
        problems.append("another state than after all batches")
    if not made.training:
        problems.append("left in evaluation mode")
    return "; ".join(problems)


torch.set_num_threads(1)
