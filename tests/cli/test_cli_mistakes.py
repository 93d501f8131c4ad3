"""Mistakes and interruptions, as a user meets them: one line that helps, and nothing left behind."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from journals import journal
from PIL import Image
from same_process import Run, same_process

from bcl.__main__ import main as program
from bcl.cli import catalogue
from bcl.cli.main import _stopped, main
from bcl.data import decode
from bcl.runs.config import RunConfig

SMALL = ["--tasks", "2", "--samples", "20"]
NETS = """
from torch import nn

class Talks(nn.Flatten):
    def forward(self, x):
        print("a pass that talks")
        return super().forward(x)

def good(setting):
    print("a network that talks")
    return nn.Sequential(Talks(), nn.Linear(64, setting.n_classes))

def narrow(setting):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 1))

def frozen(setting):
    return good(setting).requires_grad_(False)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some_nets.py").write_text(NETS)
    return tmp_path


def run_apart(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bcl", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def run(here: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with same_process(capfd) as found:
        yield found


@pytest.mark.parametrize("words", [[], ["data"], ["suite"]])
def test_a_command_without_words_shows_its_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    err = capsys.readouterr().err
    assert len(err.splitlines()) > 8
    assert err.startswith("Usage: bcl")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "split-digits", "er", "--net", "some_nets:narrow"], "logits"),
        (["run", "split-digits", "er", "--net", "some_nets:frozen"], "no parameter that can be trained"),
        (["run", "split-digits", "er", "--net", "os:getcwd"], "no Python source"),
        (["run", "split-digits", "icarl", "--net", "some_nets:good"], "features"),
        (["run", "split-digits", "bcl-single", "--set", "hypergradient=exact"], "generalization memory"),
        (["run", "split-digits", "er", "--seed", str(2**64)], "2^63"),
        (["run", "split-digits", "er", "--memory", str(10**15)], "cannot be made"),
        (["run", "split-digits", "er", "--save-every", "-1"], "--save-every"),
        (["run", "split-digits", "er", "--save-every", "nan"], "--save-every"),
        (["run", "split-digits", "bcl-dual", "er", "--set", "inner_lr=0.1"], "er: unknown hyper-parameter"),
        (
            ["run", "split-digits", "er", "--set", "lr=0.1", "--set", "lr=0.2"],
            "--set says lr twice, 0.1 and 0.2",
        ),
        (["suite", "run", "digits", "--save-every", "nan"], "--save-every"),
        (["tune", "split-digits", "no-such-method"], "unknown method"),
        (["tune", "split-digits", "er", "--save", "."], "is a directory"),
        (["tune", "split-digits", "er", "--save", os.devnull], "--save takes a file"),
        (["tune", "split-digits", "er", "--workers", "0"], "at least 1"),
    ],
)
def test_a_mistake_is_one_line_and_leaves_nothing(here: Path, run: Run, words: list[str], said: str) -> None:
    done = run(*words, "--out", "store")
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (here / "store").exists()


@pytest.mark.parametrize("content", ["split-digits: 3", "split-digits: {task: {er: 3}}", "[1, 2]"])
def test_chosen_hyper_parameters_that_are_none(here: Path, run: Run, content: str) -> None:
    (here / "runs").mkdir()
    (here / "runs" / "hyper.yaml").write_text(content)
    done = run("run", "split-digits", "er", "--seed", "0", *SMALL)
    assert done.returncode == 2
    assert "runs/hyper.yaml" in done.stderr
    assert len(done.stderr.splitlines()) == 1


TALKING = "{seeds: 2, runs: [{benchmark: split-digits, method: er, tasks: 2, samples: 20, net: 'some_nets:good'}]}"


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("command", ["run", "suite"])
def test_json_is_alone_even_where_a_network_talks(here: Path, run: Run, command: str, workers: str) -> None:
    (here / "talking.yaml").write_text(TALKING)
    words = {
        "run": ["run", "split-digits", "er", *SMALL, "--net", "some_nets:good", "--seeds", "2"],
        "suite": ["suite", "run", "talking.yaml"],
    }
    done = (run if workers == "1" else run_apart)(*words[command], "--workers", workers, "--device", "cpu", "--json")
    assert len(json.loads(done.stdout)["runs"]) == 2
    assert "a network that talks" in done.stderr
    assert "a pass that talks" in done.stderr


def test_a_run_that_diverged_says_so(run: Run) -> None:
    done = run("run", "split-digits", "er", "--seed", "0", *SMALL, "--set", "lr=1e30", "--json")
    assert json.loads(done.stdout)["runs"][0]["diverged"] is True
    assert "er seed 0 diverged" in done.stderr
    done = run("run", "split-digits", "er", "--seed", "0", *SMALL, "--json")
    assert json.loads(done.stdout)["runs"][0]["diverged"] is False
    assert "diverged" not in done.stderr


@pytest.mark.usefixtures("here")
def test_ctrl_c_while_workers_start_is_one_line() -> None:
    err = interrupted("run", "permuted-digits", "er", "--seeds", "2", "--workers", "2")
    assert err.splitlines()[-1] == "bcl: stopped; the same command goes on"


def test_ctrl_c_while_decoding_starts_is_one_line(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BCL_DATA", str(here / "cache"))
    Image.new("RGB", (8, 8)).save(here / "image.png")
    for name, count in (("train", decode.FEW), ("test", 2)):
        folder = here / "photos" / "task_01" / name / "black"
        folder.mkdir(parents=True)
        for i in range(count):
            os.link(here / "image.png", folder / f"{i}.png")
    err = interrupted("run", "folder:photos", "er", "--seeds", "1", "--device", "cpu")
    assert err == "bcl: stopped; the same command goes on\n"
    assert not list((here / "cache").rglob("manifest.json"))


def interrupted(*words: str) -> str:
    """Standard error of a command that Ctrl-C hits while its first processes begin to import what they need."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HEARS_CTRL_C, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(_children(process.pid)) < 2 and time.monotonic() < deadline:  # a worker, and what tracks resources
        time.sleep(0.01)
    time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # to all of them, as a terminal does
    _, err = process.communicate(timeout=100)
    assert process.returncode == 130
    assert "Traceback" not in err
    return err


_HEARS_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from bcl.cli import main
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


def _children(parent: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


def test_what_goes_on_after_ctrl_c_depends_on_the_command() -> None:
    assert _stopped(["run", "split-digits", "er"]) == "stopped; the same command goes on"
    assert _stopped(["data", "fetch", "mnist"]) == "stopped; the cache is as it was"
    assert _stopped(["--debug", "tune", "split-digits", "er"]) == "stopped; the same command goes on"
    assert _stopped(["suite", "run", "digits"]) == "stopped; the same command goes on"
    assert _stopped(["speed"]) == "stopped"


def test_ctrl_c_is_no_error_of_a_library_that_was_being_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def content(*_: object, **__: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AttributeError("module 'numpy' has no attribute 'matrix'") from None

    monkeypatch.setattr(catalogue, "content", content)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["list"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "bcl: stopped\n"


def test_ctrl_c_before_there_is_a_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "bcl.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "bcl.cli")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    assert program() == 130
    assert capsys.readouterr().err == "bcl: stopped\n"


def test_a_run_of_a_search_is_found_again_by_the_search() -> None:
    config = RunConfig.resolve("split-digits", "er", 0, part="tune")
    assert config.command == "bcl tune split-digits er --scenario task --memory 20 --device cpu --precision fp32"


LONG = ["run", "permuted-digits", "er", "--seed", "0", "--device", "cpu", "--out", "store"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_request_to_end_saves_and_the_same_command_goes_on_unless_told_otherwise(
    run: Run, number: int, code: int
) -> None:  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "bcl", *LONG], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not journal(Path("store")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert err.splitlines() == ["bcl: stopped; the same command goes on"]
    assert [event for _, event in journal(Path("store"))] == ["started", "stopped"]
    (checkpoint,) = Path("store").glob("*/checkpoint.safetensors")
    words = LONG if number == signal.SIGTERM else [*LONG, "--fresh"]
    assert run(*words).returncode == 0
    began = "resumed" if number == signal.SIGTERM else "started"
    assert [event for _, event in journal(Path("store"))][2:] == [began, "finished"]
    assert not checkpoint.exists()


def test_what_is_logged_is_a_plain_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from bcl.cli import catalogue

    monkeypatch.setattr(catalogue, "suites", lambda: logging.getLogger("bcl").info("a note from below") or [])
    assert main(["list", "suites", "--json"]) == 0
    assert capsys.readouterr() == ('{"suites": []}\n', "a note from below\n")
