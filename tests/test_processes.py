"""What a process is told before it runs."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PAGES = """
import ctypes
import resource
import torch
from bcl.processes import keep_freed_memory

PR_SET_THP_DISABLE = 41
ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)  # else a few large pages may do

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def some():
    blocks = [torch.zeros(size << 18) for size in (3, 50, 7)]  # 60 MiB

for keep in (False, True):
    if keep:
        keep_freed_memory()
    for _ in range(3):
        some()
    before = faults()
    for _ in range(5):
        some()
    print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that is told to keep memory")
def test_a_process_that_keeps_its_memory_gets_no_new_pages() -> None:
    done = subprocess.run([sys.executable, "-c", PAGES], capture_output=True, text=True, check=True)
    given_back, kept = map(int, done.stdout.split())
    assert given_back > 5 * 50 * 2**20 // 65536, "else there is nothing to be gained"
    assert kept < given_back / 50
