"""Strange values for what Python programs call."""

from __future__ import annotations

import contextlib
import decimal
import fractions
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

import bcl
from attack.material import learner, one_batch
from bcl import metrics
from bcl.engine.checkpoint import digest
from bcl.errors import UserError
from bcl.learners import METHODS, method
from bcl.runs.config import RunConfig
from bcl.streams import from_samples

Give = Callable[[], str | None]
TEXTS = (
    "",
    " ",
    "er",
    "task",
    "class",
    "split-digits",
    "mlp",
    "nan",
    "1e400",
    "-0",
    "²",
    "٣",
    "\ud800",
    "a\nb",
    "x" * 999,
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    5,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    10**30,
    0.0,
    -0.0,
    1e-320,
    1e308,
    math.inf,
    -math.inf,
    math.nan,
)


class Odd:
    """An object that answers no question well."""

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")

    def __repr__(self) -> str:
        return "<odd>"


def value(draw: Random) -> Any:
    """Anything."""
    return draw.choice(
        [
            *NUMBERS,
            *TEXTS,
            *(None, True, False, b"\xff", 1j, decimal.Decimal("0.1"), fractions.Fraction(1, 3), Odd(), object, print),
            *([], (), {}, set(), [[]], [1, [2]], {"a": 1}, range(3), [None], ["a"], [math.nan]),
            *(np.float32(0.5), np.int64(1), np.uint8(255), np.bool_(True), np.datetime64("2020-01-01"), np.array([])),
            *(torch.tensor(1), torch.tensor(0.5), torch.tensor([1, 2]), torch.empty(0)),
        ]
    )


def array(draw: Random, shape: tuple[int, ...]) -> Any:
    """Something like an array of that shape, more or less."""
    if draw.random() < 0.3:
        shape = tuple(draw.choice([n, n, n + 1, 0, 1]) for n in shape)[draw.choice([0, 0, 1]) :] + (1,) * draw.choice(
            [0, 0, 1]
        )
    x = torch.randn(shape)
    kinds = (
        *(torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int64, torch.uint8, torch.bool),
        *(torch.complex64, torch.complex128),
    )
    forms: list[Callable[[], Any]] = [
        lambda: x,
        lambda: x.to(draw.choice(kinds)),
        lambda: x.to_sparse(),
        lambda: x.to_sparse_csr() if x.dim() == 2 else x.to_sparse(),
        lambda: x.to("meta"),
        lambda: x.to_mkldnn(),
        lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.quint8),
        lambda: x.requires_grad_(),
        lambda: x.t() if x.dim() == 2 else x,
        lambda: x * draw.choice([math.nan, math.inf, 1e38, 1e-45]),
        lambda: x.conj() if x.is_complex() else torch.view_as_complex(torch.randn(*shape, 2)),
        lambda: x.numpy()[..., ::-1],
        lambda: x.numpy().astype(draw.choice([">f4", "f2", "f8", "i4", "u8", "c8", "O", "U3", "S2", "M8[s]", "?"])),
        lambda: np.zeros(shape, dtype=[("a", "f4")]),
        lambda: np.ma.masked_array(x.numpy(), mask=True),
        lambda: x.tolist(),
        lambda: [x.tolist(), [1.0]],
        lambda: iter(x),
        lambda: torch.nn.Parameter(x),
        lambda: torch.nested.nested_tensor([x.flatten()[:1], x.flatten()[:2]]),
        lambda: x.expand(2, *shape),
        lambda: memoryview(x.numpy()),
        lambda: value(draw),
    ]
    return draw.choice(forms)()


def labels(draw: Random) -> Any:
    y = torch.randint(0, 2, (5,))
    forms: list[Callable[[], Any]] = [
        *(lambda: y, lambda: y.tolist(), lambda: y.numpy(), lambda: y.to(torch.int8), lambda: y.to(torch.float32)),
        *(lambda: y + draw.choice([1, 2, 100, 2**40, -1]), lambda: y[:4], lambda: y[:, None], lambda: y.to_sparse()),
        *(lambda: y.to("meta"), lambda: y.to(torch.complex64), lambda: torch.nn.functional.one_hot(y, 4)),
        *(lambda: y.numpy().astype(draw.choice(["u8", "O", "U3", ">i4", "?", "f8"])), lambda: array(draw, (5,))),
    ]
    return draw.choice(forms)()


def observe(draw: Random) -> Give:
    x, y, t = array(draw, (5, 6)), labels(draw), draw.choice([0, 0, 0, 1, value(draw)])

    def give() -> str | None:
        made = learner(steps=draw.choice([0, 3]))
        before = digest(dict(made.state_dict()))
        try:
            made.observe(x, y, t)
        except UserError:
            return None if digest(dict(made.state_dict())) == before else "a batch was refused and the learner changed"
        return None if bcl.is_finite(made.net) or _is_large(x) else "the weights are not finite"

    return give


def _is_large(x: Any) -> bool:
    return float(torch.as_tensor(x).detach().to(torch.float64).abs().max()) > 1e3


def alone(draw: Random) -> Give:
    """A batch of one sample, with a batch norm over nothing but the samples."""

    def give() -> str | None:
        made = learner(steps=draw.choice([0, 1, 4]))
        x, y, t = one_batch(0)
        before = digest(dict(made.state_dict()))
        try:
            made.observe(x[:1], y[:1], t)
        except UserError:
            return (
                None if digest(dict(made.state_dict())) == before else "one sample was refused and the learner changed"
            )
        return None

    return give


def predict(draw: Random) -> Give:
    x, t = array(draw, (5, 6)), draw.choice([None, None, 0, value(draw)])

    def give() -> str | None:
        made = learner(steps=1)
        before = digest(dict(made.state_dict()))
        try:
            answer = made.predict(x, t)
        finally:
            assert digest(dict(made.state_dict())) == before, "a question changed the learner"
        return None if answer.shape[1:] == (4,) and made.training else f"it answers {tuple(answer.shape)}"

    return give


def setting(draw: Random) -> Give:
    good: dict[str, Any] = {"scenario": "task", "classes": ((0, 1), (2, 3)), "shape": (6,), "dtype": "float32"}
    good |= {"memory": 5, "batch_size": 5, "input_range": (0.0, 1.0), "seed": 0}
    for name in draw.sample(list(good), draw.choice([1, 1, 2])):
        good[name] = draw.choice([value(draw), ((0, 1), (value(draw),)), (value(draw), value(draw)), (value(draw),)])

    def give() -> None:
        made = bcl.Setting(**good)
        # What a setting lets through can be learnt from.
        if made.n_classes <= 100 and math.prod(made.shape) <= 100 and made.memory <= 1000:
            net = bcl.build("mlp", made)
            bcl.ER(net, made)

    return give


def hyper(draw: Random) -> Give:
    kind = method(draw.choice(list(METHODS)))
    names = list(kind.Hyper.__dataclass_fields__)
    given = {draw.choice([*names, draw.choice(TEXTS)]): value(draw) for _ in range(draw.choice([1, 1, 2]))}
    where = bcl.Setting.domain(2, 4, (6,), memory=4)
    return lambda: (kind(bcl.build("mlp", where), where, **given), None)[1] if _modest(given) else None


def _modest(given: dict[str, Any]) -> bool:
    """Not so large that a memory of that size is made."""
    return not any(isinstance(v, int) and v > 10**4 for v in given.values())


def measures(draw: Random) -> Give:
    rows = [[draw.choice([50.0, 100.0, 0.0, value(draw)]) for _ in range(draw.choice([2, 2, 3]))] for _ in range(2)]
    matrix = draw.choice([rows, value(draw), [], [[]], [[1.0]], [rows], np.zeros((2, 2, 2)), torch.rand(2, 2)])
    before = draw.choice([None, [1.0, 2.0], [1.0], value(draw)])
    return lambda: (metrics.all_metrics(matrix, before), None)[1]


def stream(draw: Random) -> Give:
    name = draw.choice(["split-digits", "permuted-digits", draw.choice(TEXTS), "folder:", "npz:.", "npz:\0"])
    words: dict[str, Any] = {"seed": draw.choice([0, value(draw)]), "samples": 10, "tasks": 2}
    words[draw.choice(["part", "scenario", "tasks", "samples", "memory"])] = value(draw)
    return lambda: (bcl.benchmark(name).stream(**words), None)[1]


def config(draw: Random) -> Give:
    words: dict[str, Any] = {"samples": 10, "tasks": 2}
    names = ("scenario", "tasks", "samples", "memory", "net", "part", "precision", "overrides")
    words[draw.choice(names[:-1])] = draw.choice([*NUMBERS, *TEXTS, None, True])  # what a suite's file can say
    words[names[-1]] = draw.choice([None, {"lr": value(draw)}, {draw.choice(TEXTS): 1}])
    which = draw.choice(["er", "bcl-dual", draw.choice(TEXTS), "no:thing", "os:path", ":", "math:inf"])
    return lambda: (RunConfig.resolve("split-digits", which, draw.choice([0, *NUMBERS]), **words).id, None)[1]


def samples(draw: Random) -> Give:
    def triple() -> Any:
        return (array(draw, (6,)), draw.choice([0, 1, 2, value(draw)]), draw.choice([0, 1, value(draw)]))

    train = draw.choice([[triple() for _ in range(3)], value(draw), [(np.zeros(6), c, c // 2) for c in range(4)]])
    test = draw.choice([train, [triple()], [(np.zeros(6), c, c // 2) for c in range(4)]])
    return lambda: (from_samples(train, test).stream(0), None)[1]


def files(draw: Random, where: Path) -> Give:
    pipe = where / "pipe"
    if not pipe.exists():
        os.mkfifo(pipe)
    path = draw.choice(["", ".", pipe, "/no/where", "\0", "a" * 300, "a/b", "\udcff", where, draw.choice(TEXTS)])
    return partial(draw.choice([bcl.save, bcl.load]), learner(steps=1), path)


def case(draw: Random, where: Path) -> tuple[str, Give]:
    makers = (observe, observe, observe, alone, predict, predict, setting, hyper, measures, stream, config, samples)
    if draw.random() < 0.04:
        return "api files", files(draw, where)
    while True:
        maker, state = draw.choice(makers), draw.getrandbits(64)
        with contextlib.suppress(Exception):  # some values cannot even be made
            return f"api {maker.__name__} {state}", maker(Random(state))
