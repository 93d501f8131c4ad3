"""Every format that people have becomes the same arrays."""

import numpy as np
import pytest
from data_makers import (
    CLASSES,
    TEST,
    TRAIN,
    cifar_files,
    cub_files,
    folder_files,
    mini_files,
    tiny_files,
    truth,
    write,
    write_idx,
)  # fmt: skip

from bcl.data import cache, decode
from bcl.data.importing import import_set
from bcl.data.pickles import read_pickle


def check(name, parts, kind):
    data, about = cache.load(name), cache.need(name)
    for split in ("train", "test"):
        images, labels = parts[split]
        assert np.array_equal(getattr(data, f"{split}_y"), labels), split
        assert np.array_equal(getattr(data, f"{split}_x"), images), split
    assert about["kind"] == kind
    assert about["counts"] == {"train": 3 * TRAIN, "test": 3 * TEST}
    return about


def by_class(parts):
    """An image folder has its images by class, and in a class by name."""
    return {s: tuple(a[np.argsort(y, kind="stable")] for a in (x, y)) for s, (x, y) in parts.items()}


@pytest.mark.parametrize("gz", [True, False])
def test_the_idx_files_of_mnist(cache_root, tmp_path, gz):
    parts = truth((1, 28, 28))
    write_idx(tmp_path / "mnist", parts, gz)
    import_set("mnist", tmp_path / "mnist")
    assert check("mnist", parts, "idx files")["classes"] == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
@pytest.mark.parametrize("form", ["binary", "python"])
@pytest.mark.parametrize("container", ["directory", "tar"])
def test_the_cifar_archives(cache_root, tmp_path, name, form, container):
    parts = truth((3, 32, 32))
    files = {f"{name}-folder/{file}": data for file, data in cifar_files(name, form, parts).items()}
    import_set(name, write(files, tmp_path / "archive", container))
    assert check(name, parts, f"CIFAR {form} archive")["classes"] == list(CLASSES)


def test_a_pickle_as_python_2_wrote_it():
    """Its text is bytes, its array's content a byte string; written here opcode by opcode."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00t" + text(b"b") + b"tR"
        b"(K\x01(K\x02K\x03tcnumpy\ndtype\n(" + text(b"u1") + b"K\x00K\x01tR"
        b"(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text(b"\x01\x02\x03\xf4\xf5\xf6")
        + b"tb"
    )
    content = read_pickle("old", b"\x80\x02}(" + text(b"data") + array + text(b"labels") + b"]K\x05au.")
    assert content["data"].tolist() == [[1, 2, 3], [0xF4, 0xF5, 0xF6]]
    assert content["labels"] == [5]


@pytest.mark.parametrize("container", ["directory", "zip", "tar"])
def test_an_image_folder(cache_root, tmp_path, container):
    parts = truth((3, 32, 32))
    files = {f"some/where/{name}": data for name, data in folder_files(parts).items()}
    files |= {
        "some/README.md": b"hello",
        "some/where/train/ant/.DS_Store": b"junk",
        "__MACOSX/train/ant/a.png": b"junk",
    }
    import_set("cifar100", write(files, tmp_path / "images", container))
    about = check("cifar100", by_class(parts), "image folder")
    assert about["classes"] == list(CLASSES)
    assert about["resized"] == 0


def test_images_of_another_size_are_resized_and_counted(cache_root, tmp_path):
    parts = {
        s: (np.full((3 * n, 3, 64, 64), 7, np.uint8), np.repeat(np.arange(3), n))
        for s, n in (("train", 4), ("test", 2))
    }
    parts["train"][0][0] = 255 * (np.indices((64, 64)).sum(0) % 2)  # a chess board: shrinking averages it
    import_set("cifar10", write(folder_files(parts), tmp_path / "images", "zip"))
    data = cache.load("cifar10")
    assert data.train_x.shape == (12, 3, 32, 32)
    assert (data.train_x[1:] == 7).all()
    assert 120 <= data.train_x[0].min() <= data.train_x[0].max() <= 135
    assert cache.need("cifar10")["resized"] == 18


def test_grey_images_for_mnist(cache_root, tmp_path):
    parts = truth((1, 28, 28))
    import_set("mnist", write(folder_files(parts), tmp_path / "images", "directory"))
    check("mnist", by_class(parts), "image folder")


@pytest.mark.parametrize("container", ["directory", "tar"])
def test_the_layout_of_cub(cache_root, tmp_path, container):
    parts = truth((3, 24, 24))
    import_set("cub", write(cub_files(parts), tmp_path / "cub", container))
    assert check("cub", parts, "CUB's own layout")["classes"] == ["001.ant", "002.bee", "003.cat"]


@pytest.mark.parametrize("layout", ["list", "folders", "deep"])
def test_tiny_imagenet_with_its_validation_images_as_the_test_set(cache_root, tmp_path, layout):
    parts = truth((3, 64, 64))
    container = "zip" if layout == "list" else "directory"
    import_set("tiny-imagenet", write(tiny_files(parts, layout), tmp_path / "tiny", container))
    assert check("tiny-imagenet", by_class(parts), "Tiny-ImageNet's own layout")["classes"] == list(CLASSES)


@pytest.mark.parametrize("layout", ["csv", "parts", "flat"])
def test_miniimagenet_however_it_is_laid_out(cache_root, tmp_path, layout):
    images = np.random.default_rng(0).integers(0, 256, (3, TRAIN + TEST, 3, 84, 84), dtype=np.uint8)
    import_set("miniimagenet", write(mini_files(images, layout), tmp_path / "mini", "directory"))
    wanted = {
        "train": (images[:, :TRAIN].reshape(-1, 3, 84, 84), np.repeat(np.arange(3), TRAIN)),
        "test": (images[:, TRAIN:].reshape(-1, 3, 84, 84), np.repeat(np.arange(3), TEST)),
    }
    check("miniimagenet", wanted, "CSV split" if layout == "csv" else "class folders")


def test_miniimagenet_that_is_split_already(cache_root, tmp_path):
    parts = truth((3, 84, 84))
    import_set("miniimagenet", write(folder_files(parts), tmp_path / "mini", "zip"))
    check("miniimagenet", by_class(parts), "image folder")


def test_decoding_in_several_processes_is_the_same(cache_root, tmp_path, monkeypatch):
    parts = truth((3, 32, 32))
    path = write(folder_files(parts), tmp_path / "images", "zip")
    monkeypatch.setattr(decode, "FEW", 1)
    monkeypatch.setattr(decode, "CHUNK_IMAGES", 4)
    seen = []
    import_set("cifar100", path, lambda done, total: seen.append((done, total)))
    check("cifar100", by_class(parts), "image folder")
    assert seen == [(4, 18), (8, 18), (12, 18), (16, 18), (18, 18)]
