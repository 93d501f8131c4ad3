"""Small data sets in every format that can be imported, and specs that call them complete."""

import csv
import gzip
import io
import pickle
import struct
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bcl.data.sets import SETS

CLASSES = ("ant", "bee", "cat")
TRAIN, TEST = 4, 2  # images per class


@pytest.fixture
def cache_root(tmp_path, monkeypatch):
    """An empty cache, and data sets of three classes."""
    root = tmp_path / "cache"
    monkeypatch.setenv("BCL_DATA", str(root))
    for name, spec in list(SETS.items()):
        small = replace(spec, classes=3, train=3 * TRAIN, test=3 * TEST)
        monkeypatch.setitem(SETS, name, replace(small, shape=(3, 24, 24)) if name == "cub" else small)
    return root


def truth(shape, seed=0):
    """Images and labels of both splits, in a mixed order of classes."""
    random = np.random.default_rng(seed)
    parts = {}
    for split, each in (("train", TRAIN), ("test", TEST)):
        labels = random.permutation(np.repeat(np.arange(3), each))
        parts[split] = random.integers(0, 256, (len(labels), *shape), dtype=np.uint8), labels.astype(np.int64)
    return parts


def idx_bytes(array):
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def write_idx(folder: Path, parts, gz=True):
    folder.mkdir(parents=True, exist_ok=True)
    for split, stem in (("train", "train"), ("test", "t10k")):
        images, labels = parts[split]
        for kind, array in (("images-idx3", images[:, 0]), ("labels-idx1", labels.astype(np.uint8))):
            data = idx_bytes(array)
            name = f"{stem}-{kind}-ubyte" + (".gz" if gz else "")
            (folder / name).write_bytes(gzip.compress(data) if gz else data)


def cifar_files(name, form, parts):
    """File name -> bytes, as the authors' archives have them."""
    files = {}
    many = name == "cifar10"
    for split in ("train", "test"):
        images, labels = parts[split]
        flat = images.reshape(len(images), -1)
        halves = np.array_split(np.arange(len(labels)), 2) if many and split == "train" else [np.arange(len(labels))]
        for i, rows in enumerate(halves, 1):
            stem = {"train": f"data_batch_{i}", "test": "test_batch"}[split] if many else split
            if form == "binary":
                ahead = labels[rows, None] if many else np.stack([np.full(len(rows), 9), labels[rows]], 1)
                files[f"{stem}.bin"] = np.concatenate([ahead.astype(np.uint8), flat[rows]], 1).tobytes()
            else:
                key = b"labels" if many else b"fine_labels"
                content = {b"data": flat[rows], key: labels[rows].tolist(), b"filenames": [b"a.png"] * len(rows)}
                files[stem] = pickle.dumps(content, protocol=2)
    if form == "binary":
        files["batches.meta.txt" if many else "fine_label_names.txt"] = "\n".join(CLASSES).encode()
    else:
        key = b"label_names" if many else b"fine_label_names"
        files["batches.meta" if many else "meta"] = pickle.dumps({key: [c.encode() for c in CLASSES]}, protocol=2)
    return files


def png(pixels):
    """Bytes of an image from [channels, height, width]."""
    file = io.BytesIO()
    Image.fromarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)).save(file, "PNG")
    return file.getvalue()


def folder_files(parts):
    """An image folder: `train/<class>/NN.png`, and so on."""
    return {
        f"{split}/{CLASSES[label]}/{i:02d}.png": png(image)
        for split, (images, labels) in parts.items()
        for i, (image, label) in enumerate(zip(images, labels, strict=True))
    }


def cub_files(parts):
    files, lines, splits = {}, [], []
    for split, (images, labels) in parts.items():
        for image, label in zip(images, labels, strict=True):
            number = len(lines) + 1
            path = f"{label + 1:03d}.{CLASSES[label]}/{number:04d}.png"
            files[f"CUB/images/{path}"] = png(image)
            lines.append(f"{number} {path}")
            splits.append(f"{number} {int(split == 'train')}")
    return {
        **files,
        "CUB/images.txt": "\n".join(lines).encode(),
        "CUB/train_test_split.txt": "\n".join(splits).encode(),
    }


def tiny_files(parts, layout):
    """Tiny-ImageNet: validation images in one folder with a list, or in a folder for each class."""
    files, listing = {}, []
    for split, (images, labels) in parts.items():
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            c = CLASSES[label]
            if split == "train":
                files[f"tiny-imagenet-200/train/{c}/images/{c}_{i:02d}.png"] = png(image)
                continue
            path = {"list": "images", "folders": c, "deep": f"{c}/images"}[layout]
            files[f"tiny-imagenet-200/val/{path}/val_{i:02d}.png"] = png(image)
            listing.append(f"val_{i:02d}.png\t{c}\t0\t0\t9\t9")
    if layout == "list":
        files["tiny-imagenet-200/val/val_annotations.txt"] = "\n".join(listing).encode()
    extra = {f"train/{c}/{c}_boxes.txt": b"0 0 9 9" for c in CLASSES} | {"test/images/test_0.png": b"no label"}
    return files | {f"tiny-imagenet-200/{name}": data for name, data in extra.items()}


def mini_files(images, layout):
    """Six images of each of three classes: `images[c][i]`. Class c of part c, as the few-shot split has it."""
    files = {}
    for c, (name, part) in enumerate(zip(CLASSES, ("train", "val", "test"), strict=True)):
        rows = io.StringIO()
        writer = csv.writer(rows)
        writer.writerow(["filename", "label"])
        for i, image in enumerate(images[c]):
            file = f"{name}_{i + 8}.png"  # 8, 9, 10: numbers, not text, decide the order
            path = {"csv": f"images/{file}", "parts": f"{part}/{name}/{file}", "flat": f"{name}/{file}"}[layout]
            files[path] = png(image)
            writer.writerow([file, name])
        if layout == "csv":
            files[f"{part}.csv"] = rows.getvalue().encode()
    return files


def write(files, path: Path, form: str) -> Path:
    """Files as a directory, a zip or a tar."""
    if form == "directory":
        for name, data in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
        return path
    path = path.with_suffix(".zip" if form == "zip" else ".tar.gz")
    if form == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(path, "w:gz") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(f"./{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


def snapshot(root: Path):
    """Every path below a directory, with its content."""
    return {p.relative_to(root).as_posix(): p.read_bytes() if p.is_file() else None for p in sorted(root.rglob("*"))}
