"""Saving is whole or not at all; what is damaged is refused, and nothing is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch

import bcl
from bcl.engine import digest, read, write_atomically
from bcl.errors import DamagedFileError, InputError, MissingDataError, StorageError


def learner(tasks: int = 3, **hyper: float) -> bcl.Learner:
    setting = bcl.Setting.domain(tasks, 4, (6,), memory=5)
    torch.manual_seed(0)
    return bcl.ER(torch.nn.Linear(6, 4), setting, **hyper)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "learner.safetensors"
    bcl.save(learner(), path, {"note": "a"})
    return path


def test_round_trip(saved: Path) -> None:
    other = learner()
    with torch.no_grad():
        other.net.weight.zero_()
    assert bcl.load(other, saved) == {"note": "a"}
    assert digest(other.state_dict()) == digest(learner().state_dict())


@pytest.mark.parametrize("where", [0, 9, 200, -1])
def test_a_flipped_byte_is_noticed(saved: Path, where: int) -> None:
    data = bytearray(saved.read_bytes())
    data[where] ^= 0xFF
    saved.write_bytes(bytes(data))
    with pytest.raises(DamagedFileError, match="damaged"):
        read(saved)


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_truncated_file_is_noticed_and_the_learner_is_untouched(saved: Path, length: int) -> None:
    saved.write_bytes(saved.read_bytes()[:length])
    other = learner()
    before = digest(other.state_dict())
    with pytest.raises(DamagedFileError):
        bcl.load(other, saved)
    assert digest(other.state_dict()) == before


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="does not exist"):
        read(tmp_path / "nothing")


def test_another_learner_is_refused(saved: Path) -> None:
    other = learner(tasks=4)
    before = digest(other.state_dict())
    with pytest.raises(InputError, match="another learner"):
        bcl.load(other, saved)
    assert digest(other.state_dict()) == before


def test_a_full_disk_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_atomically(saved, b"new")
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == [saved.name], "no temporary file is left"
