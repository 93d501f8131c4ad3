"""A result vouches for itself; a damaged one is one failed run, and the others go on."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from bcl.cli import main
from bcl.errors import DamagedFileError
from bcl.runs.claims import compute
from bcl.runs.config import RunConfig
from bcl.runs.locks import Lock
from bcl.runs.result import ARCHIVE, find_results, read_result, sealed, write_archive
from bcl.runs.store import FILES, RunStore
from bcl.schedule.local import run_all

CONFIGS = [RunConfig.resolve("split-digits", "finetune", seed, tasks=2, samples=20) for seed in (0, 1)]


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("computed")
    for config in CONFIGS:
        compute(config, RunStore(root))
    return root


@pytest.fixture
def store(computed: Path, tmp_path: Path) -> RunStore:
    """Two complete runs."""
    shutil.copytree(computed, tmp_path / "store")
    return RunStore(tmp_path / "store")


def change(path: Path, seal: bool, **changes: Any) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps(sealed(content) if seal else content))


def test_a_whole_result_is_read(store: RunStore) -> None:
    result = store.result(CONFIGS[0])
    assert result is not None
    assert result["id"] == CONFIGS[0].id
    assert result["code"] == CONFIGS[0].code
    results, problems = find_results(store.root)
    assert [one["id"] for one in results] == sorted(config.id for config in CONFIGS)
    assert problems == []


def test_what_was_changed_by_hand_does_not_match_the_checksum(store: RunStore) -> None:
    path = store.directory(CONFIGS[0]) / "result.json"
    change(path, False, seconds=0.001)
    with pytest.raises(DamagedFileError, match=f"checksum.*delete {path.parent} and run again"):
        read_result(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"acc": 99.0}, "its acc does not follow"),
        ({"fm": None}, "its fm does not follow"),
        ({"la": float("nan")}, "its la does not follow"),
        ({"accuracy_matrix": [[50.0, 50.0], [50.0, 101.0]]}, "not between 0 and 100"),
        ({"accuracy_matrix": [[50.0, float("nan")], [50.0, 50.0]]}, "not between 0 and 100"),
        ({"before": [50.0, -1.0]}, "not between 0 and 100"),
        ({"accuracy_matrix": [[50.0, 50.0], [50.0]]}, "a row and a column per task"),
        ({"accuracy_matrix": []}, "a row and a column per task"),
        ({"accuracy_matrix": 3}, "damaged"),
        ({"accuracy_matrix": [["50", "50"], ["50", "50"]]}, "damaged"),
    ],
)
def test_what_cannot_be_is_refused_even_with_a_checksum(store: RunStore, changes: dict[str, Any], words: str) -> None:
    path = store.directory(CONFIGS[0]) / "result.json"
    change(path, True, **changes)
    with pytest.raises(DamagedFileError, match=words):
        read_result(path)


def test_a_missing_key_is_named(store: RunStore) -> None:
    path = store.directory(CONFIGS[0]) / "result.json"
    content = json.loads(path.read_text())
    del content["weights_sha256"]
    path.write_text(json.dumps(sealed(content)))
    with pytest.raises(DamagedFileError, match="'weights_sha256' is missing"):
        read_result(path)


def test_the_result_of_another_run_is_refused(store: RunStore) -> None:
    ours, theirs = (store.directory(config) / "result.json" for config in CONFIGS)
    shutil.copy(theirs, ours)
    with pytest.raises(DamagedFileError, match=f"it is the result of {CONFIGS[1].id}"):
        read_result(ours)


@pytest.mark.parametrize(("name", "old", "new"), [("accuracy.csv", "\n1,", "\n1,9"), ("log.jsonl", "[", "[9")])
def test_files_that_repeat_the_matrix_must_agree(store: RunStore, name: str, old: str, new: str) -> None:
    path = store.directory(CONFIGS[0]) / name
    text = path.read_text()
    for damaged in (text.replace(old, new, 1), text[: len(text) // 2], text.splitlines(True)[0], "\x00"):
        path.write_text(damaged)
        with pytest.raises(DamagedFileError):
            read_result(path.with_name("result.json"))
    path.unlink()
    read_result(path.with_name("result.json"))  # it says all by itself


@pytest.mark.parametrize(
    ("name", "old", "new"), [("config.yaml", "seed: 0", "seed: 3"), ("log.jsonl", '"steps": 2', '"steps": 3')]
)
def test_files_that_people_read_are_what_was_written(store: RunStore, name: str, old: str, new: str) -> None:
    path = store.directory(CONFIGS[0]) / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(DamagedFileError, match=f"{name} is not what was written beside it"):
        read_result(path.with_name("result.json"))
    older = {
        key: value for key, value in json.loads(path.with_name("result.json").read_text()).items() if key != "files"
    }
    path.with_name("result.json").write_text(json.dumps(sealed(older)))
    read_result(path.with_name("result.json"))  # one that was written before files were vouched for


def test_what_a_kill_just_after_the_result_left_is_removed(store: RunStore) -> None:
    where, held = (store.directory(config) for config in CONFIGS)
    for folder in (where, held):
        for name in ("checkpoint.safetensors", "lock", ".result.json.x"):
            (folder / name).write_text("")
    with Lock.acquire(held):
        assert len(run_all(CONFIGS, store)) == 2
        assert (held / "checkpoint.safetensors").exists(), "another process is about to remove it"
    assert sorted(path.name for path in where.iterdir()) == sorted(FILES)


def test_a_result_nested_without_end_is_damaged(store: RunStore) -> None:
    path = store.directory(CONFIGS[0]) / "result.json"
    path.write_text("[" * 100_000)
    assert len(find_results(store.root)[1]) == 1
    (store.root / ARCHIVE).mkdir()
    path.unlink()
    os.mkfifo(path)
    assert len(find_results(store.root)[0]) == 1, "what is no file is not read: a pipe would be waited for"


def test_weights_are_those_of_the_result(store: RunStore) -> None:
    assert store.weights(CONFIGS[0])
    path = store.directory(CONFIGS[0]) / "weights.safetensors"
    shutil.copy(store.directory(CONFIGS[1]) / "weights.safetensors", path)
    with pytest.raises(DamagedFileError, match="not of this result"):
        store.weights(CONFIGS[0])
    tensors = load_file(path)
    save_file(tensors, path)
    with pytest.raises(DamagedFileError):
        store.weights(CONFIGS[0])


def test_a_damaged_result_is_one_failed_run_and_the_others_go_on(store: RunStore) -> None:
    third = RunConfig.resolve("split-digits", "finetune", 2, tasks=2, samples=20)
    path = store.directory(CONFIGS[0]) / "result.json"
    path.write_text("{")
    assert [store.state(config) for config in (*CONFIGS, third)] == ["failed", "done", "missing"]
    assert "is damaged" in str(store.failure(CONFIGS[0]))
    failures: dict[int, BaseException] = {}
    results = run_all([*CONFIGS, third], store, workers=1, on_failure=failures.__setitem__)
    assert [result["id"] for result in results] == [CONFIGS[1].id, third.id]
    assert list(failures) == [0]
    assert isinstance(failures[0], DamagedFileError)
    assert path.read_text() == "{"
    results, problems = find_results(store.root)
    assert len(results) == 2
    assert len(problems) == 1
    shutil.rmtree(path.parent)
    assert len(run_all([*CONFIGS, third], store, workers=1)) == 3, "as the line says"


def test_without_anyone_to_tell_it_is_raised_when_the_others_are_done(store: RunStore) -> None:
    third = RunConfig.resolve("split-digits", "finetune", 2, tasks=2, samples=20)
    (store.directory(CONFIGS[0]) / "result.json").write_text("{")
    with pytest.raises(DamagedFileError):
        run_all([*CONFIGS, third], store, workers=1)
    assert store.state(third) == "done"


def test_a_suite_with_a_damaged_result_finishes_and_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = "[{benchmark: split-digits, method: finetune, tasks: 2, samples: 20}]"
    Path("two.yaml").write_text(f"{{seeds: 2, runs: {runs}}}")
    words = ["suite", "run", "two.yaml", "--workers", "1", "--device", "cpu"]
    assert main(words) == 0
    path = min(Path("runs/two").glob("*/result.json"))
    change(path, False, acc=99.9)
    capsys.readouterr()
    assert main([*words, "--json"]) == 1
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert len(answer["runs"]) == 1
    assert len(answer["failures"]) == 1
    assert f"delete {path.parent} and run again" in err
    assert main(["suite", "show", "two.yaml", "--device", "cpu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == {"total": 2, "done": 1, "failed": 1}


def test_an_archive_is_read_like_a_store_and_a_damaged_line_is_named(store: RunStore, tmp_path: Path) -> None:
    results, _ = find_results(store.root)
    path = tmp_path / "kept" / ARCHIVE
    path.parent.mkdir()
    write_archive(results, path)
    assert find_results(path.parent) == (results, [])
    path.write_text(path.read_text().replace('"acc": ', '"acc": 1', 1) + "{\n")
    again, problems = find_results(path.parent)
    assert again == results[1:]
    assert [problem.split(" is damaged")[0] for problem in problems] == [f"{path}, line 1,", f"{path}, line 3,"]
    assert "does not match its checksum" in problems[0]
    path.write_text("")
    assert find_results(path.parent) == ([], [f"{path} is empty; get a fresh copy"])
