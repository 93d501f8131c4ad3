"""Checks of kernels: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def interpreted(file: str, check: str, *args: int) -> None:
    """Call a function of a test file. The interpreter must be chosen before Triton is imported, hence a process."""
    here, name = Path(file).parent, Path(file).stem
    if DEVICE == "cuda":
        getattr(importlib.import_module(name), check)(*args)
        return
    paths = [str(here), str(Path(__file__).parent)]
    script = (
        f"import sys; sys.path[:0] = {paths!r}; import bounds; bounds.watch(); import {name}; {name}.{check}(*{args})"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
