"""A small share of bench/faults.py: every kind of fault, a few times."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARE = {"kills": 3, "corruptions": 2, "digits": 2, "foreign": 2, "fuzz": 100, "races": 10, "soak": 3}


@pytest.mark.skipif(not hasattr(sys, "addaudithook") or not Path("/proc").exists(), reason="needs fork and /proc")
def test_a_share_of_the_attack_is_survived() -> None:
    words = [word for kind, count in SHARE.items() for word in (f"--{kind}", str(count))]
    command = [sys.executable, str(ROOT / "bench" / "faults.py"), "--seed", "7", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=ROOT)
    found = re.findall(r"^(\w+) +([\d,]+) +([\d,]+) +\d+$", done.stdout, re.MULTILINE)
    assert found == [(kind, str(count), str(count)) for kind, count in SHARE.items()], done.stdout + done.stderr
    assert done.returncode == 0
