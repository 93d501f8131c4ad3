"""A method of the user's, `module:Class`, wherever a method is named; nothing in the package is touched."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from same_process import Run, same_process

from bcl.cli import main
from bcl.errors import InputError, UnknownNameError
from bcl.learners import METHODS, installed_methods, method

METHOD = """
from bcl.learners.er import ER


class Mine(ER):
    reference = "mine"
    grid = {"lr": [0.05, 0.2]}


class Stumbles(ER):
    def step(self, x, y, t):
        if t == 1:
            return self.missing
        return super().step(x, y, t)


class NotMade(ER):
    def setup(self):
        raise KeyError("no table")
"""
QUICK = ["--tasks", "2", "--samples", "20", "--device", "cpu"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_method_of_mine.py").write_text(METHOD)
    return tmp_path


def run_apart(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "bcl", *words], capture_output=True, text=True, check=False)


@pytest.fixture
def run(here: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    with same_process(capfd) as found:
        yield found


@pytest.mark.usefixtures("here")
def test_it_is_run_listed_and_reported_under_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "split-digits", "er", "own_method_of_mine:Mine", "--seeds", "2", *QUICK, "--workers", "2", "--json"]
    assert main(words) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    assert [run["method"] for run in runs] == ["er", "er", "own_method_of_mine:Mine", "own_method_of_mine:Mine"]
    assert runs[2]["weights_sha256"] == runs[0]["weights_sha256"], "it is experience replay"
    assert len(list(Path("runs/split-digits").glob("own_method_of_mine-Mine-seed*/result.json"))) == 2
    assert main(["report", "runs/split-digits"]) == 0
    assert "own_method_of_mine:Mine" in Path("runs/split-digits/report.html").read_text()
    capsys.readouterr()
    assert main(["list", "own_method_of_mine:Mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["methods"][0]["reference"] == "mine"


@pytest.mark.usefixtures("here")
def test_it_is_tuned_on_its_own_grid_or_that_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "split-digits", "own_method_of_mine:Mine", "--seeds", "1", "--workers", "1", "--device", "cpu"]
    assert main([*words, "--trials", "2", "--json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out)["trials"].values()
    assert {row["values"]["lr"] for row in rows} == {0.05, 0.2}
    Path("grid.yaml").write_text("{lr: [0.07], replay_batch: [5]}")
    assert main([*words, "--grid", "grid.yaml", "--json"]) == 0
    (rows,) = json.loads(capsys.readouterr().out)["trials"].values()
    assert [row["values"] for row in rows] == [{"lr": 0.07, "replay_batch": 5}]
    Path("grid.yaml").write_text("{'own_method_of_mine:Mine': {lr: [0.07]}, er: {replay_batch: [5, 6]}}")
    assert main([*words, "er", "--grid", "grid.yaml", "--json"]) == 0
    mine, er = json.loads(capsys.readouterr().out)["trials"].values()
    assert [row["values"] for row in mine] == [{"lr": 0.07}]
    assert sorted(row["values"]["replay_batch"] for row in er) == [5, 6]
    assert main([*words, "--grid", "grid.yaml", "--net", "nothing"]) == 2
    assert "unknown network 'nothing'" in capsys.readouterr().err
    for content, said in (
        ("[1]", "is not a grid"),
        ("lr: 3", "is not a grid"),
        ("{er: {lr: 3}}", "is not a grid"),
        ("{er: {lr: [1]}, lr: [3]}", "is not a grid"),
        ("{lr: [-1]}", "lr must be greater"),
    ):
        Path("grid.yaml").write_text(content)
        assert main([*words, "--grid", "grid.yaml"]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_it_is_part_of_suites_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.yaml").write_text(
        "{seeds: 1, runs: [{benchmark: split-digits, method: 'own_method_of_mine:Mine', tasks: 2, samples: 20}]}"
    )
    assert main(["suite", "run", "mine.yaml", "--workers", "1", "--device", "cpu"]) == 0
    assert main(["suite", "show", "mine.yaml", "--device", "cpu", "--json"]) == 0
    assert capsys.readouterr().out
    words = ["--benchmark", "permuted-digits", "--device", "cpu", "--repeats", "2", "--tasks", "2", "--json"]
    assert main(["speed", "own_method_of_mine:Mine", *words]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["method"] == "own_method_of_mine:Mine"


def test_a_report_imports_no_method_that_a_store_names(here: Path, run: Run) -> None:
    words = ["run", "split-digits", "own_method_of_mine:Mine", "--seed", "0", *QUICK, "--out", "store"]
    assert run(*words).returncode == 0
    (here / "own_method_of_mine.py").write_text("open('imported', 'w')")
    sys.modules.pop("own_method_of_mine")
    assert run("report", "store").returncode == 0
    assert not (here / "imported").exists()
    run(*words)
    assert (here / "imported").exists(), "a run imports it: this test can tell"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_error_in_it_names_its_line(run: Run, workers: str) -> None:
    line = (
        "AttributeError: 'Stumbles' object has no attribute 'missing' (own_method_of_mine.py:13: return self.missing)"
    )
    words = ["run", "split-digits", "own_method_of_mine:Stumbles", "--seeds", "2", *QUICK, "--workers", workers]
    done = (run if workers == "1" else run_apart)(*words)
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert line in first
    assert line in second
    if workers == "1":
        done = run("tune", "split-digits", "own_method_of_mine:Stumbles", "--grid", "grid.yaml", "--seeds", "1")
        assert done.stderr.startswith("bcl: there is no file grid.yaml")
        Path("grid.yaml").write_text("lr: [0.1]")
        done = run("tune", "split-digits", "own_method_of_mine:Stumbles", "--grid", "grid.yaml", "--seeds", "1")
        assert (done.returncode, done.stderr) == (2, f"bcl: {line}\n")
        done = run("run", "split-digits", "own_method_of_mine:NotMade", "--seed", "0")
        assert done.returncode == 2
        assert "cannot be made: KeyError: 'no table' (own_method_of_mine.py:19: raise KeyError" in done.stderr


HYPER = "import bcl\nfrom bcl.learners.hyper import HyperParameters, hyper, hypers\n"
LEARNER = "class Method(bcl.Learner):\n    Hyper = Of\n    def step(self, x, y, t): pass"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 3", "has no class 'Method'"),
        ("def Method(): pass", "is not a subclass of bcl.Learner"),
        ("import bcl\nclass Method(bcl.Learner): pass", "has no `Hyper`"),
        ("import bcl\nclass Method(bcl.Learner): Hyper = bcl.ER.Hyper", "has no `step(self, x, y, t)`"),
        (
            "import bcl\nclass Method(bcl.ER):\n    def observe(self, *_): pass",
            "an `observe` of its own",
        ),
        (f"{HYPER}@hypers\nclass Of(HyperParameters):\n    lr: float = 0.1\n{LEARNER}", "say what lr is"),
        (
            f"{HYPER}class Of(HyperParameters):\n    lr: float = hyper(0.1, '')\n{LEARNER}",
            "write @hypers above the class Of",
        ),
        ("x = 1 / 0", "importing FILE failed (ZeroDivisionError: division by zero (FILE.py:1: x = 1 / 0))"),
        ("import not_there", "cannot import FILE (No module named 'not_there')"),
    ],
)
def test_what_is_not_a_method(here: Path, text: str, said: str) -> None:
    name = f"own_mistake_{abs(hash(text))}"
    (here / f"{name}.py").write_text(text)
    with pytest.raises(InputError) as error:
        method(f"{name}:Method")
    assert said.replace("FILE", name) in str(error.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder/mine.py:Mine", "name it mine:Mine"),
        ("mine.py", "name it mine:Class"),
        ("er,mer", "separated by spaces"),
    ],
)
def test_a_name_that_is_nearly_right(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        method(name)


def test_a_method_of_an_installed_package(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = here / "another_package-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: another-package\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[bcl.methods]\nmine = own_method_of_mine:Mine\ner = nowhere:ER\n")
    with pytest.raises(UnknownNameError, match="unknown method 'mine'"):
        method("mine")
    monkeypatch.syspath_prepend(str(here))
    assert list(installed_methods()) == ["mine"], "a name of the package's own stays its own"
    assert method("mine").__name__ == "Mine"
    assert method("er").__module__ == "bcl.learners.er"
    assert "mine" not in METHODS
