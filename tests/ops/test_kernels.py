"""Every fused kernel against its plain form: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from interpreted import DEVICE, interpreted
from torch import Tensor

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")


def check_losses() -> None:
    for n, k, classes in [(3, 4, 12), (1, 300, 12), (10, 40, 100), (5, 2, 1000), (2, 1, 1)]:
        same_losses(n, k, classes)


def same_losses(n: int, k: int, classes: int) -> None:
    from bcl import ops
    from bcl.ops.losses import cross_entropy, distillation_loss, gradients, replay_loss

    draw = torch.Generator().manual_seed(0)
    raw = torch.randn(n + k, classes, generator=draw)
    hidden = torch.rand(n + k, classes, generator=draw) < 0.3
    hidden[:, -1] = False
    target = torch.softmax(torch.randn(n + k, classes, generator=draw).masked_fill(hidden, -1e9) / 5, 1).to(DEVICE)
    label = torch.rand(n + k, classes, generator=draw).masked_fill(hidden, -1).argmax(1).to(DEVICE)
    raw, hidden = raw.to(DEVICE).requires_grad_(), hidden.to(DEVICE)
    for loss in (
        lambda z: cross_entropy(z, label),
        lambda z: distillation_loss(z, target, 5.0, "classes"),
        lambda z: distillation_loss(z, target, 2.0, "batch"),
        lambda z: replay_loss(z, label[:n], label[n:]),
        lambda z: replay_loss(z, label[:n], label[n:], target[n:], 30.0, 5.0, "classes"),
        lambda z: replay_loss(z, label[:n], label[n:], target[n:], 3.0, 2.0, "batch"),
    ):
        fused = loss(raw.masked_fill(hidden, -1e9))
        assert fused.logits is not None
        with ops.plain():
            plain = loss(raw.masked_fill(hidden, -1e9))
            assert plain.logits is None
        torch.testing.assert_close(fused.value, plain.value, atol=1e-5, rtol=1e-4)
        (slope,) = torch.autograd.grad(plain.value, raw)
        (scaled,) = torch.autograd.grad(fused.value * 3, raw, retain_graph=True)
        torch.testing.assert_close(scaled, slope * 3, atol=3e-6, rtol=1e-4)
        torch.testing.assert_close(gradients(fused * 3, [raw])[0] / 3, slope, atol=3e-6, rtol=1e-4)
        (direct,) = gradients(loss(raw.masked_fill(hidden, -1e9)), [raw])
        torch.testing.assert_close(direct, slope, atol=1e-6, rtol=1e-4)


def check_inputs() -> None:
    from bcl import ops
    from bcl.ops.losses import join_inputs

    draw = torch.Generator().manual_seed(0)
    for shape in ((3,), (1, 28, 28), ()):
        one, other = (torch.randint(0, 256, (n, *shape), generator=draw, dtype=torch.uint8).to(DEVICE) for n in (4, 9))
        for parts in ([one], [one, other], [other[1:], one[:3]]):
            for span in ((0.0, 1.0), (-1.0, 1.0), (0.2, 5.0)):
                fused = join_inputs(parts, span)
                with ops.plain():
                    plain = join_inputs(parts, span)
                assert fused.dtype == torch.float32
                torch.testing.assert_close(fused, plain, atol=1e-6, rtol=1e-6)


def check_mask() -> None:
    from bcl import ops
    from bcl.ops.losses import mask_tasks

    draw = torch.Generator().manual_seed(0)
    visible = (torch.rand(4, 11, generator=draw) < 0.5).to(DEVICE)
    task = torch.tensor([3, 0, 1, 1, 2, 0], device=DEVICE)
    apart, alike = task.repeat_interleave(2)[::2], task[4].expand(6)  # numbers that do not lie one after another
    rows = (6, 2, None), (300, 1, None), (6, task, None), (10, 2, task), (7, 3, task), (6, alike, None), (9, 0, apart)
    for n, t, rest in rows:
        logits = torch.randn(n, 11, generator=draw).to(DEVICE).requires_grad_()
        weight = torch.randn(n, 11, generator=draw).to(DEVICE)
        outcomes = []
        for context in (nullcontext, ops.plain):
            with context():
                out = mask_tasks(logits, visible, t, rest)
            outcomes.append([out, *torch.autograd.grad((out * weight).sum(), logits)])
        for fused, plain in zip(*outcomes, strict=True):
            assert torch.equal(fused, plain)


def check_counted_loss() -> None:
    from bcl import ops
    from bcl.ops.losses import cross_entropy, gradients

    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(9, 5, generator=draw).to(DEVICE).requires_grad_()
    label = torch.randint(0, 5, (9,), generator=draw).to(DEVICE)
    for count in (0, 1, 4, 9):
        outcomes = []
        for context in (nullcontext, ops.plain):
            with context():
                loss = cross_entropy(logits, label, count=torch.tensor(count, device=DEVICE))
                outcomes.append([loss.detach(), *gradients(loss, [logits])])
        for fused, plain in zip(*outcomes, strict=True):
            torch.testing.assert_close(fused, plain, atol=1e-6, rtol=1e-5)


def check_views() -> None:
    """A byte may be rounded to its neighbour: the arithmetic has another order. Of several operations one after another
    a later one can make a step of that, in a few places."""
    from bcl import ops
    from bcl.ops.augment import DRAWS, augment
    from bcl.ops.rows import integers

    draw = torch.Generator().manual_seed(0)
    for kind in set(DRAWS) - {"none"}:
        for n, height, width in ((11, 9, 14), (40, 32, 32))[: 2 if DEVICE == "cuda" else 1]:
            x = torch.randint(0, 256, (n, 3, height, width), generator=draw, dtype=torch.uint8).to(DEVICE)
            drawn = torch.randint(0, 2**62, (n * DRAWS[kind],), generator=draw).to(DEVICE)
            if kind == "randaugment":  # every operation at least once
                drawn.view(n, -1)[:, 3] = torch.arange(n).to(DEVICE)
            for samples, tolerance, on_average in ((x, 1.0, 0.005), (x / 255, 1e-5, 1e-6)):
                fused = augment(samples, kind, drawn)
                with ops.plain():
                    plain = augment(samples, kind, drawn)
                assert fused.dtype == plain.dtype == samples.dtype
                off = (fused.double() - plain.double()).abs()
                few = 0.01 if kind == "operations" else 0.0
                assert (off > tolerance).double().mean() <= few, (kind, height, samples.dtype, float(off.max()))
                assert off.mean() <= on_average + 4 * few * tolerance, (kind, float(off.mean()))
    state = torch.tensor(12345, device=DEVICE)
    other = state.clone()
    for n in (1, 5, 1030):
        fused = integers(state, n)
        with ops.plain():
            assert torch.equal(fused, integers(other, n))
        assert torch.equal(state, other)


def check_updates() -> None:
    """Of tensors smaller and larger than a program's share, in both memory layouts."""
    from bcl import ops
    from bcl.ops.updates import interpolate_, sgd_, snapshot

    def tensors(seed: int) -> list[Tensor]:
        draw = torch.Generator().manual_seed(seed)
        rows = [torch.randn(shape, generator=draw) for shape in ((3,), (70, 40), (4, 3, 2, 2), (), (1024,))]
        rows[2] = rows[2].contiguous(memory_format=torch.channels_last)
        return [row.to(DEVICE) for row in rows]

    def run() -> list[Tensor]:
        weights, direction, carried = tensors(0), tensors(1), tensors(2)
        before = snapshot(weights)
        assert all(kept.data_ptr() != own.data_ptr() for kept, own in zip(before, weights, strict=True))
        sgd_(weights, direction, 0.1)
        taken = sgd_(weights, direction, 0.3, carried)
        after = snapshot(weights)
        interpolate_(before, weights, 0.7)
        between = snapshot(weights)
        interpolate_(after, weights, 0.2)
        return [*before, *after, *between, *weights, *direction, *carried, *taken]

    fused = run()
    with ops.plain():
        plain = run()
    for one, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-6)
    for rate, end in ((0.0, 1e7), (1.0, 3.0)):  # exactly
        fast = [torch.full((5,), 3.0, device=DEVICE)]
        interpolate_([torch.full((5,), 1e7, device=DEVICE)], fast, rate)
        assert fast[0].tolist() == [end] * 5


def check_updates_that_are_refused() -> None:
    """Tensors that do not lie alike, or are of another type, are updated all the same."""
    from bcl.ops.triton.updates import takes
    from bcl.ops.updates import sgd_

    a = torch.zeros(4, 6, 2, 3, device=DEVICE)
    assert takes([a], [a])
    assert not takes([a.double()], [a.double()])
    for b in (torch.rand(6, 4, 2, 3, device=DEVICE).transpose(0, 1), torch.rand(4, 6, 2, 3, device=DEVICE)):
        b = b.contiguous(memory_format=torch.channels_last) if b.is_contiguous() else b
        assert not takes([a], [b])
        sgd_([a.zero_()], [b], 2.0)
        torch.testing.assert_close(a, -2 * b)


def check_quadratic_program() -> None:
    from bcl import ops
    from bcl.ops.projections import nonnegative_qp

    draw = torch.Generator().manual_seed(0)
    for n in (1, 2, 5, 16, 17, 20):
        for rows in (
            torch.randn(n, 40, generator=draw),
            torch.randn(n, 3, generator=draw),  # singular
            torch.randn(1, 40, generator=draw) + 1e-3 * torch.randn(n, 40, generator=draw),
            torch.zeros(n, 40),
        ):
            rows = rows.double().to(DEVICE)
            a = rows @ rows.T + (1e-6 if rows.any() else 0) * torch.eye(n, device=DEVICE)
            b = rows @ torch.randn(rows.shape[1], generator=draw).double().to(DEVICE) + 0.5 * a.sum(1)
            u = nonnegative_qp(a, b)
            with ops.plain():
                expected = nonnegative_qp(a, b)
            torch.testing.assert_close(u @ rows, expected @ rows, atol=1e-7, rtol=1e-7)
            assert (u >= 0).all()
            torch.testing.assert_close(u @ a @ u / 2 + b @ u, expected @ a @ expected / 2 + b @ expected)


CHECKS = [
    "losses",
    "inputs",
    "mask",
    "counted_loss",
    "views",
    "updates",
    "updates_that_are_refused",
    "quadratic_program",
]


@pytest.mark.parametrize("name", CHECKS)
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    interpreted(__file__, f"check_{name}")


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for name in CHECKS:
        globals()[f"check_{name}"]()
    print("fused kernels equal their plain forms on", DEVICE)
