"""Peak memory of a Split CIFAR-100 run on the CPU, and of importing miniImageNet.

    python bench/memory.py                      # the run; needs CIFAR-100 in the cache
    python bench/memory.py MINIIMAGENET         # and the import of a copy of miniImageNet into a cache of its own

The record is bench/records/memory.txt. A command runs as a user would run it, in a child process; twenty times a second
the memory of the child and of all processes below it is read from /proc. PSS counts a page that several processes share
once; RSS counts it for each of them, and counts file pages, which the kernel takes back when it needs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMITS = {"split-cifar100 run": 1.5, "miniImageNet import": 2.0}  # GiB


def tree(process: int) -> list[int]:
    """A process and all below it."""
    found = [process]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def memory(process: int) -> tuple[int, int]:
    """PSS and RSS in KiB; zero for a process that has just ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        values = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:] if line.endswith("kB")}
        return values["Pss"], values["Rss"]
    except (OSError, KeyError):
        return 0, 0


def peak(command: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Peak of all processes together (PSS) and of the largest (RSS), in GiB, and seconds."""
    start = time.monotonic()
    child = subprocess.Popen(command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    together = largest = 0
    while child.poll() is None:
        each = [memory(process) for process in tree(child.pid)]
        together = max(together, sum(pss for pss, _ in each))
        largest = max(largest, *(rss for _, rss in each))
        time.sleep(0.05)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {child.returncode}")
    return together / 2**20, largest / 2**20, time.monotonic() - start


def main(arguments: list[str]) -> None:
    bcl = [sys.executable, "-m", "bcl"]
    with tempfile.TemporaryDirectory() as folder:
        run = [
            "run",
            "split-cifar100",
            "bcl-dual",
            "--seed",
            "0",
            "--tasks",
            "4",
            "--samples",
            "250",
            "--device",
            "cpu",
        ]
        jobs = [("split-cifar100 run", [*bcl, *run, "--out", f"{folder}/runs"], {})]
        if arguments:
            words = ["data", "import", "miniimagenet", arguments[0]]
            jobs.append(("miniImageNet import", [*bcl, *words], {"BCL_DATA": f"{folder}/cache"}))
        for name, command, environment in jobs:
            together, largest, seconds = peak(command, environment)
            verdict = "under" if together < LIMITS[name] else "OVER"
            print(
                f"{name}: {together:.2f} GiB for all processes (PSS), largest {largest:.2f} GiB (RSS), {seconds:.0f} s"
            )
            print(f"    {verdict} the limit of {LIMITS[name]} GiB; bcl {' '.join([*command[3:-2], '...'])}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
