"""The service that lets processes share a GPU: begun by the first command, ended by the last, or left alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bcl.schedule import mps


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of NVIDIA's that writes down how it was called; `running` is there while it runs."""
    log, program, running = tmp_path / "calls", tmp_path / mps.CONTROL, tmp_path / "running"
    program.write_text(
        f"""#!/bin/sh
said="$1$(cat)"
echo "$said ${mps.PIPES}" >> {log}
test -e {tmp_path}/broken && exit 1
case "$said" in
    -d) test ! -e {running} && touch {running};;
    quit) rm {running};;
    *) test -e {running};;
esac
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(mps.PIPES, raising=False)
    monkeypatch.setattr(mps.tempfile, "gettempdir", lambda: str(tmp_path))
    return log


def said(log: Path) -> list[str]:
    return [line.split()[0] for line in log.read_text().splitlines()]


def test_it_begins_and_ends_with_the_block(calls: Path) -> None:
    def use() -> None:
        with mps.shared_gpu() as shared:
            assert shared
            assert Path(os.environ[mps.PIPES]).is_dir()
            assert os.environ[mps.PIPES] in calls.read_text()
            raise KeyError

    with pytest.raises(KeyError):
        use()
    assert said(calls) == ["get_server_list", "-d", "quit"]
    assert mps.PIPES not in os.environ


def test_one_that_a_killed_command_left_behind_is_used_again(calls: Path) -> None:
    folder = mps.place()
    assert folder is not None
    (calls.parent / "running").touch()
    (folder / "users" / "999999999").touch()  # no such process
    with mps.shared_gpu() as shared:
        assert shared
    assert said(calls) == ["get_server_list", "quit"]


def test_the_last_command_ends_it(calls: Path) -> None:
    folder = mps.place()
    assert folder is not None
    (folder / "users" / str(os.getppid())).touch()  # another command, which goes on
    with mps.shared_gpu() as shared:
        assert shared
    assert said(calls) == ["get_server_list", "-d"]


def test_a_directory_of_somebody_else_is_not_used(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"bcl-mps-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with mps.shared_gpu() as shared:
        assert not shared
    assert not calls.exists()


def test_where_it_cannot_begin_processes_take_turns(calls: Path) -> None:
    (calls.parent / "broken").touch()
    with mps.shared_gpu() as shared:
        assert not shared
        assert mps.PIPES not in os.environ


def test_one_that_the_user_runs_is_used(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mps.PIPES, "/theirs")
    with mps.shared_gpu() as shared:
        assert shared
    assert os.environ[mps.PIPES] == "/theirs"
    assert not calls.exists()


def test_without_the_program_processes_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(mps.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.delenv(mps.PIPES, raising=False)
    with mps.shared_gpu() as shared:
        assert not shared
