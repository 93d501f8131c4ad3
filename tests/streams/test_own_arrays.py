"""The user's own arrays: `npz:FILE`."""

import os

import numpy as np
import pytest
from data_makers import snapshot

from bcl.cli import main
from bcl.errors import InputError, StorageError
from bcl.streams import benchmark, from_samples


def save(path, **changes):
    y = np.tile([3, 7], 20)
    arrays = {
        "x": np.arange(40, dtype=np.float64)[:, None] + np.zeros(4),
        "y": y,
        "task": np.repeat([1, 4], 20),
        "split": np.where(np.arange(40) % 5 < 2, "test", "train"),
    }
    np.savez(path, **{**arrays, **changes})
    return f"npz:{path}"


def test_arrays_become_tasks(cache_root, tmp_path):
    home = benchmark(save(tmp_path / "a.npz"))
    assert (home.scenario, home.learning_tasks, home.net) == ("domain", 2, "mlp")  # both tasks have both classes
    stream = home.stream(seed=0)
    assert stream.dataset.classes == ("3", "7")
    assert stream.setting.dtype == "float32"
    x, y = stream.train(1)
    wanted = {float(i) for i in range(20, 40) if i % 5 >= 2}
    assert set(x[:, 0].tolist()) == wanted
    assert all(int(v) % 2 == c for v, c in zip(x[:, 0], y, strict=True))


def test_uint8_arrays_stay_bytes(cache_root, tmp_path):
    name = save(tmp_path / "a.npz", x=np.zeros((40, 3, 20, 20), np.uint8))
    home = benchmark(name)
    assert home.stream(0).setting.dtype == "uint8"
    assert home.net == "resnet18-reduced"


@pytest.mark.parametrize("shape", [(40, 5), (40, 3, 5, 4)])
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_the_order_in_memory_does_not_matter(cache_root, tmp_path, monkeypatch, shape, dtype):
    """A pandas table is often Fortran-ordered; it is read in several passes where it is large."""
    monkeypatch.setattr("bcl.streams.own_npz.BLOCK", 7 * 60 * 8)
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    row, column = (
        benchmark(save(tmp_path / f"{order}.npz", x=np.asarray(x, order=order))).data for order in ("C", "F")
    )
    assert row.digest == column.digest
    assert np.array_equal(column.train_x, x[np.arange(40) % 5 >= 2])
    assert np.array_equal(column.test_x, x[np.arange(40) % 5 < 2])


@pytest.mark.parametrize("shape", [(40, 20, 20), (40, 4, 20, 3), (40, 20, 4, 1), (40, 20, 20, 2), (40, 20, 20, 1, 3)])
def test_other_layouts_are_lists_of_numbers(cache_root, tmp_path, shape):
    assert benchmark(save(tmp_path / "a.npz", x=np.zeros(shape, np.uint8))).net == "mlp"


def test_a_channel_axis_makes_images(cache_root, tmp_path):
    assert benchmark(save(tmp_path / "a.npz", x=np.zeros((40, 20, 20), np.uint8)[:, None])).net == "resnet18-reduced"


def test_floats_need_four_bytes_each(cache_root, tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 40 * (400 + 8) + 100})  # enough for bytes
    monkeypatch.setattr("bcl.data.new_entry.shutil.disk_usage", lambda _: usage)
    assert benchmark(save(tmp_path / "a.npz", x=np.zeros((40, 400), np.uint8))).net == "mlp"
    with pytest.raises(StorageError, match="free some space"):
        benchmark(save(tmp_path / "b.npz", x=np.zeros((40, 400), np.float32)))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_channels_come_first_in_python_too(channels):
    samples = [(np.zeros((5, 6, channels)), c, 0) for c in (0, 1)]
    with pytest.raises(InputError, match=rf"\(2, 5, 6, {channels}\) has its channels last"):
        from_samples(samples, samples)


def test_tuning_on_own_data_never_sees_a_test_sample(cache_root, tmp_path):
    home = benchmark(save(tmp_path / "a.npz"))
    test = {float(v) for t in range(2) for v in home.stream(0).test(t)[0][:, 0]}
    stream = home.stream(0, part="tune")
    for t in range(2):
        learnt, judged = ({float(v) for v in part[0][:, 0]} for part in (stream.train(t), stream.test(t)))
        assert len(judged) == 4  # a quarter of each class's six
        assert not learnt & judged
        assert not (learnt | judged) & test


OBJECTS = np.array(["a", 1] * 20, dtype=object)  # as pandas gives names
LAST = np.zeros((40, 20, 20, 3), np.uint8)  # the channels last

BAD = {
    "no array 'task'": lambda p: np.savez(p, x=np.zeros((2, 2)), y=np.zeros(2, int), split=np.zeros(2, int)),
    "40 samples in x and 39 values in y do not match": lambda p: save(p, y=np.zeros(39, int)),
    "split must be train or test": lambda p: save(p, split=np.full(40, "valid")),
    "task must be one row of whole numbers, not <U1 (40,)": lambda p: save(p, task=np.full(40, "a")),
    "task must be one row of whole numbers, not float64 (40,)": lambda p: save(p, task=np.zeros(40)),
    "y must be one row of whole numbers or names, not int64 (40, 1)": lambda p: save(p, y=np.zeros((40, 1), np.int64)),
    "split must be one row of train or test (or 0 or 1), not float64": lambda p: save(p, split=np.zeros(40)),
    "whole numbers up to int64, not uint64": lambda p: save(p, x=np.zeros((40, 4), np.uint64)),
    "whole numbers up to int64, not bool": lambda p: save(p, x=np.zeros((40, 4), bool)),
    "x must be an array of samples [n, ...], not one of shape (40,)": lambda p: save(p, x=np.zeros(40)),
    "NaN": lambda p: save(p, x=np.full((40, 4), np.nan)),
    "infinite values (as float32)": lambda p: save(p, x=np.full((40, 4), 1e300)),
    "y holds Python objects; save it as y.astype(str) or y.astype(int)\n": lambda p: save(p, y=OBJECTS),
    "task holds Python objects; save it as task.astype(int)\n": lambda p: save(p, task=OBJECTS),
    "split holds Python objects; save it as split.astype(str)\n": lambda p: save(p, split=OBJECTS),
    "images are [n, channels, height, width]: take x.transpose(0, 3, 1, 2)": lambda p: save(p, x=LAST),
    "task 1 has no test samples of class '9'": lambda p: save(p, y=np.r_[[7, 3, 9], np.tile([3, 7], 19)[:37]]),
    "task 2 has no training samples of class '3'": lambda p: save(
        p, split=np.where((np.arange(40) >= 20) | (np.arange(40) % 5 < 2), "test", "train")
    ),
}


def test_arrays_that_would_fill_the_memory(cache_root, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bcl.streams.own_npz.SMALL", 1 << 20)
    x = np.zeros((40, 50_000), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", x=x, y=np.tile([3, 7], 20), task=np.zeros(40, int), split=[0, 0, 1, 1] * 10)
    assert main(["run", f"npz:{tmp_path / 'a.npz'}", "er", "--seed", "0"]) == 2
    assert "would unpack to 2,00" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.setenv("BCL_DATA", str(cache_root))
    assert benchmark(f"npz:{tmp_path / 'a.npz'}").learning_tasks == 1


def test_as_many_labels_as_samples_or_none_is_read(cache_root, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(np.lib.format, "read_array", None)
    save(tmp_path / "a.npz", split=np.zeros(5, "U0"))
    assert main(["run", f"npz:{tmp_path / 'a.npz'}", "er", "--seed", "0"]) == 2
    error = capsys.readouterr().err
    assert "cannot be read" in error  # y, which is whole
    save(tmp_path / "b.npz", y=np.zeros(41, int))
    assert main(["run", f"npz:{tmp_path / 'b.npz'}", "er", "--seed", "0"]) == 2
    assert "40 samples in x and 41 values in y do not match" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_paths_that_must_not_be_read(cache_root, tmp_path, capsys, kind):
    os.mkfifo(tmp_path / "pipe")
    for path, says in ((tmp_path / "pipe", "a pipe, a socket or a device"), ("/tmp/\udcff", "not a name in UTF-8")):
        assert main(["run", f"{kind}:{path}", "er", "--seed", "0"]) == 2
        error = capsys.readouterr().err
        assert says in error
        assert error.count("\n") == 1


def test_damaged_own_data_is_one_line(cache_root, tmp_path, capsys):
    name = save(tmp_path / "a.npz")
    entry = cache_root / benchmark(name).data.name
    data = (entry / "train_task.npy").read_bytes()
    (entry / "train_task.npy").write_bytes(data[:-1] + b"\1")
    assert main(["run", name, "er", "--seed", "0"]) == 2
    error = capsys.readouterr().err
    assert "train_task.npy does not match its checksum); delete it and it is read again from its source" in error


@pytest.mark.parametrize("says", BAD)
def test_arrays_that_cannot_be_used(cache_root, tmp_path, capsys, says):
    BAD[says](tmp_path / "a.npz")
    cache_root.mkdir()
    assert main(["run", f"npz:{tmp_path / 'a.npz'}", "er", "--seed", "0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error
    assert [name for name, data in snapshot(cache_root).items() if data is not None] == []
