"""The kernels of the experts' layers against torch's operations in float64: on a GPU where there is one, else in
Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest
import torch
from interpreted import DEVICE, interpreted
from torch import Tensor, nn
from torch.nn.functional import conv2d, interpolate

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")


def batch(*shape: int, last: bool = True) -> Tensor:
    draw = torch.Generator().manual_seed(sum(shape))
    layout = torch.channels_last if last else torch.contiguous_format
    return torch.randn(*shape, generator=draw).to(DEVICE, memory_format=layout).requires_grad_()


def compare(fused: Callable[..., Tensor], truth: Callable[..., Tensor], *given: Tensor) -> None:
    """Outputs and gradients; and they are the same to the last bit when computed again."""
    results = with_gradients(fused, given)
    for one, again in zip(results, with_gradients(fused, given), strict=True):
        assert torch.equal(one, again)
    doubled = [value.detach().double().requires_grad_() for value in given]
    for one, true in zip(results, with_gradients(truth, doubled), strict=True):
        assert one.shape == true.shape
        torch.testing.assert_close(one.double(), true, atol=1e-5 * float(true.abs().max()), rtol=0)


def with_gradients(run: Callable[..., Tensor], given: Sequence[Tensor]) -> list[Tensor]:
    y = run(*given)
    w = torch.linspace(-1, 2, y.numel(), device=DEVICE).view_as(y).to(y)
    return [y.detach(), *torch.autograd.grad((y * w).sum(), given)]


def check_depthwise() -> None:
    from bcl.ops.layers import depthwise

    cases = [
        # samples, channels, height, width, channels-last
        (2, 3, 5, 5, True),
        (3, 20, 8, 8, True),
        (2, 20, 7, 7, True),
        (2, 40, 4, 7, False),
        (5, 160, 2, 2, True),
        (2, 4, 1, 1, True),
        (3, 8, 15, 13, True),  # several programs, each of several steps, the last one not full
    ]
    cases += [(384, 64, 32, 32, True), (424, 20, 32, 32, True), (300, 512, 4, 4, True)] if DEVICE == "cuda" else []
    for n, channels, height, width, last in cases:
        for stride in (1, 2):
            conv = nn.Conv2d(channels, channels, 3, stride, 1, groups=channels, bias=False).to(DEVICE)
            x = batch(n, channels, height, width, last=last)
            compare(
                lambda x, _, conv=conv: depthwise(conv, x),  # type: ignore[misc]
                lambda x, w, stride=stride: conv2d(x, w, None, stride, 1, groups=len(w)),  # type: ignore[misc]
                x, conv.weight,
            )  # fmt: skip
            assert depthwise(conv, x).is_contiguous(memory_format=torch.channels_last)
            (alone,) = torch.autograd.grad(depthwise(conv, x.detach()).sum(), [conv.weight])  # a first layer's
            torch.testing.assert_close(
                alone, torch.autograd.grad(conv(x).sum(), [conv.weight])[0], atol=1e-3, rtol=1e-4
            )


def check_gate() -> None:
    from bcl.ops.layers import gate

    sides = [
        ((8, 8), (4, 4)),
        ((7, 5), (4, 3)),
        ((1, 2), (1, 1)),
        ((3, 6), (2, 6)),
        ((4, 4), (7, 9)),
        ((33, 14), (17, 7)),
    ]
    cases = [(2, channels, large, small) for channels in (3, 20) for large, small in sides]
    if DEVICE == "cuda":
        cases += [(384, 64, (32, 32), (16, 16)), (424, 20, (32, 32), (16, 16)), (64, 160, (84, 84), (42, 42))]
    for n, channels, large, small in cases:
        x, seen = batch(n, channels, *large), batch(n, channels, *small)
        compare(gate, gated, x, seen)
        assert gate(x, seen).is_contiguous(memory_format=torch.channels_last)


def gated(x: Tensor, seen: Tensor) -> Tensor:
    return x * interpolate(seen, size=x.shape[2:], mode="bilinear", align_corners=False).sigmoid()


def check_others() -> None:
    """What the kernels do not know is left to torch."""
    from bcl.ops.layers import depthwise, gate

    x = batch(2, 4, 8, 8)
    for conv in (
        nn.Conv2d(4, 4, 3, padding=1, groups=4),
        nn.Conv2d(4, 4, 5, padding=2, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, padding=0, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, 3, 1, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, (1, 2), 1, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, padding=1, groups=2, bias=False),
        nn.Conv2d(4, 8, 3, padding=1, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=4, bias=False),
        nn.Conv2d(4, 4, 3, padding="same", groups=4, bias=False),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect", groups=4, bias=False),
    ):
        conv.to(DEVICE)
        torch.testing.assert_close(depthwise(conv, x), conv(x))
    small = batch(2, 4, 3, 4)
    for one, other in zip(with_gradients(gate, [x, small]), with_gradients(gated, [x, small]), strict=True):
        torch.testing.assert_close(one, other)


def check_not_a_number() -> None:
    """A network that has diverged shows it, and nothing else does."""
    from bcl import ops
    from bcl.ops.layers import depthwise, gate

    conv = nn.Conv2d(2, 2, 3, 1, 1, groups=2, bias=False).to(DEVICE)
    x, seen = batch(2, 2, 7, 7).detach(), batch(2, 2, 4, 4).detach()
    x[1, 0, 3, 4] = seen[0, 1, 2, 2] = torch.nan
    fused = depthwise(conv, x), gate(x, seen)
    with ops.plain():
        plain = depthwise(conv, x), gate(x, seen)
    for one, other in zip(fused, plain, strict=True):
        assert other.isnan().any()
        torch.testing.assert_close(one, other, equal_nan=True)


def check_experts() -> None:
    """Attention and what halves, whole: in training, and in evaluation mode."""
    from bcl import ops
    from bcl.nets.experts import Attention, Down

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    layers = nn.Sequential(Attention(6), Down(6, 12)).to(DEVICE)
    true, x = deepcopy(layers).double(), batch(4, 6, 7, 7)
    doubled = x.detach().double().requires_grad_()
    fused = [*with_gradients(lambda *_: layers(x), [x, *layers.parameters()]), *layers.buffers()]
    with ops.plain():
        plain = [*with_gradients(lambda *_: true(doubled), [doubled, *true.parameters()]), *true.buffers()]
    with torch.no_grad():
        fused.append(layers.eval()(x))
        with ops.plain():
            plain.append(true.eval()(doubled))
    for one, other in zip(fused, plain, strict=True):
        torch.testing.assert_close(one.double(), other.double(), atol=1e-5 + 1e-4 * float(other.abs().max()), rtol=0)


CHECKS = ["depthwise", "gate", "others", "not_a_number", "experts"]


@pytest.mark.parametrize("name", CHECKS)
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    interpreted(__file__, f"check_{name}")


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for name in CHECKS:
        globals()[f"check_{name}"]()
    print("fused kernels of experts equal their plain forms on", DEVICE)
