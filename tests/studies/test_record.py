"""The record of a suite vouches for itself: a report is never made of a plan that somebody changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bcl.errors import DamagedFileError
from bcl.runs.store import RunStore
from bcl.studies.plan import RECORD, plan, read_record, save_record
from bcl.studies.suite import parse

SUITE = "{title: Ours, runs: [{benchmark: split-digits, method: er, memory: [10, 20], set: {lr: 1.0e-05}, seeds: 2}]}"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    suite = parse(SUITE, "ours", "ours.yaml")
    save_record(RunStore(tmp_path), suite, plan(suite))
    return tmp_path / RECORD


def test_it_is_read_as_it_was_written(record: Path) -> None:
    content = read_record(record.parent)
    assert content is not None
    assert [line["settings"] for line in content["lines"]] == [{"memory": 10}, {"memory": 20}]
    assert content["lines"][0]["set"] == {"lr": 1e-5}


@pytest.mark.parametrize(("old", "new"), [("memory: 10", "memory: 30"), ("seeds: 2", "seeds: 3"), ("lr: 1", "lr: 2")])
def test_another_digit_is_noticed(record: Path, old: str, new: str) -> None:
    text = record.read_text()
    assert old in text
    record.write_text(text.replace(old, new, 1))
    with pytest.raises(DamagedFileError, match=r"does not match its checksum.*writes it anew"):
        read_record(record.parent)


def test_a_line_that_was_cut_off_is_noticed(record: Path) -> None:
    content = yaml.safe_load(record.read_text())
    del content["lines"][1]
    record.write_text(yaml.safe_dump(content))
    with pytest.raises(DamagedFileError, match="checksum"):
        read_record(record.parent)


def test_an_older_record_is_read(record: Path) -> None:
    content = yaml.safe_load(record.read_text())
    del content["checksum"]
    record.write_text(yaml.safe_dump(content))
    assert read_record(record.parent) == content


def test_a_record_nested_without_end_is_damaged(record: Path) -> None:
    record.write_text("[" * 3000)
    with pytest.raises(DamagedFileError, match="is damaged"):
        read_record(record.parent)
