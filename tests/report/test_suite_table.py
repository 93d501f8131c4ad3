"""A suite in the terminal: names stay whole in 80 columns, and lines go by the names that the suite gives them."""

from __future__ import annotations

from typing import Any

import pytest

from bcl.cli.status_table import print_status
from bcl.report.grouping import from_results
from bcl.report.summary import summarize
from bcl.studies.suite import load


def status(planned: list[dict[str, Any]]) -> dict[str, Any]:
    none = dict.fromkeys(("done", "running", "failed", "stopped"), 0)
    base = {"seeds": 5, **none, "missing": 5, "problem": "", "settings": {}, "seconds_left": 678.0}
    found = [{**base, **line} for line in planned]
    runs = {"total": 5 * len(found)}
    return {
        "suite": "mine", "store": "runs/mine", "lines": found, "runs": runs, "failures": {}, "workers": 2,
        "seconds_left": 3.0, "unplanned": 0,
    }  # fmt: skip


def printed(
    planned: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    print_status(status(planned))
    out = capsys.readouterr().out.splitlines()
    assert max(map(len, out)) <= 80
    return out


@pytest.mark.parametrize("failed", [0, 2])
@pytest.mark.parametrize(
    "name", ["digits", "paper/table1", "paper/table2", "paper/table3", "paper/table4", "beyond/width20"]
)
def test_names_are_whole_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str, failed: int
) -> None:
    planned = [
        {"group": line.group, "label": line.label, "settings": {**line.options, **line.overrides}, "failed": failed}
        for line in load(name).lines
    ]
    out = printed(planned, capsys, monkeypatch)
    words = {word for line in out for word in line.split()}
    for line in planned:
        assert {*line["group"].split(), *line["label"].split()} <= words


def test_columns_that_say_nothing_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    planned = [{"group": "split-digits", "label": "er"}, {"group": "split-digits", "label": "bcl-dual"}]
    assert printed(planned, capsys, monkeypatch)[1].split() == ["method", "seeds", "missing", "time", "left"]
    planned[0] |= {"failed": 1, "settings": {"memory": 3}}
    assert printed(planned, capsys, monkeypatch)[1].split()[1:4] == ["settings", "seeds", "failed"]
    planned[0] |= {"group": "permuted-digits"}
    assert printed(planned, capsys, monkeypatch)[1].split()[:2] == ["group", "method"]


def test_what_all_lines_share_is_said_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    planned = [
        {"group": "digits", "label": label, "settings": {"net": "mlp", "memory": memory}}
        for label, memory in (("er", 5), ("er", 10))
    ]
    out = printed(planned, capsys, monkeypatch)
    assert out[0].split() == ["mine", "digits", "net=mlp"]
    assert [line.split()[:3] for line in out[2:4]] == [["er", "memory=5", "5"], ["er", "memory=10", "5"]]


def test_settings_give_way_to_names(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"net": "mypackage.networks:convolutional"}
    planned = [{"group": "split-miniimagenet", "label": "bcl-dual-mir", "settings": settings}]
    out = printed(planned, capsys, monkeypatch)
    assert "split-miniimagenet bcl-dual-mir" in out[2]
    assert "".join(line[32:].split()[0] for line in out[2:-1]) == "net=mypackage.networks:convolutional"


def test_a_name_too_long_for_any_column_is_folded_and_the_figures_stay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "npz:/home/someone/data/collected/last/year/and/never/looked/at/again.npz"
    out = printed([{"group": path, "label": "er", "settings": {"memory": 10}}], capsys, monkeypatch)
    assert out[2].split()[1:] == ["er", "memory=10", "5", "5", "11", "min", "18", "s"]
    assert "".join(line.split()[0] for line in out[2:-1]) == path


def test_a_line_per_label_and_its_variant_only_among_its_own(result) -> None:
    settings = [("bcl-dual", 10, 1.0), ("bcl-dual", 20, 1.0), ("bcl-dual", 10, 0.0), ("er", 10, 1.0), ("er", 20, 1.0)]
    runs = [
        result(method, id=str(number), config={"memory": memory, "hyper": {"distill": weight}})
        for number, (method, memory, weight) in enumerate(settings)
    ]
    labels = {"0": ["bcl-dual", "small"], "1": ["bcl-dual"], "2": ["none"], "3": ["plain"], "4": ["none"]}
    found = [(row.method, row.label) for row in from_results(runs, labels=labels).rows]
    assert found == [
        ("er", "none (er)"),
        ("er", "plain"),
        ("bcl-dual", "bcl-dual (memory=10)"),
        ("bcl-dual", "bcl-dual (memory=20)"),
        ("bcl-dual", "small"),
        ("bcl-dual", "none (bcl-dual)"),
    ]
    assert [(line["method"], line["variant"], line.get("label")) for line in summarize(runs, labels)] == [
        ("er", "memory=10", "plain"),
        ("er", "memory=20", "none"),
        ("bcl-dual", "distill=0, memory=10", "none"),
        ("bcl-dual", "distill=1, memory=10", "small"),
        ("bcl-dual", "distill=1, memory=20", None),
    ]


def test_a_hyper_parameter_that_bears_the_name_of_an_option_does_not_hide_it(result) -> None:
    settings = [(10, "ring"), (20, "ring"), (10, "reservoir")]
    runs = [
        result("er", id=str(number), config={"memory": slots, "hyper": {"memory": kind}})
        for number, (slots, kind) in enumerate(settings)
    ]
    assert {row.label for row in from_results(runs).rows} == {
        "er (memory=10, set memory=reservoir)",
        "er (memory=10, set memory=ring)",
        "er (memory=20, set memory=ring)",
    }
