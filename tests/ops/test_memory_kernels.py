"""The fused kernels of memories and feeds against their plain forms: on a GPU, else in Triton's interpreter."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from interpreted import DEVICE, interpreted
from torch import Tensor

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")

ON_GPU = DEVICE == "cuda"  # else fewer of the combinations, as the interpreter is slow


def both(run: Callable[[], Any]) -> tuple[Any, Any]:
    """What a function returns with fused kernels, and in torch's operations."""
    from bcl import ops

    fused = run()
    with ops.plain():
        return fused, run()


def puts_back(place: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """A check may change a module: other checks in the same process find it as it was."""
    home, name = place.split(".")

    def decorate(check: Callable[[], None]) -> Callable[[], None]:
        def checked() -> None:
            module = importlib.import_module(f"bcl.ops.triton.{home}")
            before = getattr(module, name)
            try:
                check()
            finally:
                setattr(module, name, before)

        return checked

    return decorate


def same(one: Tensor, other: Tensor) -> None:
    assert one.dtype == other.dtype
    assert torch.equal(one, other)


def same_memory(one: Any, other: Any) -> None:
    """All fields, but for the contents of the last slot, which takes what is dropped and is never read."""
    for (name, mine), theirs in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
        cut = name not in ("task", "seen")
        same(mine[: one.slots] if cut else mine, theirs[: one.slots] if cut else theirs)


def check_choose() -> None:
    from bcl.memory import Random
    from bcl.ops import rows

    cases = [  # slots, draws, the share that is eligible; or how many are
        (100, 10, 0.5), (300, 64, 0.1), (50, 50, 1.0), (70, 9, 0.05), (300, 128, 1.0), (615, 128, 0.66), (4, 9, 1.0),
        (20, 5, 1), (20, 5, 5), (20, 5, 4), (20, 5, 6), (20, 1, 20), (1, 1, 1), (1, 3, 1), (9000, 20, 0.7),
        (20000, 3, 0.9), (20000, 3, 2), (9000, 300, 299), (700, 600, 650),
    ]  # fmt: skip
    for n, k, share in cases:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(n))
        eligible = (order < (share if isinstance(share, int) else max(1, int(share * n)))).to(DEVICE)
        task = torch.where(eligible, order.to(DEVICE) % 3, -1)
        one, other = Random(3).to(DEVICE), Random(3).to(DEVICE)
        for _ in range(1 + ON_GPU):
            for draw in (
                lambda r, k=k, eligible=eligible: r.choose(eligible, k),
                lambda r, k=k, task=task: rows.choose_stored(r.state, task, k),
                lambda r, k=k, task=task: rows.choose_stored(r.state, task, k, 1),
            ):
                sources = iter((one, other))
                drawn, expected = both(lambda draw=draw, sources=sources: draw(next(sources)))
                assert len(drawn) == min(k, n)
                same(drawn, expected)
                same(one.state, other.state)
    nothing = torch.zeros(40, dtype=torch.bool, device=DEVICE)
    assert Random(0).to(DEVICE).choose(nothing, 7).tolist() == [0] * 7


@puts_back("choose._room")
def check_choose_in_a_narrow_room() -> None:
    """The first threshold often does not fit, and the search goes on."""
    import bcl.ops.triton.choose as module
    from bcl.memory import Random

    module._room = lambda k: 16
    eligible = torch.ones(500, dtype=torch.bool, device=DEVICE)
    for k in (1, 7, 12):
        one, other = Random(5).to(DEVICE), Random(5).to(DEVICE)
        for _ in range(30 if ON_GPU else 10):
            sources = iter((one, other))
            same(*both(lambda sources=sources, k=k: next(sources).choose(eligible, k)))


def memories(**options: Any) -> list[Any]:
    """Rings of several kinds of samples, with and without a further field."""
    from bcl.memory import Field, RingMemory

    kinds = [((1, 4, 4), torch.uint8), ((3,), torch.uint8), ((5,), torch.float32), ((), torch.float32)]
    extras = [None, {"target": Field((7,), torch.float32)}]
    kinds_and_extras = [(*kind, extra) for kind in kinds for extra in extras] + [((3, 40, 50), torch.uint8, None)]
    return [RingMemory(3, 5, shape, dtype, extra, **options).to(DEVICE) for shape, dtype, extra in kinds_and_extras]


def batch(memory: Any, n: int, draw: torch.Generator) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    x = torch.randint(0, 256, (n, *memory.x.shape[1:]), generator=draw).to(memory.x.dtype).to(DEVICE)
    extra = {name: torch.randn(n, 7, generator=draw).to(DEVICE) for name in memory.extra}
    return x, torch.randint(0, 9, (n,), generator=draw).to(DEVICE), extra


@puts_back("ring.TILE")
def check_write_and_get() -> None:
    import bcl.ops.triton.ring as module
    from bcl import ops

    for whole in (16384, 8):  # a batch in one piece, and in several
        module.TILE = whole
        for overflow in ("wrap", "cut"):
            every_second = slice(None) if ON_GPU else slice((whole == 8) ^ (overflow == "cut"), None, 2)
            for memory in memories(overflow=overflow)[every_second]:
                reference, draw = copy.deepcopy(memory), torch.Generator().manual_seed(0)
                for step, (n, t) in enumerate([(3, 0), (4, 0), (2, 2), (5, 2), (12, 0), (1, 1), (7, 1), (3, 0)]):
                    x, y, extra = batch(memory, n, draw)
                    if step % 2:
                        extra = {}
                    memory.write(x, y, t, **extra)
                    with ops.plain():
                        reference.write(x, y, t, **extra)
                    same_memory(memory, reference)
                    slot = torch.randint(0, memory.slots, (n + 3, 2), generator=draw).to(DEVICE)[:, step % 2]
                    one, other = both(lambda memory=memory, slot=slot: memory.get(slot))
                    for field in ("x", "y", "task", "slot"):
                        same(getattr(one, field), getattr(other, field))
                    assert one.extra.keys() == other.extra.keys()
                    for name in one.extra:
                        same(one.extra[name], other.extra[name])


@puts_back("reservoir.TILE")
def check_reservoir() -> None:
    import bcl.ops.triton.reservoir as module
    from bcl import ops
    from bcl.memory import Field, Random, ReservoirMemory

    for whole in (16384, 8):
        module.TILE = whole
        for shape, dtype, extra in [((3, 40, 50), torch.uint8, None), ((3,), torch.uint8, {"logits": (7,)})]:
            kinds = {name: Field(size, torch.float32) for name, size in (extra or {}).items()}
            memory = ReservoirMemory(11, shape, dtype, kinds).to(DEVICE)
            reference, draw = copy.deepcopy(memory), torch.Generator().manual_seed(0)
            one, other = Random(3).to(DEVICE), Random(3).to(DEVICE)
            for n in (4, 1, 10, 5, 20, 3, 3, 64, 2):
                x, y, values = batch(memory, n, draw)
                for t in (2, y % 3):
                    memory.write(x, y, t, one, **values)
                    with ops.plain():
                        reference.write(x, y, t, other, **values)
                    same_memory(memory, reference)
                    same(one.state, other.state)


@puts_back("ring.TILE")
def check_exchange() -> None:
    import bcl.ops.triton.ring as module
    from bcl import ops

    options = [(w, p, j) for w in (16384, 8) for p in (True, False) for j in (True, False)]
    options = options if ON_GPU else [(16384, True, True), (16384, False, False), (8, True, False), (8, False, True)]
    for whole, prefill, join in options:
        module.TILE = whole
        for memory in memories():
            if memory.extra:
                continue
            reference, draw = copy.deepcopy(memory), torch.Generator().manual_seed(0)
            for n, t in [(3, 0), (1, 0), (2, 2)] + [(4, 0)] * (12 if ON_GPU else 6) + [(6, 1)]:
                x, y, _ = batch(memory, n, draw)
                got = memory.exchange(x, y, t, prefill=prefill, join=join)
                with ops.plain():
                    expected = reference.exchange(x, y, t, prefill=prefill, join=join)
                same(got[0], expected[0])
                same(got[1], expected[1])
                same_memory(memory, reference)


@puts_back("rows.TILE")
def check_feed() -> None:
    import bcl.ops.triton.rows as module
    from bcl.engine.feed import Feed

    draw = torch.Generator().manual_seed(0)
    y = torch.randint(0, 9, (40,), generator=draw).to(DEVICE)
    tasks, order = (torch.randint(0, 40, (40,), generator=draw).to(DEVICE) for _ in range(2))
    for whole in (16384, 8):  # a batch in one piece, and in several
        module.TILE = whole
        for shape in ((1, 4, 4), (3,)):
            x = torch.randint(0, 256, (40, *shape), generator=draw, dtype=torch.uint8).to(DEVICE)
            for task, way in ((2, None), (2, order), (tasks, None), (tasks, order)):
                feeds = [Feed(x, y, task, 7, way) for _ in range(2)]
                for start in (0, 2):
                    for feed in feeds:
                        feed.seek(start)
                    for _ in range(3):
                        turn = iter(feeds)
                        for mine, theirs in zip(*both(lambda turn=turn: next(turn).next()), strict=True):
                            assert mine == theirs if isinstance(mine, int) else torch.equal(mine, theirs)
                        same(feeds[0].cursor, feeds[1].cursor)


CHECKS = ["choose", "choose_in_a_narrow_room", "write_and_get", "exchange", "reservoir", "feed"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    interpreted(__file__, f"check_{name}")


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for name in CHECKS:
        globals()[f"check_{name}"]()
    print("fused kernels of memories equal their plain forms on", DEVICE)
