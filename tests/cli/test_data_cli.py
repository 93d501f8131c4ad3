"""`bcl data` and runs on real data: what BCL_TEST_DATA names, where it is set."""

import json
import os
import time

import pytest

from bcl.cli import main

REAL = os.environ.get("BCL_TEST_DATA")
needs_data = pytest.mark.skipif(not REAL, reason="BCL_TEST_DATA names no directory with real data")


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


def say(capsys, *words):
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_status_of_an_empty_cache(empty_cache, capsys):
    report = json.loads(say(capsys, "data", "status", "--json"))
    assert report["cache"] == str(empty_cache)
    names = [row["name"] for row in report["data"]]
    assert names == ["mnist", "cifar10", "cifar100", "cub", "tiny-imagenet", "miniimagenet", "resnet18"]
    assert not any(row["present"] for row in report["data"])
    assert "bcl data import cub PATH" in next(row["hint"] for row in report["data"] if row["name"] == "cub")
    assert "missing" in say(capsys, "data", "status")
    assert not empty_cache.exists()


def test_the_list_of_benchmarks_says_what_is_missing(empty_cache, capsys):
    rows = {row["name"]: row for row in json.loads(say(capsys, "list", "benchmarks", "--json"))["benchmarks"]}
    wanted = {
        "permuted-mnist": (20, 3, 10, 60_000, 10_000, 256, "domain", "mlp"),
        "split-cifar100": (17, 3, 5, 2_500, 500, 65, "task", "resnet18-reduced"),
        "split-miniimagenet": (17, 3, 5, 2_500, 500, 65, "task", "resnet18-reduced"),
        "split-cub": (17, 3, 10, 300, 290, 50, "task", "resnet18-imagenet"),
        "split-cifar10": (5, 5, 2, 9_500, 2_000, 100, "class", "resnet18-reduced-plain"),
        "split-cifar100-10": (10, 10, 10, 4_750, 1_000, 200, "class", "resnet18-plain"),
        "split-tiny-imagenet": (20, 20, 10, 4_750, 500, 100, "class", "resnet18-plain"),
    }
    keys = ("tasks", "tuning_tasks", "classes_per_task", "train_per_task", "test_per_task", "memory_per_task")
    for name, values in wanted.items():
        assert tuple(rows[name][key] for key in (*keys, "scenario", "net")) == values, name
        assert rows[name]["data"] == "missing"
    assert rows["permuted-digits"]["data"] == "embedded"
    assert "bcl data status" in say(capsys, "list", "benchmarks")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["data", "import", "cifar", "x"], "did you mean cifar10 or cifar100?"),
        (["data", "verify", "imagenet"], "unknown data set 'imagenet'"),
        (["data", "verify", "mnist"], "bcl data fetch mnist"),
        (["data", "improt", "mnist", "x"], "did you mean import?"),
        (["run", "split-cub", "er", "--seed", "0"], "cub is not in the cache"),
        (["run", "split-digits", "er", "--seed", "0", "--net", "resnet18-imagenet"], "bcl data import resnet18 FILE"),
    ],
)
def test_mistakes_are_one_line(empty_cache, capsys, words, says):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error


@needs_data
def test_real_data_is_imported_and_verified(empty_cache, capsys):
    start = time.monotonic()
    say(capsys, "data", "import", "cifar100", f"{REAL}/cifar100.zip")
    seconds = time.monotonic() - start
    say(capsys, "data", "import", "mnist", f"{REAL}/mnist")
    say(capsys, "data", "import", "resnet18", f"{REAL}/resnet18-imagenet.pth")
    rows = {row["name"]: row for row in json.loads(say(capsys, "data", "status", "--json"))["data"]}
    for name, classes in (("mnist", 10), ("cifar100", 100)):
        assert rows[name]["present"]
        assert rows[name]["classes"] == classes
        assert sum(rows[name]["counts"].values()) == {"mnist": 70_000, "cifar100": 60_000}[name]
    assert rows["resnet18"]["counts"] == {"tensors": 122}
    assert "cifar100: 4 files match" in say(capsys, "data", "verify")
    assert seconds < 60


@needs_data
def test_bcl_beats_replay_beats_finetuning_on_real_digits(empty_cache, capsys):
    """Shorter than the record's run, and far from the margins: 5 tasks of 1,000 samples there, 4 of 600 here."""
    say(capsys, "data", "import", "mnist", f"{REAL}/mnist")
    words = ["--tasks", "4", "--samples", "600", "--seeds", "2", "--device", "cpu", "--out", "runs", "--json"]
    output = json.loads(say(capsys, "run", "permuted-mnist", "finetune", "er", "bcl-dual", *words))
    acc = {row["method"]: row["acc"]["mean"] for row in output["summary"]}
    assert acc["bcl-dual"] > acc["er"] + 1 > acc["finetune"] + 2


@needs_data
def test_the_pretrained_network_knows_images(empty_cache, capsys):
    """All weights but the classifier's are the file's; the classifier is the seed's."""
    import torch

    from bcl import Setting, build

    say(capsys, "data", "import", "resnet18", f"{REAL}/resnet18-imagenet.pth")
    weights = torch.load(f"{REAL}/resnet18-imagenet.pth", weights_only=True)
    settings = [Setting.split([[0, 1]], (3, 64, 64), seed=seed) for seed in (0, 1)]
    nets = [build("resnet18-imagenet", setting) for setting in settings]
    for name, tensor in nets[0].state_dict().items():
        if not name.startswith("fc."):
            assert torch.equal(tensor, weights[name]), name
    assert nets[0].fc.weight.shape == (2, 512)
    assert not torch.equal(nets[0].fc.weight, nets[1].fc.weight)
