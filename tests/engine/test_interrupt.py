"""Ctrl-C leaves a run that can be resumed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_saves_and_resume_goes_on(tmp_path: Path, workers: str) -> None:
    words = ["run", "permuted-digits", "bcl-dual", "--seeds", "2", "--tasks", "4", "--workers", workers]
    command = [sys.executable, "-m", "bcl", *words, "--save-every", "0.2", "--out", str(tmp_path)]
    # A job in the background may have been started with interrupts ignored; a user at a terminal has not.
    child = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/checkpoint.safetensors")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err.splitlines()[-1] == "bcl: stopped; the same command with --resume goes on"
    assert "Traceback" not in err
    assert list(tmp_path.glob("*/checkpoint.safetensors"))
    done = subprocess.run([*command, "--resume", "--json"], capture_output=True, text=True, check=True)
    assert [run["seed"] for run in json.loads(done.stdout)["runs"]] == [0, 1]
