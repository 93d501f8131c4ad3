"""The user's own data: folders, arrays, Python; their own network; and what a run's name depends on."""

import json
import os
import time

import numpy as np
import pytest
import torch
from data_makers import png
from torch.utils.data import TensorDataset

from bcl.cli import main
from bcl.data import cache
from bcl.errors import InputError, UserError
from bcl.nets import build
from bcl.runs.config import RunConfig
from bcl.streams import benchmark, from_datasets, from_samples

TASKS = {"task_01": ("ant", "bee"), "task_02": ("bee", "yak"), "task_10": ("cat",)}


@pytest.fixture
def folder(cache_root, tmp_path):
    """Three tasks; a class of the first comes back in the second. A pixel tells task and class."""
    for t, (task, classes) in enumerate(TASKS.items()):
        for split, count in (("train", 8), ("test", 2)):
            for c in classes:
                where = tmp_path / "photos" / task / split / c
                where.mkdir(parents=True)
                for i in range(count):
                    (where / f"{i}.png").write_bytes(png(np.full((3, 6, 5), 50 * t + ord(c[0]) % 32 + i, np.uint8)))
    return tmp_path / "photos"


def test_a_folder_becomes_tasks(folder):
    home = benchmark(f"folder:{folder}")
    assert (home.scenario, home.learning_tasks, home.net) == ("task", 3, "mlp")
    stream = home.stream(seed=0)
    assert stream.dataset.classes == ("ant", "bee", "yak", "cat")  # in the order in which the tasks bring them
    assert stream.setting.classes == ((0, 1), (1, 2), (3,))
    assert stream.setting.shape == (3, 6, 5)
    x, y = stream.train(1)
    first = {1: 50 + ord("b") % 32, 2: 50 + ord("y") % 32}
    assert sorted(x[:, 0, 0, 0].tolist()) == sorted(50 + ord(c) % 32 + i for c in "by" for i in range(8))
    assert all(first[int(c)] <= v < first[int(c)] + 8 for v, c in zip(x[:, 0, 0, 0], y, strict=True))
    assert len(stream.test(2)[1]) == 2


def test_the_seed_decides_the_order_of_arrival(folder):
    home = benchmark(f"folder:{folder}")
    one, again, other = (home.stream(seed).train(0)[0][:, 0, 0, 0].tolist() for seed in (0, 0, 1))
    assert one == again
    assert one != other
    assert sorted(one) == sorted(other)


@pytest.mark.parametrize("scenario", ["task", "domain", "class"])
def test_every_scenario_learns_it(folder, tmp_path, capsys, scenario):
    arguments = ["--scenario", scenario, "--seed", "0", "--out", str(tmp_path / "runs"), "--device", "cpu"]
    from bcl.runs.claims import compute
    from bcl.runs.store import RunStore

    config = RunConfig.resolve(f"folder:{folder}", "er", 0, scenario=scenario)
    result = compute(config, RunStore(tmp_path / "runs"))
    assert len(result["accuracy_matrix"]) == 3
    assert main(["run", f"folder:{folder}", "er", *arguments, "--json"]) == 0  # read from the store, not run again
    assert capsys.readouterr().out.startswith('{"runs"')


def test_own_data_say_what_is_not_tuned_and_how_to_tune(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["--seed", "0", "--samples", "8", "--device", "cpu", "--workers", "1", "--batch-size", "4"]
    assert main(["run", "folder:photos?drift=9", "er", "finetune", *words]) == 0
    said = capsys.readouterr().err
    assert "on defaults: er, finetune; to tune: bcl tune 'folder:photos?drift=9' er finetune --scenario task" in said
    os.makedirs("runs", exist_ok=True)
    (tmp_path / "runs" / "hyper.yaml").write_text("'folder:photos': {task: {er: {lr: 0.05}}}")
    assert main(["run", "folder:photos?drift=9", "er", "finetune", *words, "--json"]) == 0
    said = capsys.readouterr()
    assert "on defaults: finetune; to tune" in said.err
    runs = json.loads(said.out)["runs"]
    assert [run["config"]["hyper"]["lr"] for run in runs if run["method"] == "er"] == [0.05]
    assert {run["config"]["batch_size"] for run in runs} == {4}
    assert {run["steps"] for run in runs} == {6}  # two of every task
    assert all("--batch-size 4" in run["command"] for run in runs)
    assert main(["run", "folder:photos", "finetune", *words, "--set", "lr=0.2"]) == 0
    assert "on defaults" not in capsys.readouterr().err
    assert main(["run", "split-digits", "finetune", *words]) == 0
    assert "on defaults" not in capsys.readouterr().err


def test_a_folder_is_read_once_and_again_when_it_changes(folder, monkeypatch):
    def run_id():
        return RunConfig.resolve(f"folder:{folder}", "er", 0).id

    first = run_id()
    entry = next((cache.root() / "own").iterdir())
    written = (entry / "manifest.json").stat().st_mtime_ns
    time.sleep(0.01)
    assert run_id() == first
    assert (entry / "manifest.json").stat().st_mtime_ns == written
    (folder / "task_01" / "train" / "ant" / "0.png").write_bytes(png(np.zeros((3, 6, 5), np.uint8)))
    assert run_id() != first
    assert len(list((cache.root() / "own").iterdir())) == 1  # the changed one took the place of the first


def test_a_run_stops_where_the_data_changed_after_it_was_planned(folder, tmp_path):
    from bcl.runs.claims import compute
    from bcl.runs.store import RunStore

    config = RunConfig.resolve(f"folder:{folder}", "er", 0)
    (folder / "task_01" / "train" / "ant" / "0.png").write_bytes(png(np.zeros((3, 6, 5), np.uint8)))
    with pytest.raises(InputError, match="has changed since"):
        compute(config, RunStore(tmp_path / "runs"))


@pytest.mark.parametrize("name", [b"0.png", b"\xff.png"])
def test_files_in_a_folder_that_cannot_be_read(folder, name):
    place = folder / "task_01" / "train" / "ant"
    (place / "0.png").unlink()
    os.mkfifo(place / "0.png") if name == b"0.png" else (place / "1.png").rename(place / os.fsdecode(name))
    with pytest.raises(InputError, match=r"a pipe, a socket|not UTF-8: 'task_01/train/ant/\\udcff.png'"):
        benchmark(f"folder:{folder}")


def test_images_that_differ_in_size_need_a_word(folder):
    (folder / "task_01" / "train" / "ant" / "0.png").write_bytes(png(np.zeros((3, 9, 9), np.uint8)))
    with pytest.raises(InputError, match=r"images differ in size \(5x6, 9x9\).*\?size="):
        benchmark(f"folder:{folder}")
    assert benchmark(f"folder:{folder}?size=16").stream(0).setting.shape == (3, 16, 16)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("folder:nowhere", "is not a directory"),
        ("npz:nowhere.npz", "is not a file"),
        ("folder:", "unknown kind of data"),
        ("folder:.?colour=1", "unknown option of folder: 'colour'"),
        ("folder:.?size=big", "size is a number of pixels"),
        ("folder:.", "holds no task_01/train/<class>/*"),
        ("npz:a.txt", "cannot be read"),
    ],
)
def test_names_that_lead_nowhere(cache_root, tmp_path, monkeypatch, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(UserError) as error:
        benchmark(name)
    assert says in str(error.value)


def test_a_missing_folder_is_named_with_its_task(folder):
    for path in (folder / "task_02" / "test" / "yak").iterdir():
        path.unlink()
    says = r"task 2 \(task_02\) has no test images of 'yak': .*/photos/task_02/test/yak/ is missing or empty"
    with pytest.raises(InputError, match=says):
        benchmark(f"folder:{folder}")
    for path in (folder / "task_02" / "test" / "bee").iterdir():
        path.rename(folder / "task_02" / "test" / "yak" / path.name)
    with pytest.raises(InputError, match=r"task 2 \(task_02\) has no test images of 'bee': .*/task_02/test/bee/ is"):
        benchmark(f"folder:{folder}")
    (folder / "task_10" / "train").rename(folder / "task_10" / "training")
    for path in (folder / "task_10" / "test").rglob("*.png"):
        path.unlink()
    (folder / "task_02").rename(folder / ".hidden")
    says = r"task 2 \(task_10\) has no train images: .*/photos/task_10/train/<class>/ is missing or empty"
    with pytest.raises(InputError, match=says):
        benchmark(f"folder:{folder}")


@pytest.fixture
def flat(cache_root, tmp_path):
    """A folder without tasks. A pixel tells the class."""
    for split, count in (("train", 6), ("test", 2)):
        for c in ("fox", "ant", "cat", "bee", "elk"):
            where = tmp_path / "flat" / split / c
            where.mkdir(parents=True)
            for i in range(count):
                (where / f"{i}.png").write_bytes(png(np.full((3, 6, 5), 2 * ord(c[0]) + i, np.uint8)))
    return tmp_path / "flat"


def test_a_flat_folder_is_cut_into_tasks(flat):
    home = benchmark(f"folder:{flat}?classes_per_task=2")
    assert (home.learning_tasks, home.scenario) == (3, "task")
    stream = home.stream(0)
    assert stream.dataset.classes == ("ant", "bee", "cat", "elk", "fox")
    assert stream.setting.classes == ((0, 1), (2, 3), (4,))
    assert [stream.train_size(t) for t in range(3)] == [12, 12, 6]
    assert set(stream.test(2)[0][:, 0, 0, 0].tolist()) == {2 * ord("f"), 2 * ord("f") + 1}
    assert benchmark(f"folder:{flat}?classes_per_task=5&size=9").stream(0).setting.shape == (3, 9, 9)


def test_a_flat_folder_that_cannot_be_cut(flat, folder):
    with pytest.raises(InputError, match=r"and no tasks; folder:.*/flat\?classes_per_task=2 makes tasks"):
        benchmark(f"folder:{flat}")
    with pytest.raises(InputError, match=r"holds no train/<class>/\* and test/<class>/\*"):
        benchmark(f"folder:{folder}?classes_per_task=2")
    with pytest.raises(InputError, match="classes_per_task is a whole number from 1"):
        benchmark(f"folder:{flat}?classes_per_task=0")
    for path in (flat / "test" / "cat").iterdir():
        path.unlink()
    with pytest.raises(
        InputError, match=r"task 2 \(task_2\) has no test images of 'cat': .*/flat/test/cat/ is missing"
    ):
        benchmark(f"folder:{flat}?classes_per_task=2")


def test_any_iterable_in_python():
    def batches(count):
        for t in (5, 9):
            for i in range(count):
                yield torch.full((3, 4), float(t + i)), torch.tensor([t, t + 1, t]), t

    home = from_samples(batches(4), batches(1), memory=7, batch_size=2, shuffle=False)
    stream = home.stream(seed=0)
    assert stream.setting.classes == ((0, 1), (2, 3))
    assert (stream.setting.memory, stream.setting.batch_size) == (7, 2)
    assert stream.train(1)[0][:, 0].tolist() == [9.0] * 3 + [10.0] * 3 + [11.0] * 3 + [12.0] * 3  # in the order given
    assert stream.train(1)[1].tolist() == [2, 3, 2] * 4


def test_a_torch_data_set_with_a_task_split():
    x, y = torch.arange(12).float()[:, None], torch.arange(12) % 6
    home = from_datasets(TensorDataset(x, y), TensorDataset(x, y), tasks=[[4, 1], [0, 5]], scenario="class")
    stream = home.stream(seed=0)
    assert stream.setting.classes == ((0, 1), (2, 3))
    assert stream.dataset.classes == ("1", "4", "0", "5")
    assert sorted(stream.train(0)[0][:, 0].tolist()) == [1, 4, 7, 10]
    with pytest.raises(InputError, match="in two tasks"):
        from_datasets(TensorDataset(x, y), TensorDataset(x, y), tasks=[[0, 1], [1, 2]])
    for tasks, said in (
        ([[4, 1], [0, 99]], "no sample is of class 99, which task 2 has"),
        ([[4, 1], []], r"tasks are lists of their classes, such as \[\[0, 1\], \[2, 3\]\], not \[\]"),
        ([0, 1], "tasks are lists of their classes, .*, not 0"),
    ):
        with pytest.raises(InputError, match=said):
            from_datasets(TensorDataset(x, y), TensorDataset(x, y), tasks=tasks)


def test_python_data_that_cannot_be_used():
    good = [(np.zeros(3), 0, 0), (np.zeros(3), 1, 0)]
    with pytest.raises(InputError, match="no samples"):
        from_samples([], good)
    with pytest.raises(InputError, match="shape"):
        from_samples([*good, (np.zeros(4), 1, 0)], good)
    with pytest.raises(InputError, match="whole-number labels"):
        from_samples([(np.zeros((2, 3)), np.zeros(2), 0)], good)
    with pytest.raises(InputError, match="task 1 has no test samples of class '1'"):
        from_samples(good, good[:1])
    for bad in (np.nan, np.inf, 1e300):
        with pytest.raises(InputError, match="train: samples contain NaN or infinite values"):
            from_samples([*good, (np.full(3, bad), 1, 0)], good)


NET = """
from torch import nn
def good(setting):
    return nn.Sequential(nn.Flatten(), nn.Linear({width}, setting.n_classes))
def wrong(setting):
    return nn.Sequential(nn.Flatten(), nn.Linear(90, 3))
def number(setting):
    return 3
def fails(setting):
    raise RuntimeError("on purpose")
"""


def test_an_own_network(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(os.sys.path))
    (tmp_path / "own_net_of_a_test.py").write_text(NET.format(width=90))
    stream = benchmark(f"folder:{folder}").stream(0)
    one, again = (build("own_net_of_a_test:good", stream.setting) for _ in range(2))
    assert torch.equal(one[1].weight, again[1].weight)
    first = RunConfig.resolve(f"folder:{folder}", "er", 0, net="own_net_of_a_test:good").id
    (tmp_path / "own_net_of_a_test.py").write_text(NET.format(width=90) + "# changed")
    assert RunConfig.resolve(f"folder:{folder}", "er", 0, net="own_net_of_a_test:good").id != first
    for name, says in {
        "wrong": r"gives \(2, 3\) for two samples, not \(2, 4\) logits",
        "number": "returned int, not a torch.nn.Module",
        "fails": "failed .*on purpose",
        "absent": "has no function 'absent'",
    }.items():
        with pytest.raises(InputError, match=says):
            build(f"own_net_of_a_test:{name}", stream.setting)
    with pytest.raises(InputError, match="cannot import no_such_module"):
        RunConfig.resolve(f"folder:{folder}", "er", 0, net="no_such_module:f")


def test_bytes_are_not_mixed_with_other_numbers() -> None:
    samples = [(np.zeros((2, 3), dtype), np.array([0, 1]), 0) for dtype in (np.float32, np.uint8)]
    with pytest.raises(InputError, match="train: some samples are bytes, from 0 to 255, and some are other numbers"):
        from_samples(samples, samples[:1])
