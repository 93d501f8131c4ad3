"""Mutated files never do more than be refused: every parser ends with data or with one line for the user."""

import contextlib
import gzip
import io
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from data_makers import cifar_files, cub_files, folder_files, mini_files, truth, write, write_idx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bcl.data import decode, idx, pickles
from bcl.data.archive import open_source
from bcl.data.importing import check, read
from bcl.data.sets import SETS
from bcl.errors import UserError
from bcl.nets import pretrained
from bcl.streams import own_npz as ownnpz

FUZZ = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)


@st.composite
def mutations(draw):
    """A few edits: overwrite, insert, delete, cut, repeat. Positions are shares of the file's length."""
    kinds = st.sampled_from(["overwrite", "insert", "delete", "cut", "repeat"])
    edit = st.tuples(kinds, st.floats(0, 1), st.integers(1, 16), st.binary(min_size=1, max_size=8))
    return draw(st.lists(edit, min_size=1, max_size=6))


def mutate(data: bytes, edits) -> bytes:
    for kind, where, length, new in edits:
        at = int(where * len(data))
        if kind == "overwrite":
            data = data[:at] + new + data[at + len(new) :]
        elif kind == "insert":
            data = data[:at] + new + data[at:]
        elif kind == "delete":
            data = data[:at] + data[at + length :]
        elif kind == "cut":
            data = data[:at]
        else:
            data = data[:at] + data[max(0, at - length) : at] * 3 + data[at:]
    return data


def tolerate(function, *arguments):
    with contextlib.suppress(UserError):
        function(*arguments)


def read_from(name, path):
    source = open_source(path)
    try:
        content = read(source, SETS[name])
        check(source, content, SETS[name])
        content.write({split: Sink() for split in ("train", "test")}, lambda *_: None)
    finally:
        source.close()


class Sink:
    def write(self, row, values):
        assert values.dtype == np.uint8


def archive_bytes(tmp, name, form):
    shapes = {"mnist": (1, 28, 28), "cub": (3, 24, 24)}
    parts = truth(shapes.get(name, (3, 32, 32)))
    if name == "mnist":
        write_idx(tmp / "m", parts)
        files = {p.name: p.read_bytes() for p in (tmp / "m").iterdir()}
    elif name == "cifar10":
        files = cifar_files(name, "python", parts)
    elif name == "cub":
        files = cub_files(parts)
    elif name == "miniimagenet":
        files = mini_files(np.zeros((3, 6, 3, 84, 84), np.uint8), "csv")
    else:
        files = folder_files(parts)
    return write(files, tmp / "a", form).read_bytes()


@pytest.mark.parametrize("form", ["zip", "tar"])
@pytest.mark.parametrize("name", ["mnist", "cifar10", "cifar100", "cub", "miniimagenet"])
def test_mutated_archives(cache_root, tmp_path, name, form):
    whole = archive_bytes(tmp_path, name, form)
    if form == "tar":  # otherwise gzip's checksum would refuse every mutation before tar sees it
        whole = gzip.decompress(whole)
    path = tmp_path / "mutated"
    path.write_bytes(whole)
    read_from(name, path)

    @settings(FUZZ, max_examples=30)
    @given(mutations())
    def fuzz(edits):
        path.write_bytes(mutate(whole, edits))
        tolerate(read_from, name, path)

    fuzz()


@FUZZ
@given(mutations())
def test_mutated_idx(edits):
    images = np.zeros((3, 5, 5), np.uint8)
    whole = b"\0\0\x08\x03" + np.array(images.shape, ">u4").tobytes() + images.tobytes()
    tolerate(idx.parse, "file", mutate(whole, edits))


PICKLE = cifar_files("cifar100", "python", truth((3, 32, 32)))["test"]


@settings(FUZZ, max_examples=300)
@given(mutations())
def test_mutated_pickles(edits):
    def parse(data):
        content = pickles.read_pickle("file", data)
        pickles.integers("file", content.get("fine_labels"))

    # The pixels are most of the file and say nothing: leave a few of them, so that edits hit the structure.
    whole = PICKLE.replace(PICKLE[200:15000], b"")
    tolerate(parse, mutate(whole, edits))
    tolerate(parse, mutate(PICKLE, edits))


@settings(FUZZ, max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_as_a_pickle(data):
    tolerate(pickles.read_pickle, "file", b"\x80\x02" + data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_mutated_images(kind):
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(3 * 144, dtype=np.uint8).reshape(12, 12, 3)).save(file, kind)
    whole = file.getvalue()
    assert decode.decode("image", whole, "RGB", (8, 8))[0].shape == (3, 8, 8)

    @FUZZ
    @given(mutations())
    def fuzz(edits):
        tolerate(decode.decode, "image", mutate(whole, edits), "RGB", (8, 8))

    fuzz()


def test_mutated_npz(cache_root, tmp_path):
    path = tmp_path / "own.npz"
    y = np.arange(8) % 2
    np.savez(path, x=np.zeros((8, 3), np.float32), y=y, task=np.zeros(8, int), split=np.repeat([0, 1], 4))
    whole = path.read_bytes()

    @FUZZ
    @given(mutations())
    def fuzz(edits):
        path.write_bytes(mutate(whole, edits))
        tolerate(ownnpz.cached, str(path))

    fuzz()


def test_mutated_weights(cache_root):
    file = io.BytesIO()
    torch.save({"conv1.weight": torch.zeros(4, 3, 7, 7), "bn1.bias": torch.zeros(4)}, file)
    whole = file.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.pth")

        @FUZZ
        @given(mutations())
        def fuzz(edits):
            path.write_bytes(mutate(whole, edits))
            tolerate(pretrained.import_weights, path)

        fuzz()
