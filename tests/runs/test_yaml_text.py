"""YAML that is too deep, has no end or repeats itself without measure is one line wherever it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from bcl.cli import main
from bcl.errors import DamagedFileError, InputError, UserError
from bcl.runs import presets
from bcl.runs.yaml_text import read_yaml
from bcl.studies import suite, tuning

LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
HOSTILE = {
    "deep": "[" * 1000,
    "deep mappings": "{a: " * 1000,
    "laughs": LAUGHS + "runs: *a11\n",
    "itself": "&a [*a]",
    "itself in a mapping": "runs: &a {b: *a}",
    "a date that is none": "runs: 2020-99-99",
    "an object": "!!python/object/apply:os.getcwd []",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_it_is_one_line(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError) as refused:
        read_yaml(text)
    assert len(str(refused.value).splitlines()) == 1
    with pytest.raises(DamagedFileError):
        suite.parse(text, "x", "x.yaml")
    (tmp_path / "grid.yaml").write_text(text)
    with pytest.raises(DamagedFileError):
        tuning.read_grid(tmp_path / "grid.yaml", ["er"])
    monkeypatch.chdir(tmp_path)
    Path("runs").mkdir()
    presets.OWN.write_text(text)
    with pytest.raises(DamagedFileError):
        presets.preset("split-digits", "task", "task", "er")


def test_more_seeds_than_can_be_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run", "split-digits", "er"], ["suite", "run", "digits"], ["tune", "split-digits", "er"]):
        assert main([*words, "--seeds", "1000000000"]) == 2
        assert capsys.readouterr().err == "bcl: seeds must be at most 100,000, not 1,000,000,000\n"


def test_what_aliases_repeat_within_measure_is_read() -> None:
    assert read_yaml("{a: &a [1, 2], b: [*a, *a]}") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}


@pytest.mark.parametrize("runs", ["seeds: 1000000000", "seeds: 100, memory: [10, 20, 30], tasks: [1, 2]"])
def test_more_runs_than_can_be_meant(runs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "RUN_LIMIT", 500)
    with pytest.raises(InputError, match="more than 500 runs"):
        suite.parse(f"runs: [{{benchmark: split-digits, method: er, {runs}}}]", "x", "x.yaml")
    with pytest.raises(UserError, match="more than 500 runs"):
        suite.one_block("split-digits", ["er"], 1_000_000_000)
