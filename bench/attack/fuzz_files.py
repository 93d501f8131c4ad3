"""Files of every format that is read, changed or made up: they are read, or refused with one line."""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import pickle
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import bcl
from attack.corruptions import CHANGES
from attack.material import learner, own_data
from attack.stores import suite_text
from bcl.data import cache, decode, idx, pickles
from bcl.data.archive import open_source
from bcl.data.importing import check, read
from bcl.data.sets import SETS
from bcl.nets import pretrained
from bcl.runs import presets
from bcl.runs.result import find_results
from bcl.studies import plan, suite, tuning

Give = Callable[[], Any]
DEEP = (1000, 5000, 100_000)
TITLES = dict.fromkeys(["suite", "title", "about", "published", "axis"], "")
LINE = dict.fromkeys(["group", "label", "benchmark", "scenario", "method", "problem"], "")


def changed(data: bytes, draw: Random) -> bytes:
    for _ in range(draw.choice([1, 1, 2, 4])):
        data = draw.choice(CHANGES)(data, draw) if data else draw.randbytes(9)
    return data


def bomb(draw: Random) -> str:
    """Text that is short, and long, deep or endless when it is read."""
    n = draw.choice(DEEP)
    laughs = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    key = draw.choice(["seeds", "runs", "title", "axis", "lines", "acc", "format"])
    return draw.choice(
        [
            *("[" * n, "{a: " * n, "[" * n + "]" * n, '{"a":' * n, "- " * n, "? " * n, f"{key}: " + "[" * n),
            *(laughs + f"{key}: *a11\n", laughs + "runs: [{benchmark: split-digits, method: er, memory: *a11}]\n"),
            *(
                laughs + "runs: [{benchmark: *a11, method: er}]\n",
                laughs + "runs: [{method: er, benchmark: x, set: *a11}]\n",
            ),
            *("&a [*a]", "runs: &a [*a]", "runs: [&a {benchmark: *a}]", "&a {? *a : 1}", "!!python/object:os.system x"),
            *("runs: [{benchmark: split-digits, method: er, seeds: 1000000000}]", f"seeds: {'9' * 5000}"),
            *(
                "runs: [{benchmark: split-digits, method: er, memory: 1e999, tasks: .nan}]",
                "\ufeff{}",
                "\x85",
                "\t",
                "---\n---\n",
            ),
            *(
                "%YAML 9.9\n--- a",
                "!!set {a, b}",
                "!!binary x",
                "2020-01-01",
                "!!timestamp 9999-99-99",
                "1:60:60",
                "<<: [1]",
            ),
        ]
    )


def text_of(good: str, draw: Random) -> str:
    how = draw.random()
    if how < 0.3:
        return bomb(draw)
    data = changed(good.encode(), draw)
    return data.decode("utf-8", draw.choice(["replace", "ignore"]))


def yaml_suite(draw: Random, _: Path) -> Give:
    text = text_of(suite_text(["er", "finetune"], 2), draw)

    def give() -> None:
        made = suite.parse(text, "x", "x.yaml")
        if all(line.benchmark == "split-digits" for line in made.lines) and sum(one.seeds for one in made.lines) < 99:
            plan.plan(made)

    return give


def yaml_grid(draw: Random, where: Path) -> Give:
    (where / "grid.yaml").write_text(text_of("{lr: [0.1, 0.3], memory: [ring, reservoir]}", draw), errors="replace")
    return lambda: tuning.read_grid(where / "grid.yaml", ["er"])


def yaml_presets(draw: Random, where: Path) -> Give:
    text = text_of("{split-digits: {task: {er: {lr: 0.1}}}}", draw)
    (where / "runs").mkdir(exist_ok=True)
    (where / presets.OWN).write_text(text, errors="replace")

    def give() -> None:
        try:
            presets.preset("split-digits", "task", "task", "er")
        finally:
            (where / presets.OWN).unlink()

    return give


def yaml_record(draw: Random, where: Path) -> Give:
    good = json.dumps({**TITLES, "lines": [{**LINE, "settings": {}, "seeds": 2, "runs": ["a", "b"]}]})
    from bcl.report.read import read_study

    place = where / "record"
    place.mkdir(exist_ok=True)
    (place / plan.RECORD).write_text(text_of(good, draw), errors="replace")
    return lambda: read_study(place)


def json_result(draw: Random, where: Path) -> Give:
    place = where / "results"
    (place / "a").mkdir(parents=True, exist_ok=True)
    good = json.dumps({"id": "a", "acc": 1.0, "checksum": "0", "accuracy_matrix": [[1.0]], "before": [1.0]})
    text = text_of(good, draw)
    (place / draw.choice(["a/result.json", "runs.jsonl"])).write_text(text, errors="replace")

    def give() -> None:
        results, _ = find_results(place)
        shutil.rmtree(place)
        assert not results

    return give


def json_manifest(draw: Random, where: Path) -> Give:
    place = where / "cache" / "mnist"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    good = {
        "format": 1,
        "digest": "0",
        "source": "a",
        "date": "b",
        "classes": ["a"],
        "files": {"a.npy": {"sha256": "0", "bytes": 1}},
    }
    (place / cache.MANIFEST).write_text(text_of(json.dumps(good), draw), errors="replace")
    (place / cache.VERIFIED).write_text(text_of("{}", draw), errors="replace")
    return lambda: cache.load("mnist")


@functools.cache
def _npz(where: Path) -> bytes:
    own_data(where / "good.npz")
    return (where / "good.npz").read_bytes()


def npz(draw: Random, where: Path) -> Give:
    data = changed(_npz(where), draw)
    if draw.random() < 0.4:  # arrays that say something else than they hold
        n = draw.choice([0, 1, 3, 6])
        strange: dict[str, Any] = {
            "x": np.zeros((n, 4), np.float32),
            "y": np.zeros(n, int),
            "task": np.zeros(n, int),
            "split": np.zeros(n, int),
        }
        kinds = [
            np.zeros(n, "O"),
            np.zeros(n, "c8"),
            np.zeros((n, 1)),
            np.full(n, 2**62),
            np.zeros(n, "M8[s]"),
            np.array(1),
            np.full(n, np.nan),
        ]
        strange[draw.choice(list(strange))] = draw.choice(kinds)
        file = io.BytesIO()
        np.savez(file, **strange)
        data = file.getvalue()
    path = where / "fuzz.npz"
    path.write_bytes(data)
    return lambda: bcl.benchmark(f"npz:{path}").stream(0)


def folder(draw: Random, where: Path) -> Give:
    """A folder of images with something strange in it."""
    from PIL import Image

    root = where / "folder"
    shutil.rmtree(root, ignore_errors=True)
    for t, split, c in ((t, s, c) for t in (1, 2) for s in ("train", "test") for c in "ab"):
        place = root / f"task_{t}" / split / f"{c}{t}"
        place.mkdir(parents=True)
        Image.new("RGB", (4, 4), (t, 9, 9)).save(place / "0.png")
    first = root / "task_1" / "train" / "a1" / "0.png"
    odd = first.with_name(draw.choice(["1.png", "²", "9" * 200, " ", "a\nb.png", "😀.png", os.fsdecode(b"\xff.png")]))
    acts: list[Callable[[], object]] = [
        *(lambda: os.mkfifo(odd), lambda: odd.symlink_to("/no/where"), lambda: odd.symlink_to("/dev/zero")),
        *(
            lambda: odd.symlink_to(root),
            lambda: odd.mkdir(),
            lambda: odd.write_bytes(changed(first.read_bytes(), draw)),
        ),
        *(
            lambda: first.unlink(),
            lambda: first.write_bytes(changed(first.read_bytes(), draw)),
            lambda: shutil.rmtree(first.parents[1]),
        ),
        *(lambda: odd.symlink_to(odd.name), lambda: odd.touch(mode=0)),
    ]
    draw.choice(acts)()
    size = draw.choice(
        ["", "", "?size=8", "?size=²", "?size=" + "9" * 5000, "?sise=8", "?size", "?=", "?size=-1", "?size=0x10"]
    )
    return lambda: bcl.benchmark(f"folder:{root}{size}").stream(0)


@functools.cache
def _image(kind: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.effect_noise((12, 9), 80).convert("RGB").save(file, kind)
    return file.getvalue()


def image(draw: Random, _: Path) -> Give:
    data = changed(_image(draw.choice(["PNG", "JPEG", "BMP", "GIF", "PPM", "TIFF", "WEBP"])), draw)
    return lambda: decode.decode("an image", data, "RGB", (4, 4))


def idx_file(draw: Random, _: Path) -> Give:
    head = struct.pack(">HBB", 0, 8, draw.choice([1, 3, 0, 255])) + struct.pack(
        ">3I", draw.choice([2, 2**32 - 1, 0]), 2, 2
    )
    data = changed(head + bytes(8), draw)
    return lambda: idx.parse("an idx file", data)


def pickled(draw: Random, _: Path) -> Give:
    content: Any = {b"data": np.zeros((2, 3), np.uint8), b"labels": [0, 1], b"names": ["a"]}
    nested: Any = ()
    for _ in range(draw.choice([10, 500, 2000])):
        nested = draw.choice([lambda n: (n,), lambda n: [n], lambda n: {0: n}])(nested)
    whole = draw.choice(
        [
            content,
            {**content, "x": nested},
            [content],
            {1: print, "labels": [2**80]},
            {(): {}, None: 1},
            {"labels": {1}},
        ]
    )
    try:
        data = pickle.dumps(whole, protocol=draw.randrange(5))
    except RecursionError:
        data = b"(" * 50_000 + b"t" * 50_000 + b"."
    data = draw.choice([data, changed(data, draw), changed(data, draw)])
    return lambda: pickles.read_pickle("a pickle", data)


def archive(draw: Random, where: Path) -> Give:
    """A zip or tar, with strange members or a few changed bytes."""
    names = [
        "train/a/0.png",
        "test/a/0.png",
        "t10k-labels-idx1-ubyte",
        "train.csv",
        "images/x.jpg",
        "../x",
        "/x",
        "a\\b",
        "x" * 300,
    ]
    names += [
        f"{'9' * 5000}/0.png",
        "²/0.png",
        "train/²/²",
        "cifar-10-batches-py/data_batch_1",
        "images.txt",
        "con",
        "a//b",
        ".",
        "a/./b",
    ]
    members = {
        draw.choice(names): draw.choice(
            [b"", b"filename,label\n0.png,a\n", b"1 a\n", draw.randbytes(30), gzip.compress(b"x")]
        )
        for _ in range(3)
    }
    path, file = where / "fuzz.archive", io.BytesIO()
    if draw.random() < 0.5:
        with zipfile.ZipFile(file, "w", draw.choice([0, 8])) as packed:
            for name, data in members.items():
                packed.writestr(name, data)
    else:
        with tarfile.open(fileobj=file, mode=draw.choice(["w", "w:gz", "w:bz2", "w:xz"])) as tar:
            for name, data in members.items():
                about = tarfile.TarInfo(name)
                about.size = len(data)
                about.type = draw.choice([tarfile.REGTYPE] * 6 + [tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
                tar.addfile(about, io.BytesIO(data))
    path.write_bytes(changed(file.getvalue(), draw) if draw.random() < 0.7 else file.getvalue())
    spec = SETS[draw.choice(list(SETS))]

    def give() -> None:
        source = open_source(path)
        try:
            check(source, read(source, spec), spec)
        finally:
            source.close()

    return give


@functools.cache
def _learner(where: Path) -> bytes:
    bcl.save(learner(), where / "good.safetensors")
    return (where / "good.safetensors").read_bytes()


def safetensors(draw: Random, where: Path) -> Give:
    data = changed(_learner(where), draw)
    if draw.random() < 0.3:  # a header that lies
        head = text_of(
            '{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "__metadata__": {"sha256": "0"}}', draw
        ).encode()
        data = struct.pack("<Q", draw.choice([len(head), 2**63, 2**40, 0])) + head + bytes(4)
    (where / "fuzz.safetensors").write_bytes(data)
    return lambda: bcl.load(learner(steps=0), where / "fuzz.safetensors")


def weights(draw: Random, where: Path) -> Give:
    import torch

    file = io.BytesIO()
    torch.save({"fc.weight": torch.zeros(2, 2)}, file)
    (where / "fuzz.pth").write_bytes(changed(file.getvalue(), draw))
    return lambda: pretrained.import_weights(where / "fuzz.pth")


MAKERS = (
    *(
        yaml_suite,
        yaml_suite,
        yaml_grid,
        yaml_presets,
        yaml_record,
        json_result,
        json_manifest,
        npz,
        npz,
        folder,
        image,
    ),
    *(idx_file, pickled, archive, archive, safetensors, weights),
)


def case(draw: Random, where: Path) -> tuple[str, Give]:
    maker = draw.choice(MAKERS)
    state = draw.getrandbits(64)

    def give() -> None:  # the files are made when it is their turn
        maker(Random(state), where)()

    return f"file {maker.__name__} {state}", give
