"""The service that lets processes share a GPU: begun and ended with the block, or left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bcl.schedule import mps


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """A program in the place of NVIDIA's that writes down how it was called."""
    log = folder / "calls"
    program = folder / mps.CONTROL
    program.write_text(f'#!/bin/sh\necho "$1$(cat) ${mps.PIPES}" >> {log}\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.delenv(mps.PIPES, raising=False)
    return log


def test_it_begins_and_ends_with_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, monkeypatch)
    places = []

    def use() -> None:
        with mps.shared_gpu() as shared:
            assert shared
            places.append(os.environ[mps.PIPES])
            assert Path(places[0]).is_dir()
            raise KeyError

    with pytest.raises(KeyError):
        use()
    (place,) = places
    assert log.read_text().splitlines() == [f"-d {place}", f"quit {place}"]
    assert mps.PIPES not in os.environ
    assert not Path(place).exists()


def test_where_it_cannot_begin_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, monkeypatch, code=1)
    with mps.shared_gpu() as shared:
        assert not shared
        assert mps.PIPES not in os.environ
    assert len(log.read_text().splitlines()) == 1


def test_one_that_runs_already_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = stand_in(tmp_path, monkeypatch)
    monkeypatch.setenv(mps.PIPES, "/theirs")
    with mps.shared_gpu() as shared:
        assert shared
    assert os.environ[mps.PIPES] == "/theirs"
    assert not log.exists()


def test_without_the_program_processes_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(mps.PIPES, raising=False)
    with mps.shared_gpu() as shared:
        assert not shared
