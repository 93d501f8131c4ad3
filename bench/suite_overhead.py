"""What a suite costs beyond its runs: its wall time over the sum of its runs' own times divided by the workers.

    python bench/suite_overhead.py [--suite digits] [--seeds 3] [--workers 2] [--engine local]

The suite is run as a user would run it, in a process of its own, into an empty store: start-up of the interpreter and
of the workers, loading, building, writing results and the idle end of the last worker all count. The target is 1.15.
Other work on the machine slows runs and suite alike, and the ratio little.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="digits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engine", default="local")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--seeds", chosen.seeds, "--workers", chosen.workers, "--engine", chosen.engine, "--device", "cpu"]
        words = [sys.executable, "-m", "bcl", "suite", "run", chosen.suite, "--out", folder, *map(str, options)]
        start, load = time.monotonic(), os.getloadavg()[0]
        done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        wall = time.monotonic() - start
        if done.returncode:
            sys.exit(done.stderr)
        results = [json.loads(path.read_text()) for path in Path(folder).glob("*/result.json")]
    own = sum(result["seconds"] for result in results)
    print(f"suite            {chosen.suite}, {chosen.seeds} seeds, engine {chosen.engine}, {chosen.workers} workers")
    print(f"machine          {results[0]['hardware']}, {os.cpu_count()} cores, load {load:.1f} before")
    print(f"runs             {len(results)}, {own:.1f} s of their own, {own / chosen.workers:.1f} s per worker")
    print(f"wall             {wall:.1f} s")
    print(f"overhead         {wall / (own / chosen.workers):.3f}  (target: at most 1.15)")


if __name__ == "__main__":
    main()
