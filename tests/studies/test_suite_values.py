"""What a suite's settings may be: anything else is refused when the file is read, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bcl.cli import main
from bcl.errors import InputError
from bcl.studies.suite import parse

COUNT = "a whole number of at least 1 (or a list of them)"


def of(setting: str, top: str = "") -> str:
    return f"{{{top}runs: [{{benchmark: split-digits, method: er, {setting}}}]}}"


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("memory: abc", f"memory must be {COUNT}, not 'abc'"),
        ("memory: 2.5", f"memory must be {COUNT}, not 2.5"),
        ("memory: 0", f"memory must be {COUNT}, not 0"),
        ("memory: [10, x]", f"memory must be {COUNT}, not 'x'"),
        ("memory: []", f"memory must be {COUNT}, not an empty list"),
        ("memory: null", f"memory must be {COUNT}, not None"),
        ("tasks: abc", f"tasks must be {COUNT}, not 'abc'"),
        ("tasks: true", f"tasks must be {COUNT}, not True"),
        ("samples: abc", f"samples must be {COUNT}, not 'abc'"),
        ("samples: {a: 1}", f"samples must be {COUNT}, not {{'a': 1}}"),
        ("net: 3", "net must be the name of a network (or a list of them), not 3"),
        ("net: []", "net must be the name of a network (or a list of them), not an empty list"),
        ("scenario: 3", "scenario must be task, domain or class (or a list of them), not 3"),
        ("scenario: clas", "scenario must be task, domain or class (or a list of them), not 'clas'"),
        ("precision: 3", "precision must be fp32, tf32 or bf16 (or a list of them), not 3"),
        ("precision: null", "precision must be fp32, tf32 or bf16 (or a list of them), not None"),
        ("set: {3: 1}", "`set` must be a mapping of hyper-parameters"),
        ("label: [a]", "label must be text, not ['a']"),
        ("group: yes", "group must be text, not True; put it in quotes"),
        ("label: ' '", "label is empty; give it a name, or leave it out"),
    ],
)
def test_a_value_of_the_wrong_kind_is_one_line_that_says_what_is_allowed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(of(setting))
    for command in ("show", "run"):
        assert main(["suite", command, "mine.yaml", "--device", "cpu"]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"bcl: mine.yaml, runs 1: {message}")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"], "a mistake leaves nothing behind"


@pytest.mark.parametrize("axis", ["foo", "scenario", "lr"])
def test_an_axis_against_which_nothing_can_be_drawn(axis: str) -> None:
    known = "tasks, samples, memory, memory_total, batch_size, margin"
    with pytest.raises(InputError, match=f"mine.yaml: unknown axis '{axis}'.*known: {known}"):
        parse(of("set: {margin: 1}", f"axis: {axis}, "), "mine", "mine.yaml")


def test_an_axis_of_words() -> None:
    with pytest.raises(
        InputError, match=r"mine.yaml: axis: optimizer has no number at .*, but 'adam'; nothing can be drawn"
    ):
        parse(of("set: {optimizer: adam}", "axis: optimizer, "), "mine", "mine.yaml")
    assert parse(of("memory: 5, set: {memory: reservoir}", "axis: memory, "), "mine", "mine.yaml").axis == "memory"


@pytest.mark.parametrize("axis", ["memory", "margin"])
def test_an_axis_is_a_number_or_a_hyper_parameter_that_is_set(axis: str) -> None:
    assert parse(of("set: {margin: 1}", f"axis: {axis}, "), "mine", "mine.yaml").axis == axis


def test_what_is_allowed() -> None:
    setting = "scenario: [task, class], samples: [20, null], memory: 5, net: mlp, precision: [fp32, bf16], label: 7"
    lines = parse(of(setting), "mine", "mine.yaml").lines
    assert len(lines) == 8
    assert {line.options["samples"] for line in lines} == {20, None}
    assert {line.label for line in lines} == {"7"}
