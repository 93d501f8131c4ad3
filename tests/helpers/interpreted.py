"""Checks of kernels: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SERVER = """
import importlib, json, sys, traceback
import bounds, hasten, torch
bounds.watch()
hasten.hasten()
torch.set_num_threads(1)
answers, sys.stdout = sys.stdout, sys.stderr
for line in sys.stdin:
    folder, name, check, args = json.loads(line)
    sys.path[:0] = [folder] if folder not in sys.path else []
    try:
        getattr(importlib.import_module(name), check)(*args)
        said = ""
    except BaseException:
        said = traceback.format_exc()
    print(json.dumps(said), file=answers, flush=True)
"""


def interpreted(file: str, check: str, *args: int | str, always: bool = False) -> None:
    """Call a function of a test file. The interpreter must be chosen before Triton is imported, hence a process; one
    for all checks, as it takes longer to start than most of them. `always`: even where there is a GPU."""
    name = Path(file).stem
    if DEVICE == "cuda" and not always:
        getattr(importlib.import_module(name), check)(*args)
        return
    process = _server()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(Path(file).parent), name, check, args]) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        _server.cache_clear()
    assert answer, f"the interpreter ended with {process.wait()}"
    said = json.loads(answer)
    assert not said, said[-2000:]


@functools.cache
def _server() -> subprocess.Popen[str]:
    """It ends with us, when its input does."""
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    without_gpu = {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment = {**os.environ, **without_gpu, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-c", SERVER]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
