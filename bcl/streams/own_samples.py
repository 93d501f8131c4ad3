"""Own data in Python: any iterable of (x, y, t), a torch or Hugging Face data set, a DataLoader."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bcl.data.dataset import Array, TaskedDataset
from bcl.errors import InputError, UserError, first_line
from bcl.streams.kinds import plain
from bcl.streams.own import OwnBenchmark, finite_float32, from_tasked, number_classes
from bcl.streams.packing import Packing
from bcl.streams.variation import Variation

Triples = Iterable[tuple[Any, Any, Any]]
Transform = Callable[[Any], Any]
Tasks = Sequence[Sequence[Hashable]]


def from_samples(
    train: Triples,
    test: Triples,
    *,
    name: str = "own",
    scenario: str | None = None,
    net: str | None = None,
    memory: int | None = None,
    batch_size: int | None = None,
    shuffle: bool = True,
    dtype: str | None = None,
) -> OwnBenchmark:
    """A benchmark from iterables of (x, y, t): single samples, or batches with one t or one for each, as arrays or
    tensors; labels are whole numbers or names.

    The samples are held in memory. `shuffle=False` keeps them in the order given within each task. `dtype="int64"`:
    whole numbers that stay so, such as tokens; else bytes stay bytes and other numbers become float32.

    >>> samples = [(np.zeros(4), 0, 0), (np.ones(4), 1, 0), (np.zeros(4), 2, 1), (np.ones(4), 3, 1)]
    >>> stream = from_samples(samples, samples, memory=10).stream(seed=0)
    >>> stream.setting.classes
    ((0, 1), (2, 3))
    """
    (train_x, train_y, train_task), (test_x, test_y, test_task) = (
        _gather(split, triples, dtype) for split, triples in (("train", train), ("test", test))
    )
    if train_x.shape[1:] != test_x.shape[1:] or train_x.dtype != test_x.dtype:
        raise InputError(f"training samples are {train_x.shape[1:]} {train_x.dtype}, test samples {test_x.shape[1:]}")
    numbers = np.unique(np.concatenate([train_task, test_task]))
    train_task, test_task = np.searchsorted(numbers, train_task), np.searchsorted(numbers, test_task)
    labels = np.concatenate([train_y, test_y]).tolist()
    names, columns = number_classes(labels, np.concatenate([train_task, test_task]))
    y = np.array([columns[label] for label in labels], dtype=np.int64)
    total = hashlib.sha256()
    for part in (train_x, test_x, y, train_task, test_task):
        total.update(np.ascontiguousarray(part).tobytes())
    classes, cut = tuple(str(label) for label in names), len(train_y)
    base = (name, train_x, y[:cut], test_x, y[cut:], classes, total.hexdigest())
    data = TaskedDataset(*base, train_task=train_task, test_task=test_task)
    settings = {"scenario": scenario, "net": net, "memory": memory, "batch_size": batch_size}
    return from_tasked(name, data, variation=Variation(shuffle=shuffle), **settings)


def from_datasets(
    train: Any,
    test: Any,
    tasks: Tasks | None = None,
    *,
    x: str | Packing | None = None,
    y: str | None = None,
    task: str | None = None,
    transform: Transform | None = None,
    **settings: Any,
) -> OwnBenchmark:
    """A benchmark from two data sets: torch's, of (x, y) or (x, y, t); or Hugging Face's, whose rows are dictionaries.

    tasks:      the classes of each task; samples of other classes are left out. Without them, and without t, all is
                one task.
    x, y, task: of dictionaries, the names of the samples, of the labels and, where there are some, of the tasks; `x`
                may be a `Packing` of several. Pillow's images become bytes [channels, height, width].
    transform:  applied to every sample, for instance to give images one size.

    `settings` are those of `from_samples`.
    """
    return _from(_each(train), _each(test), tasks, _Reader(x, y, task, transform, batched=False), settings)


def from_loader(
    train: Iterable[Any],
    test: Iterable[Any],
    tasks: Tasks | None = None,
    *,
    x: str | Packing | None = None,
    y: str | None = None,
    task: str | None = None,
    transform: Transform | None = None,
    **settings: Any,
) -> OwnBenchmark:
    """A benchmark from two `torch.utils.data.DataLoader`s, or anything that yields batches as they do: (x, y),
    (x, y, t), or dictionaries. One pass over each is held in memory. See `from_datasets`; `transform` takes a batch.

    What arrives in which order is the loader's matter, with `shuffle=False`; the batch size is the benchmark's.
    """
    return _from(train, test, tasks, _Reader(x, y, task, transform, batched=True), settings)


def _from(
    train: Iterable[Any], test: Iterable[Any], tasks: Tasks | None, read: _Reader, settings: Mapping[str, Any]
) -> OwnBenchmark:
    for classes in tasks or ():
        if isinstance(classes, str) or not isinstance(classes, Iterable) or not [*classes]:
            raise InputError(f"tasks are lists of their classes, such as [[0, 1], [2, 3]], not {classes!r}")
    task_of = {plain(c): t for t, classes in enumerate(tasks or ()) for c in classes}
    if len(task_of) != sum(len(classes) for classes in tasks or ()):
        raise InputError("a class is in two tasks; use from_samples, which takes the task of every sample")
    kind = {"dtype": read.x.dtype} if isinstance(read.x, Packing) and read.x.dtype == "int64" else {}
    missing = dict.fromkeys(task_of)
    found = (_assigned(map(read, part), task_of if tasks is not None else None, missing) for part in (train, test))
    home = from_samples(*found, **{**kind, **settings})
    if missing:
        raise InputError(
            f"no sample is of class {next(iter(missing))!r}, which task {task_of[next(iter(missing))] + 1} has"
        )
    return home


class _Reader:
    """What a data set or a loader yields, as (x, y, t); t is None where it does not say."""

    def __init__(self, x: str | Packing | None, y: str | None, task: str | None, transform: Any, batched: bool):
        self.x, self.y, self.task, self.transform, self.batched = x, y, task, transform, batched

    def __call__(self, item: Any) -> tuple[Any, Any, Any]:
        if isinstance(item, Mapping):
            x, y, t = self._named(item)
        elif isinstance(item, Sequence) and len(item) in (2, 3):
            x, y, t = (*item, None)[:3]
        else:
            raise InputError(f"a sample must be (x, y), (x, y, t) or a dictionary, not {type(item).__name__}")
        x = x if self.transform is None else self.transform(x)
        return _pixels(x), y, t

    def _named(self, item: Mapping[str, Any]) -> tuple[Any, Any, Any]:
        if self.x is None or self.y is None:
            raise InputError(f"samples are dictionaries; say what is what: x=..., y=... of {', '.join(map(str, item))}")
        for name in (self.x, self.y, self.task):
            if isinstance(name, str) and name not in item:
                raise InputError(f"samples have no '{name}'; they have {', '.join(map(str, item))}")
        task = None if self.task is None else item[self.task]
        if isinstance(self.x, str):
            return item[self.x], item[self.y], task
        fields = {name: item[name] for name in self.x.fields if name in item}
        if self.batched:
            return self.x.pack(fields), item[self.y], task
        return self.x.pack({name: np.asarray(value)[None] for name, value in fields.items()})[0], item[self.y], task


def _each(dataset: Any) -> Iterator[Any]:
    """Torch's data sets have a length and an index; those that are streams are iterated."""
    if hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
        return (dataset[i] for i in range(len(dataset)))
    return iter(dataset)


def _pixels(x: Any) -> Any:
    """Pillow's images as bytes [channels, height, width]: grey ones stay grey, others become RGB."""
    if not (hasattr(x, "convert") and hasattr(x, "getbands")):
        return x
    grey = x.mode == "L"
    pixels = np.asarray(x if grey else x.convert("RGB"))
    return pixels[None] if grey else pixels.transpose(2, 0, 1)


def _assigned(triples: Triples, task_of: Mapping[Hashable, int] | None, missing: dict[Hashable, None]) -> Triples:
    """With the task of every sample: the one it has; else by its class, without those of no task; else the first. The
    classes that come are not `missing` any more."""
    for x, y, t in triples:
        if task_of is None:
            yield x, y, 0 if t is None else t
            continue
        labels = np.asarray(y)
        if labels.ndim == 0:
            if plain(y) in task_of:
                missing.pop(plain(y), None)
                yield x, y, task_of[plain(y)]
            continue
        known = np.array([plain(label) in task_of for label in labels], dtype=bool)
        for label in np.unique(labels[known]) if missing else ():
            missing.pop(plain(label), None)
        if known.any():
            yield np.asarray(x)[known], labels[known], [task_of[plain(label)] for label in labels[known]]


def _gather(split: str, triples: Triples, dtype: str | None) -> tuple[Array, Array, Array]:
    xs: list[Array] = []
    ys: list[Array] = []
    ts: list[Array] = []
    for x, y, t in _triples(split, triples):
        if x.dtype.kind not in "fiub":
            raise InputError(f"{split}: samples must be real numbers, not {x.dtype}")
        if y.ndim == 0:
            x, y = x[None], y[None]
        if y.ndim != 1 or len(x) != len(y) or y.dtype.kind not in "iubU":
            raise InputError(
                f"{split}: {x.shape} samples need as many whole-number labels, or names, not {y.dtype} {y.shape}"
            )
        if xs and (x.shape[1:] != xs[0].shape[1:]):
            raise InputError(
                f"{split}: samples of shape {x.shape[1:]} among samples of shape {xs[0].shape[1:]}; "
                "a `transform` of from_datasets can give all of them one"
            )
        if t.shape not in ((), y.shape):
            raise InputError(f"{split}: {len(y)} samples are of one task, or of a task each, not of tasks {t.shape}")
        xs.append(_numbers(split, x, dtype))
        if xs[-1].dtype != xs[0].dtype:
            raise InputError(
                f"{split}: some samples are bytes, from 0 to 255, and some are other numbers: give all of one kind"
            )
        ys.append(y if y.dtype.kind == "U" else y.astype(np.int64))
        ts.append(np.broadcast_to(t, y.shape))
    if not xs:
        raise InputError(f"{split}: no samples")
    return np.concatenate(xs), np.concatenate(ys), np.concatenate(ts)


def _triples(split: str, triples: Triples) -> Iterator[tuple[Array, Array, Array]]:
    """Samples, labels and tasks as arrays."""
    try:
        for x, y, t in triples:
            yield (
                np.asarray(_detached(x)),
                np.asarray(_detached(y)),
                np.asarray(_detached(t)).astype(np.int64, casting="same_kind"),
            )
    except UserError:
        raise
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = first_line(error)
        raise InputError(f"{split}: samples are (x, y, t), arrays or tensors and a task ({reason})") from error


def _detached(values: Any) -> Any:
    """A tensor that is part of a computation, without it."""
    return values.detach() if hasattr(values, "detach") else values


def _numbers(split: str, x: Array, dtype: str | None) -> Array:
    if dtype == "int64":
        if x.dtype.kind not in "iu":
            raise InputError(f"{split}: samples must be whole numbers, as dtype='int64' says, not {x.dtype}")
        return x.astype(np.int64)
    return x if x.dtype == np.uint8 else finite_float32(f"{split}: samples", x)
