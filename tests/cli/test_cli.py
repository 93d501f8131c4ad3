"""The command line, as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from bcl.cli import main
from bcl.studies import suite

QUICK = ["--tasks", "2", "--samples", "40", "--workers", "1"]


def bcl(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_help_is_quick_and_does_not_load_torch() -> None:
    script = "import sys; from bcl.cli import main; main(['--help']); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for command in ("demo", "list", "run", "tune", "report"):
        assert command in done.stdout


def test_run_prints_one_json_object_that_keeps_the_contract(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["run", "split-digits", "finetune", "er", "offline", "--seeds", "2", *QUICK, "--out", tmp_path, "--json"]
    code, out, _ = bcl(capsys, *words)
    assert code == 0
    answer = json.loads(out)
    assert [(r["method"], r["seed"]) for r in answer["runs"]] == [
        (m, s) for m in ("finetune", "er", "offline") for s in (0, 1)
    ]
    for run in answer["runs"]:
        keys = {"benchmark", "scenario", "method", "seed", "acc", "fm", "la", "accuracy_matrix", "steps", "seconds"}
        assert keys | {"config"} <= run.keys()
        assert run["benchmark"] == "split-digits"
        assert run["scenario"] == "task"
        if run["method"] != "offline":
            matrix = run["accuracy_matrix"]
            assert run["acc"] == pytest.approx(sum(matrix[1]) / 2)
            assert run["la"] == pytest.approx((matrix[0][0] + matrix[1][1]) / 2)
            assert run["fm"] == pytest.approx(matrix[0][0] - matrix[1][0])
            assert run["steps"] == 8
    er = answer["summary"][1]
    accs = [r["acc"] for r in answer["runs"][2:4]]
    assert er["method"] == "er"
    assert er["seeds"] == 2
    assert er["acc"]["mean"] == pytest.approx(sum(accs) / 2)
    assert answer["summary"][2]["fm"] is None

    # The same runs again are read, not computed; in another place they are computed, to the same digits.
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert json.loads(bcl(capsys, *words)[1]) == answer
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}.keys() == files.keys()
    words[words.index(tmp_path)] = tmp_path / "again"
    again = json.loads(bcl(capsys, *words)[1])
    for old, new in zip(answer["runs"], again["runs"], strict=True):
        assert old["accuracy_matrix"] == new["accuracy_matrix"]
        assert old["weights_sha256"] == new["weights_sha256"]


def test_the_run_directory_is_readable_by_people(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bcl(capsys, "run", "split-digits", "er", "--seed", 3, *QUICK, "--out", tmp_path)
    (where,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert where.name.startswith("er-seed3-")
    names = {path.name for path in where.iterdir()}
    assert names == {"config.yaml", "result.json", "accuracy.csv", "log.jsonl", "weights.safetensors"}
    assert (where / "accuracy.csv").read_text().startswith("after_task,task_1,task_2\n1,")


def test_several_seeds_that_do_not_begin_at_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = bcl(capsys, "run", "split-digits", "er", "--seed", "2-4", *QUICK, "--out", tmp_path, "--json")
    assert [run["seed"] for run in json.loads(out)["runs"]] == [2, 3, 4]


def test_the_command_in_a_result_runs_it_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = bcl(
        capsys, "run", "split-digits", "er", "--seed", 1, *QUICK, "--set", "lr=0.07", "--out", tmp_path, "--json"
    )
    first = json.loads(out)["runs"][0]
    words = first["command"].split()[1:]
    _, out, _ = bcl(capsys, *words, "--out", tmp_path / "again", "--json")
    again = json.loads(out)["runs"][0]
    assert again["id"] == first["id"]
    assert again["weights_sha256"] == first["weights_sha256"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "permuted-digit", "er"], "unknown benchmark 'permuted-digit'; did you mean permuted-digits"),
        (["run", "permuted-digits", "bcl-daul"], "unknown method 'bcl-daul'; did you mean bcl-dual"),
        (["run", "permuted-digits", "er", "--sedes", "3"], "--seeds"),
        (["rnu", "permuted-digits", "er"], "unknown command 'rnu'; did you mean run"),
        (["run", "permuted-digits"], "METHOD"),
        (["run", "..", "er"], "your own data are named folder:.."),
        (["run", f"{__file__}?shuffle=false", "er"], f"your own data are named npz:{__file__}?shuffle=false"),
        (["run", "permuted-digits", "er", "--seeds", "0"], "seeds must be at least 1, not 0"),
        (["run", "permuted-digits", "er", "--seeds", "many"], "valid integer"),
        (["run", "permuted-digits", "er", "--seed", "-1"], "a seed is a number from 0"),
        (["run", "permuted-digits", "er", "--seed", "1", "--seeds", "2"], "not both"),
        (["run", "permuted-digits", "er", "--seed", "first"], "--seed: a seed is a number from 0"),
        (["run", "permuted-digits", "er", "--seed", ""], "--seed: a seed is a number from 0"),
        (["run", "permuted-digits", "er", "--seed", "0-99999999"], "at most 100,000 seeds, not 100,000,000"),
        (["run", "permuted-digits", "er", "--seed", "3-"], "several are two of them and a hyphen (2-4), not '3-'"),
        (["run", "permuted-digits", "er", "--seed", "4-2"], "the last seed comes after the first, not '4-2'"),
        (["run", "permuted-digits", "er", "--tasks", "-1"], "1 to 10 learning tasks, not -1"),
        (["run", "permuted-digits", "er", "--tasks", "11"], "1 to 10 learning tasks, not 11"),
        (["run", "permuted-digits", "er", "--samples", "0"], "samples must be at least 1"),
        (["run", "permuted-digits", "er", "--memory", "0"], "memory must be at least 1"),
        (["run", "permuted-digits", "er", "--scenario", "tsak"], "did you mean task"),
        (["run", "permuted-digits", "er", "--device", "tpu"], "unknown device 'tpu'"),
        (["run", "permuted-digits", "er", "--net", "lenet"], "unknown network 'lenet'"),
        (["run", "permuted-digits", "er", "--set", "lr"], "--set takes name=value"),
        (["run", "permuted-digits", "er", "--set", "lt=3"], "unknown hyper-parameter 'lt'; did you mean lr"),
        (["run", "permuted-digits", "er", "--set", "lr=-1"], "lr must be greater than 0"),
        (["run", "permuted-digits", "er", "--set", "lr=nan"], "lr must be a finite number"),
        (["run", "permuted-digits", "er", "--set", "replay_batch=1.5"], "replay_batch is a whole number"),
        (["list", "method"], "did you mean methods"),
        (["report", "/no/such/place"], "is not a directory"),
        (["tune", "permuted-digits", "er", "--trials", "0"], "trials must be at least 1"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = bcl(capsys, *words)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1, err
    assert message in err
    assert list(tmp_path.iterdir()) == [], "a mistake leaves nothing behind"


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    from bcl import __version__

    assert bcl(capsys, "--version") == (0, f"bcl {__version__}\n", "")


def test_report_prints_from_the_store_what_run_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = bcl(capsys, "run", "split-digits", "finetune", "er", "--seeds", 2, *QUICK, "--out", tmp_path, "--json")
    code, again, _ = bcl(capsys, "report", tmp_path, "--json")
    assert code == 0
    first, second = json.loads(out), json.loads(again)

    def by_id(run: dict) -> str:
        return run["id"]

    assert sorted(first["runs"], key=by_id) == sorted(second["runs"], key=by_id)
    assert sorted(first["summary"], key=str) == sorted(second["summary"], key=str)
    assert not (tmp_path / "report.html").exists()


def test_one_method_is_listed_with_its_hyper_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = bcl(capsys, "list", "bcl-dual")
    assert code == 0
    assert "inner_steps" in out
    assert "[ring, reservoir, balanced, dynamic]" in " ".join(out.split()), "the values that it can have"
    (row,) = json.loads(bcl(capsys, "list", "bcl-dual", "--json")[1])["methods"]
    assert row["hyper"]["inner_steps"]["meaning"]


def test_debug_shows_the_traceback() -> None:
    with pytest.raises(KeyError):
        main(["run", "permuted-digits", "no-such-method", "--debug"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    code, _, err = bcl(capsys, "run", "split-digits", "er", "--seed", 0, *QUICK, "--out", tmp_path / "x")
    assert code == 2
    assert "cannot write to" in err


def test_a_place_that_is_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("mine")
    code, _, err = bcl(capsys, "run", "split-digits", "er", "--seed", 0, *QUICK, "--out", tmp_path / "x")
    assert code == 2
    assert "cannot write to" in err
    assert err.count("\n") == 1
    assert (tmp_path / "x").read_text() == "mine"


def test_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    code, _, err = bcl(capsys, "run", "split-digits", "er", "--seed", 0, *QUICK, "--out", "/dev/full")
    assert code == 2
    assert "cannot write to" in err


@pytest.mark.parametrize("content", ["", "{", "[]", '{"acc": 3}', "\x00\x01"])
def test_a_damaged_result_is_named_and_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: str
) -> None:
    words = ["run", "split-digits", "er", "--seed", 0, *QUICK, "--out", tmp_path]
    bcl(capsys, *words)
    (path,) = tmp_path.glob("*/result.json")
    path.write_text(content)
    for command, expected in ((words, 1), (["report", tmp_path], 2)):  # one run that failed; nothing to report
        code, _, err = bcl(capsys, *command)
        assert code == expected
        assert f"{path} is damaged" in err
        assert err.count("\n") == 1
    assert path.read_text() == content


def test_a_damaged_checkpoint_is_named_and_left_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["run", "split-digits", "er", "--seed", 0, *QUICK, "--out", tmp_path]
    bcl(capsys, *words)
    (result,) = tmp_path.glob("*/result.json")
    whole = json.loads(result.read_text())
    result.unlink()
    checkpoint = result.with_name("checkpoint.safetensors")
    checkpoint.write_bytes(b"not a checkpoint")
    code, _, err = bcl(capsys, *words)
    assert code == 1
    assert "is damaged" in err
    assert "use --fresh" in err
    assert err.count("\n") == 1
    assert checkpoint.read_bytes() == b"not a checkpoint"
    assert bcl(capsys, *words, "--fresh")[0] == 0
    assert json.loads(result.read_text())["weights_sha256"] == whole["weights_sha256"]


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    content = json.loads(bcl(capsys, "list", "--json")[1])
    assert {"permuted-digits", "split-digits"} <= {row["name"] for row in content["benchmarks"]}
    for row in content["methods"]:
        assert row["reference"]
        assert row["memory"]
        assert row["cost"]
        assert set(row["scenarios"]) <= {"task", "domain", "class"}
    code, out, _ = bcl(capsys, "list")
    assert code == 0
    assert "bcl-dual" in out
    assert "…" not in out, "80 columns are enough"


def test_tuning_uses_the_tuning_tasks_and_run_uses_the_winner(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = bcl(capsys, "tune", "split-digits", "er", "--trials", 2, "--seeds", 1, "--workers", 1, "--json")
    assert code == 0
    trials = json.loads(out)["trials"]["er"]
    assert len(trials) == 2
    assert trials[0]["acc"] >= trials[1]["acc"]
    _, out, _ = bcl(capsys, "tune", "split-digits", "er", "--trials", 2, "--seeds", 1, "--workers", 1)
    assert out.startswith("er on split-digits (task), 5 tuning tasks: ACC in percent, mean of 1 seed\n")
    for path in tmp_path.glob("runs/tune/**/result.json"):
        assert json.loads(path.read_text())["config"]["part"] == "tune"
    quick = ("--trials", 1, "--seeds", 1, "--workers", 1, "--save", "other.yaml")
    _, out, _ = bcl(capsys, "tune", "permuted-digits", "finetune", "--tasks", 4, *quick)
    assert out.startswith("finetune on permuted-digits (domain), 4 tuning tasks: ACC")
    code, _, error = bcl(capsys, "tune", "split-digits", "er", "--tasks", 6, *quick)
    assert (code, error) == (2, "bcl: split-digits has 1 to 5 tuning tasks, not 6\n")
    _, out, _ = bcl(capsys, "run", "split-digits", "er", "--seed", 0, *QUICK, "--json")
    assert json.loads(out)["runs"][0]["config"]["hyper"]["lr"] == trials[0]["values"]["lr"]
    _, out, _ = bcl(capsys, "run", "split-digits", "er", "--seed", 0, *QUICK, "--set", "lr=0.0123", "--json")
    assert json.loads(out)["runs"][0]["config"]["hyper"]["lr"] == 0.0123


def test_demo_prints_a_table_and_writes_a_page(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tasks of the ten: the others add nothing but time."""
    shorter = partial(suite.one_block, options={"tasks": 2, "samples": 200})
    monkeypatch.setattr(suite, "one_block", shorter)
    code, out, err = bcl(capsys, "demo", "--seeds", 1, "--out", tmp_path)
    assert code == 0
    assert "bcl-dual" in out
    assert str(tmp_path / "report.html") in err
    assert "bcl-dual" in (tmp_path / "report.html").read_text()


def test_a_run_that_diverges_is_marked_and_a_suite_says_so_by_its_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["run", "split-digits", "er", "finetune", "--seed", 0, *QUICK, "--tasks", 3, "--set", "lr=1e30"]
    code, _, err = bcl(capsys, *words, "--out", tmp_path / "all")
    assert code == 0
    assert "er seed 0 diverged: its weights are not finite" in err
    code, out, _ = bcl(capsys, *words, "--out", tmp_path / "short", "--stop-diverged", "--json")
    assert code == 0
    assert [(len(run["accuracy_matrix"]), run["diverged"]) for run in json.loads(out)["runs"]] == [(1, True)] * 2
    suite = tmp_path / "s.yaml"
    suite.write_text(
        "{seeds: 1, runs: [{benchmark: split-digits, method: er, tasks: 2, samples: 20, set: {lr: 1.0e+30}}]}"
    )
    code, out, _ = bcl(capsys, "suite", "run", suite, "--out", tmp_path / "suite")
    assert code == 1
    assert "diverged" in out
