"""What makes the command line pleasant: quick lists, names in the help, completion, filters, progress, early checks."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bcl.cli import main, progress
from bcl.cli.progress import Watch
from bcl.learners import METHODS, method
from bcl.learners.said import said
from bcl.nets import NETS
from bcl.runs import presets
from bcl.studies.estimate import guess
from bcl.studies.plan import Planned, plan, where_values_come_from
from bcl.studies.suite import Line, one_block, parse

FEW = ["--tasks", "2", "--samples", "20", "--seeds", "1", "--workers", "1", "--device", "cpu"]


def test_a_list_needs_no_torch() -> None:
    code = "import sys; from bcl.cli import main; main(['list']); print(sorted({'torch', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "bcl-dual" in done.stdout


@pytest.mark.parametrize("name", METHODS)
def test_what_is_read_from_the_text_is_what_the_class_has(name: str) -> None:
    learner = method(name)
    for attribute in ("reference", "scenarios", "memory_kind", "cost", "relative_cost", "colour", "marker"):
        assert said(name)[attribute] == getattr(learner, attribute), attribute


def test_lists_fit_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in METHODS)


@pytest.mark.parametrize("command", [["run"], ["tune"]])
def test_help_names_benchmarks_methods_and_networks(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    words = capsys.readouterr().out.replace(",", " ").split()
    assert {*METHODS, "split-miniimagenet", "folder:PATH"} <= set(words)
    assert command != ["run"] or set(NETS) <= set(words)


@pytest.mark.parametrize("command", [[], ["suite"], ["data"]])
def test_help_says_what_each_command_is_for_in_one_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.split("Commands:")[1]


def test_a_missing_word_leads_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "run"]) == 2
    assert capsys.readouterr().err == "bcl: Missing argument 'NAME': see `bcl suite run --help`\n"


def test_help_names_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "run", "--help"]) == 0
    assert "paper/table1" in capsys.readouterr().out.split("Suites:")[1]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("run split-d", ["split-digits"]), ("run split-digits bcl-m", ["bcl-mean"]), ("suite run d", ["digits"])],
)
def test_the_shell_completes_names(
    typed: str, expected: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_BCL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"bcl {typed}")
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
    with pytest.raises(SystemExit):
        main([])
    assert capsys.readouterr().out.split() == expected


def test_a_value_for_one_method_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "split-digits", "er", "gem", *FEW, "--out", str(tmp_path), "--json"]
    assert main([*words, "--set", "lr=0.5", "--set", "gem.lr=0.25", "--set", "gem.margin=0.125"]) == 0
    hyper = {run["method"]: run["config"]["hyper"] for run in json.loads(capsys.readouterr().out)["runs"]}
    assert hyper["er"]["lr"] == 0.5
    assert (hyper["gem"]["lr"], hyper["gem"]["margin"]) == (0.25, 0.125)
    assert main([*words, "--set", "agem.lr=1"]) == 2
    assert "agem is not among the methods of this run (er, gem)" in capsys.readouterr().err
    own = one_block("split-digits", ["er"], 1, overrides={"er.lr": 1, "lr": 2}).lines[0].overrides
    assert own == {"lr": 1}, "the narrower one counts, wherever it stands"


def test_one_line_says_which_file_was_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = {"split-digits": {"task": {name: {"lr": 0.1} for name in ("er", "gem", "agem", "lwf", "ewc", "finetune")}}}
    monkeypatch.setattr(presets, "_packaged", lambda: table)
    words = ["run", "split-digits", "er", "bcl-mean", *FEW, "--out", str(tmp_path)]
    assert main(words) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("hyper-parameters")]
    assert lines == ["hyper-parameters: bcl/suites/hyper.yaml (er); defaults (bcl-mean)"]
    (found,) = tmp_path.glob("er-*/result.json")
    assert json.loads(found.read_text())["sources"] == {"lr": "bcl/suites/hyper.yaml (split-digits, task)"}
    assert json.loads(found.read_text())["chance"] == [50.0, 50.0]
    suite = one_block("split-digits", ["er", "gem"], 1, overrides={"gem.margin": 0.3})
    assert where_values_come_from(plan(suite)) == "bcl/suites/hyper.yaml (er, gem); set (gem)"
    many = one_block("split-digits", ["bcl-mean", *table["split-digits"]["task"]], 1)
    assert where_values_come_from(plan(many)) == "bcl/suites/hyper.yaml (6 methods); defaults (bcl-mean)"
    block = "{{benchmark: split-digits, method: er, label: {0}, memory: {0}}}"
    labels = parse(f"runs: [{', '.join(block.format(number) for number in range(1, 8))}]", "mine", "mine.yaml")
    assert where_values_come_from(plan(labels)) == "bcl/suites/hyper.yaml (er)", "seven labels of one method"


SUITE = """
seeds: 1
runs:
  - {benchmark: split-digits, methods: [er, finetune], tasks: 2, samples: 20}
  - {benchmark: split-digits, method: er, label: "hasty, too", tasks: 2, samples: 20, set: {lr: 0.7}}
"""


def test_some_methods_of_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text(SUITE)
    words = [str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "store"), "--device", "cpu", "--workers", "1"]
    assert main(["suite", "run", *words, "--methods", "finetune, hasty, too", "--json"]) == 0
    ran = json.loads(capsys.readouterr().out)["runs"]
    assert [(run["method"], run["config"]["hyper"]["lr"]) for run in ran] == [("finetune", 0.1), ("er", 0.7)]
    assert main(["suite", "show", *words, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {line["label"]: line["done"] for line in shown["lines"]} == {"er": 0, "finetune": 1, "hasty, too": 1}
    assert main(["suite", "show", *words, "--methods", "finetune", "--json"]) == 0
    assert [line["label"] for line in json.loads(capsys.readouterr().out)["lines"]] == ["finetune"]
    assert main(["suite", "show", *words, "--methods", "er", "--json"]) == 0
    assert [line["label"] for line in json.loads(capsys.readouterr().out)["lines"]] == ["er"], "a line is called so"
    assert main(["report", str(tmp_path / "store")]) == 0
    assert "2 of 3 runs done" in (tmp_path / "store" / "report.html").read_text(), "the plan is still the whole suite"
    capsys.readouterr()
    assert main(["suite", "run", *words, "--methods", "hastie, too"]) == 2
    assert "unknown method of this suite 'hastie'; did you mean hasty, too?" in capsys.readouterr().err


def test_a_method_whose_lines_are_all_called_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text(SUITE.replace("methods: [er, finetune]", "method: er, label: slow"))
    words = ["suite", "show", str(tmp_path / "mine.yaml"), "--device", "cpu", "--methods", "er", "--json"]
    assert main(words) == 0
    assert [line["label"] for line in json.loads(capsys.readouterr().out)["lines"]] == ["slow", "hasty, too"]


def test_some_benchmarks_of_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text("""
seeds: 1
runs:
  - {benchmark: split-digits, methods: [er, finetune], tasks: 2, samples: 20}
  - {benchmark: 'split-digits?mask_unseen=false', scenario: class, methods: [er, finetune], tasks: 2, samples: 20}
  - {benchmark: permuted-digits, methods: [er, finetune], tasks: 2, samples: 20}
""")
    words = [str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "store"), "--device", "cpu", "--workers", "1"]
    assert main(["suite", "run", *words, "--benchmarks", "permuted-digits", "--methods", "er", "--json"]) == 0
    (ran,) = json.loads(capsys.readouterr().out)["runs"]
    assert (ran["benchmark"], ran["method"]) == ("permuted-digits", "er")
    lines = {"split-digits": 4, "split-digits?mask_unseen=false": 2, "split-digits, permuted-digits": 6}
    for name, expected in lines.items():
        assert main(["suite", "show", *words, "--benchmarks", name, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["lines"]) == expected
    assert main(["suite", "run", *words, "--benchmarks", "split-digit"]) == 2
    assert "unknown benchmark of this suite 'split-digit'; did you mean split-digits" in capsys.readouterr().err


def test_a_part_of_a_suite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.yaml").write_text("""
runs:
  - {benchmark: split-digits, group: "1,000 slots, in all", method: er, memory_total: 1000}
  - {benchmark: split-digits, group: "2,000 slots, in all", method: er, memory_total: 2000}
""")
    words = ["suite", "show", str(tmp_path / "mine.yaml"), "--device", "cpu", "--json", "--benchmarks"]
    for asked, expected in (("2,000 slots, in all", 1), ("1,000 slots,in all, 2,000 slots, in all", 2)):
        assert main([*words, asked]) == 0
        lines = json.loads(capsys.readouterr().out)["lines"]
        assert len(lines) == expected
        assert lines[-1]["group"] == "2,000 slots, in all"
    assert main([*words, "3,000 slots, in all"]) == 2
    assert "unknown benchmark of this suite '3'" in capsys.readouterr().err


def test_a_table_that_goes_to_a_file_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--seeds", "2", "--tasks", "2", "--samples", "60", "--device", "cpu", "--workers", "1"]
    words = ["run", "split-digits", "er", "bcl-dual", *small, "--set", "er.lr=1000000", "--out", str(tmp_path)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "0 of 2; 2 diverged" in shown
    assert "s/run" in shown
    assert {line[-1] for line in shown.splitlines() if line.startswith("│")} == {"│"}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_the_time_that_is_left_follows_from_what_was_done_since_the_start(clock: list[float]) -> None:
    watch = Watch(["a", "b", "c", "d"])
    watch(0, 50, 50)  # found in the store: it took no time
    assert watch.seconds_left() is None
    watch(1, 25, 100)  # goes on from a checkpoint
    clock[0] += 20.0
    watch(1, 75, 100)
    assert watch.complete == 1
    assert watch.seconds_left() == pytest.approx(20.0 * 2.25 / 0.5), "half a run in 20 s, and 2.25 to go"


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Those of a terminal, as they were last shown."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    bars: list[dict[str, Any]] = []

    class Bars:
        tasks: Sequence[Any] = ()

        def start(self) -> None: ...
        def stop(self) -> None: ...
        def add_task(self, label: str, **about: Any) -> int:
            bars.append({"label": label, **about})
            return len(bars) - 1

        def update(self, number: int, **about: Any) -> None:
            bars[number] |= about

    made = Bars()
    monkeypatch.setattr(progress, "_bars", lambda: made)
    monkeypatch.setattr(progress, "_speed", lambda bars, number: None)
    return bars


def test_a_terminal_shows_all_runs_together(bars: list[dict[str, Any]], clock: list[float]) -> None:
    with Watch(["a", "b"]) as watch:
        watch(0, 0, 10)
        watch(1, 0, 10)
        clock[0] += 30.0
        watch(0, 10, 10)
        watch(1, 5, 10)
    whole, first, second = bars
    assert (whole["label"], whole["count"], whole["left"]) == ("all runs", "1/2 runs", "10.0 s left")
    assert whole["completed"] == 1.5
    assert (first["visible"], second["visible"], second["count"]) == (False, True, "5/10")


@pytest.mark.parametrize("labels", [["a"], ["a", "b"]])
def test_a_terminal_shows_what_is_repeated(
    labels: list[str], bars: list[dict[str, Any]], clock: list[float]
) -> None:  # fmt: skip
    with Watch(labels) as watch:
        watch(0, 0, 10)
        for done in (0, 100):
            clock[0] += 10.0
            watch(0, 10, 10, (done, 400))
        bar = bars[-1]
        assert (bar["count"], bar["rate"], bar["visible"]) == ("10/10", "at a task boundary 100/400", True)
        assert bars[0]["left"] == ("30.0 s left" if labels == ["a"] else "1 min 20 s left")
        watch(0, 10, 10)
        assert (bar["rate"], bar["visible"]) == ("", False)


def test_a_piece_of_work_has_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.progress("reading") as report:
        report(3, 12)
    assert "reading" in sys.stderr.getvalue()
    assert "3/12" in sys.stderr.getvalue()


def test_plain_lines_say_how_long_the_rest_takes(capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    watch = Watch(["a", "b"])
    watch(0, 0, 10)
    clock[0] += 10.0
    watch(0, 10, 10)
    assert capsys.readouterr().err == "a: 10/10 steps; 1/2 runs complete, 1 steps/s, 10.0 s left\n"


def test_plain_lines_say_what_is_repeated_when_the_steps_are_done(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    watch = Watch(["a", "b"])
    watch(0, 0, 10)
    clock[0] += 20.0
    watch(0, 10, 10, (0, 400))  # nobody knows how long that will take
    clock[0] += 5.0
    watch(0, 10, 10, (100, 400))  # 15 s more, and 40 s for the other run
    clock[0] += 15.0
    watch(0, 10, 10)
    assert capsys.readouterr().err.splitlines() == [
        "a: 10/10 steps, at a task boundary 0/400; 0/2 runs complete",
        "a: 10/10 steps, at a task boundary 100/400; 0/2 runs complete, 55.0 s left",
        "a: 10/10 steps; 1/2 runs complete, 0 steps/s, 40.0 s left",
    ]


def test_runs_that_repeat_work_at_once_end_at_once(clock: list[float]) -> None:
    watch = Watch(["a", "b"])
    for seconds, *news in ((0.0, 0, 10), (20.0, 10, 10, (0, 400)), (5.0, 10, 10, (100, 400))):
        clock[0] += seconds
        watch(0, *news)
        watch(1, *news)
    assert watch.seconds_left() == pytest.approx(15.0)


def test_what_a_boundary_takes_is_part_of_its_task(clock: list[float]) -> None:
    watch = Watch(["a"])
    watch(0, 0, 10)
    for boundary in range(5):
        clock[0] += 1.0
        for done in range(0, 200, 50):
            watch(0, 2 * boundary + 2, 10, (done, 200))
            left = watch.seconds_left()
            assert left is None if done == 0 else left == pytest.approx(21.0 * (5 - boundary) - 1.0 - done / 10)
            clock[0] += 5.0
        watch(0, 2 * boundary + 2, 10)
    assert watch.complete == 1


def test_how_often_work_is_repeated_may_be_unknown(capsys: pytest.CaptureFixture[str], clock: list[float]) -> None:
    watch = Watch(["a"])
    watch(0, 0, 10)
    clock[0] += 10.0
    watch(0, 5, 10, (70, 0))
    assert capsys.readouterr().err == "a: 5/10 steps, at a task boundary 70/?; 0/1 runs complete\n"


def planned(benchmark: str, options: dict[str, Any] | None = None, **values: Any) -> Planned:
    options = {"tasks": 1, "samples": 100} if options is None else options
    return Planned(Line(benchmark, "er", benchmark, "er", 1, options, values), ())


def test_larger_images_take_longer() -> None:
    small, large = guess(planned("split-cifar100"), "cpu"), guess(planned("split-miniimagenet"), "cpu")
    assert large / small == pytest.approx((84 / 32) ** 2)
    on_gpu = guess(planned("split-miniimagenet"), "cuda") / guess(planned("split-cifar100"), "cuda")
    assert 1.0 < on_gpu < large / small


def test_tasks_of_another_size_take_as_long_in_all() -> None:
    plain, small = (guess(planned(f"split-cifar100{size}", {}), "cpu") for size in ("", "?classes_per_task=1"))
    assert small == pytest.approx(plain)
    one = guess(planned("split-cifar100?classes_per_task=1", {"tasks": 1}), "cpu")
    assert one == pytest.approx(plain / 85)


def test_more_steps_per_batch_take_longer() -> None:
    once, often = guess(planned("split-cifar100"), "cpu"), guess(planned("split-cifar100", repeats=4), "cpu")
    assert often == pytest.approx(4 * once)


@pytest.mark.parametrize("kind", ["directory", "below a file", "another file", "out"])
def test_tune_looks_where_it_will_write_before_it_computes(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compute(*_: Any, **__: Any) -> None:
        raise AssertionError("it computed first")

    monkeypatch.setattr("bcl.studies.tuning.run_all", compute)
    taken = tmp_path / "taken"
    taken.write_text("- a list\n")
    save, out = tmp_path / "new" / "hyper.yaml", tmp_path / "store"
    save, out = {
        "directory": (tmp_path, out), "below a file": (taken / "hyper.yaml", out),
        "another file": (taken, out), "out": (save, taken / "store"),
    }[kind]  # fmt: skip
    assert main(["tune", "split-digits", "er", "--save", str(save), "--out", str(out), "--device", "cpu"]) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert "--save" in said or "--out" in said
    assert taken.read_text() == "- a list\n"


def test_every_evaluation_of_a_short_run_is_in_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (tmp_path / "mine.yaml").write_text(SUITE)
    words = ["suite", "run", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "store"), "--log", "tensorboard"]
    assert main([*words, "--device", "cpu", "--workers", "1"]) == 0
    folders = sorted((tmp_path / "store" / "tensorboard").glob("*/*"))
    assert len(folders) == 3
    for folder in folders:
        events = EventAccumulator(str(folder))
        events.Reload()
        assert [one.step for one in events.Scalars("accuracy/seen so far")] == [2, 4], "after each of two tasks"
