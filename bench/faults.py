"""Attacks bcl and prints, for every kind of fault, how many were tried and how many survived.

python bench/faults.py                          # the whole attack, within 25 minutes on one core
python bench/faults.py --kills 50 --seed 3      # one kind; several options are several kinds

kills         SIGKILL at random times and places, then the same command again: the result is that of a quiet run
corruptions   bytes of results, checkpoints, caches, tables, logs, records and archives change, are cut off or swapped
digits        one digit of a readable file becomes another
foreign       another run's checkpoint, result, table or weights; another learner's file; another data set's arrays
fuzz          strange values for the API and the command line, and strange files of every format that is read
races         threads that learn, predict, save, load and copy at once, with a batch norm
soak          the same work again and again in one process: the same results, no more memory, files or threads

Survived: the right result, or one line that says what is wrong, with exit code 1 or 2. Everything else is listed, and
the exit code is 1.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

KINDS = {"kills": 300, "corruptions": 200, "digits": 100, "foreign": 100, "fuzz": 10_000, "races": 1000, "soak": 200}
HOMES = {"digits": "corruptions"}  # the module, where it has another name than the kind
SHOWN = 40  # problems of a kind that are listed


def main(words: list[str] | None = None) -> int:
    arguments = _parse(words)
    import torch

    torch.set_num_threads(1)
    given = {kind: vars(arguments)[kind] for kind in KINDS}
    asked = {kind: n for kind, n in given.items() if n is not None} or KINDS
    print(f"{'':12} {'tried':>7} {'survived':>9} {'seconds':>8}    seed {arguments.seed}", flush=True)
    faults = 0
    with tempfile.TemporaryDirectory(prefix="bcl-faults-") as where:
        for kind, count in asked.items():
            faults += _attack(kind, count, arguments.seed, Path(where))
    return int(faults > 0)


def _attack(kind: str, count: int, seed: int, where: Path) -> int:
    """Try one kind of fault; how many did not survive."""
    began, tried = time.monotonic(), 0
    faults: list[tuple[str, str]] = []
    attack = getattr(importlib.import_module(f"attack.{HOMES.get(kind, kind)}"), kind)
    for done, problem in attack(count, seed, where):
        tried += 1
        if problem:
            faults.append((problem, done))
    print(f"{kind:12} {tried:>7,} {tried - len(faults):>9,} {time.monotonic() - began:>8.0f}", flush=True)
    for problem, first in _distinct(faults)[:SHOWN]:
        print(f"  {problem}\n    {first}", flush=True)
    return len(faults)


def _distinct(faults: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Every problem once, the most frequent first, with the first fault that showed it."""
    counts = Counter(problem for problem, _ in faults)
    firsts = dict(reversed(faults))
    return [(f"{number} x {problem}", firsts[problem]) for problem, number in counts.most_common()]


def _parse(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind, count in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, metavar="N", help=f"only this kind, and others given so [{count}]")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


if __name__ == "__main__":
    warnings.simplefilter("error", RuntimeWarning)
    sys.exit(main())
