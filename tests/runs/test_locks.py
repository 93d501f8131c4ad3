"""A lock is held by a living process, and by one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from bcl.runs import locks
from bcl.runs.locks import Busy, Lock, is_held


def holder(directory: Path) -> dict[str, Any]:
    """Who holds the lock, as its file says."""
    return dict(json.loads((directory / "lock").read_text()))


HOLD = "import sys, time; from pathlib import Path; from bcl.runs.locks import Lock; "
HOLD += "Lock.acquire(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"


def test_one_at_a_time(tmp_path: Path) -> None:
    with Lock.acquire(tmp_path):
        assert is_held(tmp_path)
        assert holder(tmp_path)["pid"] == os.getpid()
        with pytest.raises(Busy):
            Lock.acquire(tmp_path)
    assert not is_held(tmp_path)
    assert list(tmp_path.iterdir()) == []
    Lock.acquire(tmp_path).release()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert is_held(tmp_path)
    with pytest.raises(Busy):
        Lock.acquire(tmp_path)
    process.kill()
    process.wait()
    assert (tmp_path / "lock").exists(), "the file is left behind"
    assert not is_held(tmp_path), "the lock is not"
    with Lock.acquire(tmp_path):
        assert holder(tmp_path)["pid"] == os.getpid()


def test_removing_the_file_lets_nobody_in_beside_the_holder(tmp_path: Path) -> None:
    """Holders remove the file when they leave: one who opened it before that must not think it is theirs."""
    inside, entered, mixed = [0], [0], []

    def work() -> None:
        for _ in range(300):
            try:
                with Lock.acquire(tmp_path):
                    inside[0] += 1
                    if inside[0] != 1:
                        mixed.append(inside[0])
                    entered[0] += 1
                    inside[0] -= 1
            except Busy:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not mixed
    assert entered[0] > 10


def test_a_file_that_is_removed_while_we_wait_for_it_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last holder removes it between our opening and our locking it: we would hold a lock that nobody sees."""
    take, calls = locks._take, []

    def late(handle: int) -> bool:
        if not calls:
            (tmp_path / "lock").unlink()
        calls.append(handle)
        return take(handle)

    monkeypatch.setattr(locks, "_take", late)
    with Lock.acquire(tmp_path):
        assert len(calls) == 2
        assert is_held(tmp_path)
        with pytest.raises(Busy):
            Lock.acquire(tmp_path)
