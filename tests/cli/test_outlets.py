"""Standard output and error that are closed, full, or a pipe without a reader change nothing but what is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bcl.cli import main

if not Path("/dev/full").exists():
    pytest.skip("this system has no /dev/full", allow_module_level=True)

RUN = "run split-digits finetune --seed 0 --tasks 2 --samples 10 --device cpu --workers 1 --out {} --json"


def shell(line: str, where: Path) -> subprocess.CompletedProcess[str]:
    text = line.replace("bcl", f"{sys.executable} -m bcl", 1)
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=where, check=False)


@pytest.mark.parametrize("words", ["list", "--version"])
def test_a_full_standard_output_is_one_line(words: str, tmp_path: Path) -> None:
    done = shell(f"bcl {words} > /dev/full", tmp_path)
    assert done.returncode == 1
    assert done.stderr == "bcl: cannot write to standard output: No space left on device\n"


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    done = shell("bcl list | head -1; exit ${PIPESTATUS[0]}", tmp_path)
    assert done.returncode in (0, 1)
    assert done.stderr == ""


@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full"])
def test_without_standard_error_a_mistake_still_has_its_code(end: str, tmp_path: Path) -> None:
    done = shell(f"bcl lst {end}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("end", ["0<&- 2>&-", "2>/dev/full"])
def test_without_standard_error_a_run_is_done_and_its_json_alone(end: str, tmp_path: Path) -> None:
    done = shell(f"bcl {RUN.format('out')} {end}", tmp_path)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["runs"]) == 1


@pytest.mark.parametrize(("end", "code"), [("> /dev/full", 1), (">&-", 0)])
def test_without_standard_output_a_run_is_done_all_the_same(end: str, code: int, tmp_path: Path) -> None:
    done = shell(f"bcl {RUN.format('out')} {end}", tmp_path)
    assert done.returncode == code
    assert len(list(tmp_path.glob("out/*/result.json"))) == 1


def test_a_name_that_no_file_can_have_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / ("x" * 300))]) == 2
    assert capsys.readouterr().err.endswith(": File name too long\n")
