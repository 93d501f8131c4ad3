"""Every fused kernel against its plain form: on a GPU where there is one, else in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def check_losses() -> None:
    from bcl import kernels
    from bcl.learners.functional import cross_entropy, distillation_loss

    draw = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 12, generator=draw)
    logits[:, 5:8] = -1e9
    visible = (logits > -1e8).to(DEVICE)
    target = torch.softmax(torch.randn(7, 12, generator=draw).masked_fill(logits < -1e8, -1e9) / 5, 1).to(DEVICE)
    label = torch.tensor([0, 1, 2, 3, 4, 8, 9], device=DEVICE)
    logits = logits.to(DEVICE).requires_grad_()
    for loss in (
        lambda: cross_entropy(logits, label),
        lambda: distillation_loss(logits, target, visible, 5.0, "classes"),
        lambda: distillation_loss(logits, target, visible, 2.0, "batch"),
    ):
        fused = loss()
        with kernels.plain():
            plain = loss()
        torch.testing.assert_close(fused, plain)
        one, other = (torch.autograd.grad(value * 3, logits)[0] for value in (fused, plain))
        torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


def check_norm() -> None:
    import bcl.kernels.norm as module
    from bcl import kernels
    from bcl.nets import BatchNorm2d, batch_groups

    both = (False, True)
    cases = [(m, n, s, r, c) for m in (16384, 64) for n in ((7,), (3, 5)) for s in both for r in both for c in both]
    for largest, sizes, with_shortcut, relu, channels_last in cases:
        module.LARGEST = largest  # a channel in one piece, and in several
        draw = torch.Generator().manual_seed(1)
        layout = torch.channels_last if channels_last else torch.contiguous_format
        shape = sum(sizes), 6, 4, 4
        x, s, w = (torch.randn(shape, generator=draw).to(DEVICE, memory_format=layout) for _ in range(3))
        x.requires_grad_()
        s.requires_grad_()
        outcomes = []
        for plain in (False, True):
            layer = BatchNorm2d(6).to(DEVICE)
            with torch.no_grad():
                layer.weight.copy_(torch.linspace(-1, 1, 6))
                layer.bias.copy_(torch.linspace(0, 1, 6))
            with batch_groups(sizes):
                if plain:
                    with kernels.plain():
                        y = layer(x, s if with_shortcut else None, relu)
                else:
                    y = layer(x, s if with_shortcut else None, relu)
            inputs = [x, layer.weight, layer.bias, *([s] if with_shortcut else [])]
            outcomes.append([y, *torch.autograd.grad((y * w).sum(), inputs), *layer.buffers()])
        for fused, reference in zip(*outcomes, strict=True):
            torch.testing.assert_close(fused, reference, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ["losses", "norm"])
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    if DEVICE == "cuda":
        globals()[f"check_{name}"]()
        return
    # The interpreter must be chosen before Triton is imported, hence a process of its own.
    script = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_kernels as t; t.check_{name}()"
    )
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for check in (check_losses, check_norm):
        check()
    print("fused kernels equal their plain forms on", DEVICE)
