"""The user's own arrays: `npz:FILE`."""

import numpy as np
import pytest
from data_makers import snapshot

from bcl.cli import main
from bcl.streams import benchmark


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


def test_tuning_on_own_data_never_sees_a_test_sample(cache_root, tmp_path):
    home = benchmark(save(tmp_path / "a.npz"))
    test = {float(v) for t in range(2) for v in home.stream(0).test(t)[0][:, 0]}
    stream = home.stream(0, part="tune")
    for t in range(2):
        learnt, judged = ({float(v) for v in part[0][:, 0]} for part in (stream.train(t), stream.test(t)))
        assert len(judged) == 4  # a quarter of each class's six
        assert not learnt & judged
        assert not (learnt | judged) & test


BAD = {
    "no array 'task'": lambda p: np.savez(p, x=np.zeros((2, 2)), y=np.zeros(2, int), split=np.zeros(2, int)),
    "40 samples in x and 39 values in y do not match": lambda p: save(p, y=np.zeros(39, int)),
    "split must be train or test": lambda p: save(p, split=np.full(40, "valid")),
    "task must be whole numbers": lambda p: save(p, task=np.full(40, "a")),
    "y must be one row": lambda p: save(p, y=np.zeros((40, 1), int)),
    "x must be uint8 or floating point": lambda p: save(p, x=np.zeros((40, 4), np.int64)),
    "must be a C-ordered array": lambda p: save(p, x=np.asfortranarray(np.zeros((40, 4)))),
    "NaN": lambda p: save(p, x=np.full((40, 4), np.nan)),
    "Object arrays cannot be loaded": lambda p: save(p, y=np.array([{}] * 40, dtype=object)),
    "task 1 has no test samples of class '9'": lambda p: save(p, y=np.r_[[7, 3, 9], np.tile([3, 7], 19)[:37]]),
    "task 2 has no training samples of class '3'": lambda p: save(
        p, split=np.where((np.arange(40) >= 20) | (np.arange(40) % 5 < 2), "test", "train")
    ),
}


@pytest.mark.parametrize("says", BAD)
def test_arrays_that_cannot_be_used(cache_root, tmp_path, capsys, says):
    BAD[says](tmp_path / "a.npz")
    cache_root.mkdir()
    assert main(["run", f"npz:{tmp_path / 'a.npz'}", "er", "--seed", "0"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert says in error
    assert [name for name, data in snapshot(cache_root).items() if data is not None] == []
