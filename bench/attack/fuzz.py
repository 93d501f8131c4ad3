"""Strange input everywhere: it is used, or refused with one line, and what it was given to is as it was."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from attack import Tried, fuzz_api, fuzz_files, fuzz_text, fuzz_words
from attack.children import fork, generator
from bcl.errors import UserError, first_line

CHUNK = 250  # inputs that one child is given
SECONDS = 20  # that one input may take
MEMORY = 8 << 30  # bytes that a child may use
Case = tuple[str, Callable[[], str | None]]  # what is given; gives it, and says what is wrong
SOURCES: tuple[tuple[Callable[[Random, Path], Case], int], ...] = (
    (fuzz_api.case, 45),
    (fuzz_files.case, 30),
    (fuzz_words.case, 15),
    (fuzz_text.case, 10),
)


def fuzz(count: int, seed: int, where: Path) -> Tried:
    for number, start in enumerate(range(0, count, CHUNK)):
        yield from _chunk(min(CHUNK, count - start), generator(seed, f"fuzz {number}"), where)


def _chunk(count: int, draw: Random, where: Path) -> Iterator[tuple[str, str]]:
    """Some inputs in a child: should it end with the process, the others are not lost."""
    place = where / "chunk"
    place.mkdir(exist_ok=True)
    log = where / "log.jsonl"
    log.write_text("")

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.environ["BCL_DATA"] = str(place / "cache")
        signal.signal(signal.SIGALRM, _too_long)
        with open(log, "a", buffering=1) as file:
            for _ in range(count):
                make = draw.choices([make for make, _ in SOURCES], [weight for _, weight in SOURCES])[0]
                what, give = make(draw, place)
                file.write(json.dumps([what, None]) + "\n")
                file.write(json.dumps([what, _outcome(give)]) + "\n")
        return 0

    said = fork(work, place)
    told = [json.loads(line) for line in log.read_text().splitlines()]
    ended = [(what, problem) for what, problem in told if problem is not None]
    yield from ended
    if said.code != 0:
        yield str(told[-1][0]) if told else "the first", f"the process ended with {said.code}: {said.err[-400:]}"


def _outcome(give: Callable[[], str | None]) -> str:
    signal.alarm(SECONDS)
    try:
        return give() or ""
    except UserError as error:
        text = str(error)
        return "" if text and "\n" not in text else f"not one line: {text[:300]!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {first_line(error)[:300]} {_place(error)}"
    finally:
        signal.alarm(0)
        with contextlib.suppress(OSError):
            os.chdir(".")


def _place(error: BaseException) -> str:
    """The innermost line of bcl that an error passed through."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/bcl/" in frame.filename]
    return f"[{Path(frames[-1].filename).name}:{frames[-1].lineno}]" if frames else ""


def _too_long(number: int, frame: object) -> None:
    del number, frame
    raise TimeoutError(f"it takes more than {SECONDS} seconds")
