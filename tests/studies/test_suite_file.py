"""Suites as files: those of the package are whole, and a mistake in one's own is one clear line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from bcl.cli import main
from bcl.errors import UserError
from bcl.learners import method
from bcl.runs.presets import preset
from bcl.streams import benchmark
from bcl.studies.published import published
from bcl.studies.suite import load, packaged, parse

TWELVE = {"finetune", "lwf", "ewc", "icarl", "gem", "kdr", "er", "mer", "ftml", "bcl-single", "bcl-dual", "offline"}


def test_the_package_has_the_papers_tables() -> None:
    names = ["digits", "paper/figure2", "paper/table1", "paper/table2", "paper/table3", "paper/table4"]
    assert [name for name in packaged() if not name.startswith("beyond/")] == names


@pytest.mark.parametrize("name", [name for name in packaged() if name.startswith("beyond/")])
def test_what_the_suites_beyond_the_paper_ask_for_exists(name: str) -> None:
    for line in load(name).lines:
        chosen = preset(line.benchmark, "class", benchmark(line.benchmark).scenario, line.method)
        method(line.method).Hyper.of({**chosen, **line.overrides})
        if "memory_total" in line.options:
            assert line.options["memory_total"] % benchmark(line.benchmark).learning_tasks == 0


def test_the_values_of_the_fields_protocol_are_the_same_on_every_data_set() -> None:
    def values(suite: str, memory: int) -> dict[str, dict[str, Any]]:
        lines = [line for line in load(suite).lines if line.options.get("memory_total") == memory]
        chosen = [preset(line.benchmark, "class", benchmark(line.benchmark).scenario, line.method) for line in lines]
        return {
            line.label: vars(method(line.method).Hyper.of({**values, **line.overrides}))
            for line, values in zip(lines, chosen, strict=True)
        }

    protocol = values("beyond/protocol", 2000)
    for suite, memory in (("beyond/cifar10", 500), ("beyond/tiny-imagenet", 5000)):
        found = values(suite, memory)
        assert len(found) == 10
        assert found == {label: protocol[label] for label in found}
    authors = values("beyond/authors", 2000)
    assert authors["rar"] == protocol["rar"] == values("beyond/width20", 2000)["rar"]
    assert {name: value for name, value in authors["rar"].items() if value != authors["er, nearest mean"][name]} == {
        "repeats": 10,
        "augment": "randaugment",
    }


def test_table_1_is_twelve_methods_on_four_benchmarks_with_five_seeds() -> None:
    lines = load("paper/table1").lines
    by_benchmark = {
        line.benchmark: {other.method for other in lines if other.benchmark == line.benchmark} for line in lines
    }
    assert by_benchmark.pop("permuted-mnist") == TWELVE - {"icarl"}, "iCaRL does not learn domain-incrementally"
    assert by_benchmark == dict.fromkeys(("split-cifar100", "split-cub", "split-miniimagenet"), TWELVE)
    assert {line.seeds for line in lines} == {5}
    assert {(line.benchmark, line.options["memory"]) for line in lines} == {
        ("permuted-mnist", 256), ("split-cifar100", 65), ("split-cub", 50), ("split-miniimagenet", 65),
    }  # fmt: skip


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_every_published_figure_has_its_line_in_the_suite(number: int) -> None:
    lines = {(line.group, line.label) for line in load(f"paper/table{number}").lines}
    figures = published(f"table{number}")
    assert figures
    assert {(group, label) for group, rows in figures.items() for label in rows} <= lines


def test_table_4_has_both_memories_and_both_rates() -> None:
    suite = load("paper/table4")
    for group, slots in (("50 images per class", 100), ("100 images per class", 200)):
        lines = {line.label: line for line in suite.lines if line.group == group}
        assert len(lines) == 4 + 2 * 4 + 2 * 2 + 1 + 4
        for label, line in lines.items():
            name, *settings = label.split(", ")
            assert line.method == name
            values = dict(line.overrides)
            apart, masked = values.pop("track_candidates", True) is False, line.benchmark == "split-cifar10"
            said = [f"lr {value}" if key == "lr" else value for key, value in values.items()]
            assert settings == said + ["statistics apart"] * apart + ["masked"] * masked
            assert line.options["memory"] == (100 if name in ("finetune", "offline") else slots)


def test_the_widths_that_are_no_standard_deviations_are_those_of_others() -> None:
    for rows in published("table4").values():
        for label, figures in rows.items():
            assert {len(figure) for figure in figures.values()} == ({2} if label.startswith("bcl") else {3})


def test_lists_are_combined_and_seeds_overridden() -> None:
    text = "{seeds: 2, runs: [{benchmark: [a, b], methods: [er, gem], memory: [5, 10], set: {lr: 0.1}}]}"
    suite = parse(text, "mine", "mine.yaml")
    assert [(line.benchmark, line.method, line.options["memory"]) for line in suite.lines[:3]] == [
        ("a", "er", 5), ("a", "er", 10), ("a", "gem", 5),
    ]  # fmt: skip
    assert len(suite.lines) == 8
    assert {line.seeds for line in suite.lines} == {2}
    assert {line.seeds for line in parse(text, "mine", "mine.yaml", seeds=7).lines} == {7}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping with `runs`"),
        ("runs: [", "is not YAML"),
        ("title: x", "has no `runs`"),
        ("{runs: [{benchmark: split-digits, methods: [er]}], sedes: 3}", "unknown key 'sedes'; did you mean seeds"),
        ("runs: [{benchmark: split-digits, methods: [er], memroy: 3}]", "runs 1: unknown key 'memroy'"),
        ("runs: [{benchmark: split-digits, methods: [err]}]", "unknown method 'err'"),
        ("runs: [{benchmark: split-digits}]", "give `methods: [...]` or `method: ...`"),
        ("runs: [{benchmark: split-digits, method: er, methods: [er]}]", "or `method: ...`, not both"),
        ("runs: [{methods: [er]}]", "`benchmark` is missing"),
        ("runs: [3]", "runs 1: must be a mapping"),
        ("{runs: [{benchmark: split-digits, methods: [er]}], seeds: 0}", "seeds must be a whole number of at least 1"),
        ("runs: [{benchmark: split-digit, methods: [er]}]", "unknown benchmark 'split-digit'"),
        ("runs: [{benchmark: split-digits, methods: [er], set: {lt: 1}}]", "unknown hyper-parameter 'lt'"),
        ("runs: [{benchmark: split-digits, methods: [er], tasks: 9}]", "split-digits, er: split-digits has 1 to 5"),
        ("runs: [{benchmark: permuted-digits, methods: [icarl]}]", "ICaRL does not learn domain-incrementally"),
        ("{runs: [{benchmark: split-digits, methods: [er]}], published: table9}", "unknown published table 'table9'"),
        ("{runs: [{benchmark: split-digits, methods: [er]}], against: gem}", "unknown label to test against 'gem'"),
        ("{runs: [{benchmark: split-digits, methods: [er]}], against: [1]}", "against must be a name or a list"),
        ("runs: [{benchmark: split-digits, methods: [er], evaluate_every: 0}]", "evaluate_every must be a whole"),
        ("runs: [{benchmark: split-cub, methods: [er, er]}]", "mine, split-cub, er: two lines ask for this same run"),
        ("runs: [&er {benchmark: split-digits, method: er}, {<<: *er, memory: 20}]", "split-digits, er: two lines"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(text)
    for command in ("show", "run"):
        assert main(["suite", command, "mine.yaml", "--device", "cpu"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1, err
        assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"], "a mistake leaves nothing behind"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["suite", "show", "paper/tabel1"], "did you mean paper/table1"),
        (["suite", "show", "mine.yaml"], "mine.yaml is not a file"),
        (["suite", "run", "digits", "--engine", "slurm"], "unknown engine 'slurm'"),
        (["suite", "run", "digits", "--log", "wandb"], "unknown log 'wandb'"),
        (["suite", "run", "digits", "--seeds", "0"], "seeds must be at least 1"),
        (["suite", "run", "digits", "--address", "here"], "--address is for --engine ray"),
        (["suite", "shwo", "digits"], "unknown command 'shwo'; did you mean show"),
    ],
)
def test_a_mistake_on_the_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_suite_in_python() -> None:
    with pytest.raises(UserError, match=r"known: beyond/ablation, .*digits"):
        load("nothing-like-it")


@pytest.mark.parametrize("name", packaged())
def test_every_line_of_the_package_could_be_run_were_its_data_here(name: str) -> None:
    for line in load(name).lines:
        learner, home = method(line.method), benchmark(line.benchmark)
        assert (line.options.get("scenario") or home.scenario) in learner.scenarios
        learner.Hyper.of(line.overrides)


def test_chosen_hyper_parameters_and_grids_are_valid() -> None:
    folder = files("bcl").joinpath("suites")
    chosen = yaml.safe_load(folder.joinpath("hyper.yaml").read_text())
    for name, scenarios in chosen.items():
        benchmark(name)
        for scenario, methods in scenarios.items():
            for learner, values in methods.items():
                assert scenario in method(learner).scenarios
                method(learner).Hyper.of(values)
    for learner, axes in yaml.safe_load(folder.joinpath("grid.yaml").read_text()).items():
        for name, values in axes.items():
            for value in values:
                method(learner).Hyper.of({name: value})
