"""Every fused kernel against its plain form: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from interpreted import DEVICE, interpreted

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")


def check_losses() -> None:
    for n, k, classes in [(3, 4, 12), (1, 300, 12), (10, 40, 100), (5, 2, 1000), (2, 1, 1)]:
        same_losses(n, k, classes)


def same_losses(n: int, k: int, classes: int) -> None:
    from bcl import kernels
    from bcl.learners.functional import cross_entropy, distillation_loss, gradients, replay_loss

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
        assert hasattr(fused, "root")
        with kernels.plain():
            plain = loss(raw.masked_fill(hidden, -1e9))
            assert not hasattr(plain, "root")
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-4)
        (slope,) = torch.autograd.grad(plain, raw)
        (scaled,) = torch.autograd.grad(fused * 3, raw, retain_graph=True)
        torch.testing.assert_close(scaled, slope * 3, atol=3e-6, rtol=1e-4)
        torch.testing.assert_close(gradients(fused * 3, [raw])[0] / 3, slope, atol=3e-6, rtol=1e-4)
        (direct,) = gradients(loss(raw.masked_fill(hidden, -1e9)), [raw])
        torch.testing.assert_close(direct, slope, atol=1e-6, rtol=1e-4)


def check_inputs() -> None:
    from bcl import kernels
    from bcl.nets import join_inputs

    draw = torch.Generator().manual_seed(0)
    for shape in ((3,), (1, 28, 28), ()):
        one, other = (torch.randint(0, 256, (n, *shape), generator=draw, dtype=torch.uint8).to(DEVICE) for n in (4, 9))
        for parts in ([one], [one, other], [other[1:], one[:3]]):
            for span in ((0.0, 1.0), (-1.0, 1.0), (0.2, 5.0)):
                fused = join_inputs(parts, span)
                with kernels.plain():
                    plain = join_inputs(parts, span)
                assert fused.dtype == torch.float32
                torch.testing.assert_close(fused, plain, atol=1e-6, rtol=1e-6)


def check_mask() -> None:
    from bcl import kernels
    from bcl.nets import mask_tasks

    draw = torch.Generator().manual_seed(0)
    visible = (torch.rand(4, 11, generator=draw) < 0.5).to(DEVICE)
    task = torch.tensor([3, 0, 1, 1, 2, 0], device=DEVICE)
    for n, t, rest in ((6, 2, None), (300, 1, None), (6, task, None), (10, 2, task), (7, 3, task)):
        logits = torch.randn(n, 11, generator=draw).to(DEVICE).requires_grad_()
        weight = torch.randn(n, 11, generator=draw).to(DEVICE)
        outcomes = []
        for context in (nullcontext, kernels.plain):
            with context():
                out = mask_tasks(logits, visible, t, rest)
            outcomes.append([out, *torch.autograd.grad((out * weight).sum(), logits)])
        for fused, plain in zip(*outcomes, strict=True):
            assert torch.equal(fused, plain)


@pytest.mark.parametrize("name", ["losses", "inputs", "mask"])
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    interpreted(__file__, f"check_{name}")


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for check in (check_losses, check_inputs, check_mask):
        check()
    print("fused kernels equal their plain forms on", DEVICE)
