"""Sources in Python: torch's data sets and loaders, rows of Hugging Face, river's streams, tokens, packed samples."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import bcl
from bcl.errors import InputError
from bcl.streams import Packing, benchmark, from_datasets, from_loader, from_samples

X, Y = torch.arange(24).float()[:, None] + torch.zeros(2), torch.arange(24) % 6
SETS = TensorDataset(X, Y), TensorDataset(X[:12], Y[:12])


def content(stream):
    return [(x[:, 0].tolist(), y.tolist()) for x, y in map(stream.train, range(len(stream)))]


def test_a_loader_gives_what_its_data_set_gives():
    loaders = [DataLoader(part, batch_size=5) for part in SETS]
    for tasks in ([[4, 1], [0, 5]], None):
        of_sets = from_datasets(*SETS, tasks=tasks, shuffle=False).stream(0)
        of_loaders = from_loader(*loaders, tasks=tasks, shuffle=False).stream(0)
        assert content(of_sets) == content(of_loaders)
        assert of_sets.setting == of_loaders.setting
    assert of_loaders.setting.classes == (tuple(range(6)),)  # without tasks, one
    assert content(of_loaders)[0][0] == list(range(24))


def test_a_loader_may_say_the_tasks_itself():
    tasks = Y // 3
    parts = [DataLoader(TensorDataset(X, Y, tasks), batch_size=7), DataLoader(TensorDataset(X, Y, tasks), batch_size=7)]
    stream = from_loader(*parts, shuffle=False).stream(0)
    assert stream.setting.classes == ((0, 1, 2), (3, 4, 5))
    assert content(stream)[1][0] == [i for i in range(24) if i % 6 >= 3]


def test_a_stream_of_torchs_is_iterated():
    class Arriving(IterableDataset):
        def __iter__(self):
            return iter(zip(X, Y, strict=True))

    assert content(from_datasets(Arriving(), Arriving(), shuffle=False).stream(0))[0][0] == list(range(24))


class Rows(list):
    """As Hugging Face's data sets: rows are dictionaries."""


def rows(**columns):
    return Rows(dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def test_rows_are_read_by_their_names():
    made = rows(text=X.tolist(), label=[f"class {c}" for c in Y.tolist()], year=(Y // 3 + 2020).tolist())
    stream = from_datasets(made, made, x="text", y="label", task="year", shuffle=False).stream(0)
    assert stream.dataset.classes == tuple(f"class {c}" for c in range(6))
    assert content(stream)[1] == ([i for i in range(24) if i % 6 >= 3], [3, 4, 5] * 4)
    split = from_datasets(made, made, [["class 5"], ["class 0", "class 1"]], x="text", y="label").stream(0)
    assert split.dataset.classes == ("class 5", "class 0", "class 1")


def test_images_become_bytes_and_a_transform_gives_them_one_size():
    sizes = [(8, 6), (5, 9)] * 4
    images = [Image.new("RGB", size, (10 * i, 0, 255)) for i, size in enumerate(sizes)]
    made = rows(image=images, label=[0, 1] * 4)
    with pytest.raises(InputError, match=r"shape \(3, 9, 5\) among samples of shape \(3, 6, 8\); a `transform`"):
        from_datasets(made, made, x="image", y="label")
    home = from_datasets(made, made, x="image", y="label", transform=lambda image: image.resize((4, 3)), shuffle=False)
    x, _ = home.stream(0).train(0)
    assert (x.dtype, x.shape) == (np.uint8, (8, 3, 3, 4))
    assert x[:, :, 0, 0].tolist() == [[10 * i, 0, 255] for i in range(8)]
    grey = rows(image=[image.convert("L") for image in images[::2]], label=[0, 1, 0, 1])
    assert from_datasets(grey, grey, x="image", y="label").stream(0).setting.shape == (1, 6, 8)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "samples are dictionaries; say what is what: x=..., y=... of text, label"),
        ({"x": "words", "y": "label"}, "samples have no 'words'; they have text, label"),
        ({"x": "text", "y": "label", "task": "year"}, "samples have no 'year'"),
    ],
)
def test_rows_that_cannot_be_read(options, says):
    made = rows(text=X.tolist(), label=Y.tolist())
    with pytest.raises(InputError) as error:
        from_datasets(made, made, **options)
    assert says in str(error.value)


def test_things_that_are_no_samples():
    with pytest.raises(InputError, match=r"a sample must be \(x, y\), .* not int"):
        from_datasets([1, 2], [1, 2])


def test_a_data_set_of_hugging_face():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict(
        {"tokens": [[i, i + 1] for i in range(24)], "mask": [[1, 0]] * 24, "label": Y.tolist()}
    )
    packing = Packing.of({name: made[:2][name] for name in ("tokens", "mask")})
    stream = from_datasets(made, made, [[0, 1, 2], [3, 4, 5]], x=packing, y="label", shuffle=False).stream(0)
    assert stream.setting.dtype == "int64"
    assert stream.train(1)[0][0].tolist() == [3, 4, 1, 0]
    images = datasets.Dataset.from_dict({"image": [Image.new("RGB", (4, 4))] * 4, "label": [0, 1, 0, 1]})
    images = images.cast_column("image", datasets.Image())
    assert from_datasets(images, images, x="image", y="label").stream(0).setting.shape == (3, 4, 4)


def test_a_long_stream_of_rivers_is_learnt_as_it_came():
    """5,300 samples of two classes that no line separates, one pass: far above the share of the larger class."""
    river = pytest.importorskip("river.datasets")
    samples = [(np.array(list(x.values())), int(y), 0) for x, y in river.Bananas()]
    assert len(samples) == 5300
    home = from_samples(samples, samples[::10], scenario="domain", shuffle=False, memory=500)
    stream = home.stream(0)
    learner = bcl.ER(bcl.build("mlp", stream.setting), stream.setting, lr=0.05, memory="reservoir", replay_current=True)
    result = bcl.run(learner, stream, prequential=True)
    assert result.steps == 530
    assert result.prequential > 80
    halves = [
        sum(right for _, right in part) / sum(n for n, _ in part)
        for part in (result.windows[:20], result.windows[-20:])
    ]
    assert halves[1] > halves[0] + 0.05


def test_tokens_stay_whole_numbers():
    samples = [(np.array([i, 2**40]), i % 2, 0) for i in range(6)]
    stream = from_samples(samples, samples, dtype="int64", shuffle=False).stream(0)
    assert stream.setting.dtype == "int64"
    assert stream.train(0)[0].tolist() == [[i, 2**40] for i in range(6)]
    assert from_samples(samples, samples).stream(0).setting.dtype == "float32"
    with pytest.raises(InputError, match="whole numbers, as dtype='int64' says, not float64"):
        from_samples([(np.zeros(2), 0, 0)], samples, dtype="int64")
    with pytest.raises(InputError, match="give a network that embeds them"):
        bcl.build("mlp", stream.setting)


def test_tokens_in_a_file(cache_root, tmp_path):
    x = np.arange(24, dtype=np.int32).reshape(8, 3) - 5
    arrays = {"x": x, "y": np.tile([0, 1], 4), "task": np.zeros(8, int), "split": np.repeat(["train", "test"], 4)}
    np.savez(tmp_path / "a.npz", **arrays)
    stream = benchmark(f"npz:{tmp_path / 'a.npz'}?shuffle=false").stream(0)
    assert (stream.setting.dtype, stream.train(0)[0].tolist()) == ("int64", x[:4].tolist())


def test_a_packing_says_what_does_not_fit():
    packing = Packing.of({"tokens": np.zeros((1, 3), int), "weight": np.zeros((1, 2, 2))})
    assert (packing.shape, packing.dtype) == ((7,), "float32")
    whole = {"tokens": np.ones((2, 3), int), "weight": np.full((2, 2, 2), 0.5)}
    assert packing.pack(whole).tolist() == [[1, 1, 1, 0.5, 0.5, 0.5, 0.5]] * 2
    alone = {name: values[0] for name, values in whole.items()}
    assert packing.pack(alone).tolist() == [[1, 1, 1, 0.5, 0.5, 0.5, 0.5]]
    bad = {
        "'tokens' must be an array of numbers [n, ...]: pad rows of unequal length": {"tokens": [[1], [1, 2]]},
        "samples have no 'weight'; they have tokens": {"tokens": whole["tokens"]},
        "'tokens' must have shape (n, 3), not (2, 4)": {**whole, "tokens": np.ones((2, 4), int)},
        "'tokens' must be whole numbers, not float64": {**whole, "tokens": np.ones((2, 3))},
        "'tokens' holds numbers above 16,777,216": {**whole, "tokens": np.full((2, 3), 2**24 + 1)},
        "'weight' must be an array of numbers": {**whole, "weight": "text"},
        "samples differ in number: 3, 2": {**whole, "tokens": np.ones((3, 3), int)},
    }
    for says, samples in bad.items():
        with pytest.raises(InputError) as error:
            packing.pack(samples)
        assert says in str(error.value)
    with pytest.raises(InputError, match="at least one field"):
        Packing({})


def test_one_sample_alone_may_have_numbers_alone_and_tensors_may_be_part_of_a_computation():
    packing = Packing.of({"pix": X[:2], "age": X[:2, 0]})
    rows = packing.pack({"pix": X[:2], "age": X[:2, 0]})
    assert np.array_equal(packing.pack({"pix": X[0], "age": float(X[0, 0])}), rows[:1])
    learnt = {"pix": X[:2].clone().requires_grad_(), "age": X[:2, 0].clone().requires_grad_()}
    assert np.array_equal(packing.pack(learnt), rows)
    assert Packing.of(learnt) == packing
    for pix, age in ((X[:2], 0.5), (X[0], X[:2, 0])):
        with pytest.raises(InputError, match="must have shape"):
            packing.pack({"pix": pix, "age": age})
    with pytest.raises(InputError, match="must be an array of numbers"):
        packing.pack({"pix": X[:2].to_sparse(), "age": X[:2, 0]})
    with pytest.raises(InputError, match="'age' must be an array of numbers"):
        Packing.of({"pix": X[:2], "age": 0.5})
