"""The fused kernels of networks against torch's operations: on a GPU where there is one, else in Triton's interpreter.

A tolerance of 1e-4 is that of float32; the precision in use is float32's (on a GPU, by way of three TF32 products).
Where large terms cancel, as in the gradient of weights before a batch norm, torch's own float32 is further than that
from the truth: there the kernels are compared with torch's operations in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest
import torch
from interpreted import DEVICE, interpreted
from torch import Tensor, nn

from bcl.nets import ResNet18

pytest.importorskip("triton", reason="the fused kernels are written in Triton, which is not installed")


def both(run: Callable[[], list[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """What a function returns with fused kernels, and in torch's operations."""
    from bcl import ops

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    fused = run()
    with ops.plain():
        plain = run()
    return fused, plain


def near_truth(run: Callable[..., list[Tensor]], *given: nn.Module | Tensor | None) -> None:
    """A function of modules and tensors gives with fused kernels what it gives in torch's operations in float64."""
    from bcl import ops

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with ops.plain():
        truth = run(*(in_double(value) for value in given))
    compare((run(*given), truth))


def in_double(value: nn.Module | Tensor | None) -> nn.Module | Tensor | None:
    if isinstance(value, Tensor):
        return value.detach().double().requires_grad_(value.requires_grad)
    return value if value is None else deepcopy(value).double()


def compare(outcomes: tuple[list[Tensor], list[Tensor]], tolerance: float = 1e-4) -> None:
    for fused, plain in zip(*outcomes, strict=True):
        assert fused.shape == plain.shape
        error = float(
            (fused.detach().double() - plain.detach().double()).norm() / (plain.detach().double().norm() + 1e-12)
        )
        assert error < tolerance, error


def check_conv_norm() -> None:
    from bcl.nets.modules import Conv2d
    from bcl.ops.triton.conv_norm import arrivals

    cases = [
        # channels, filters, size, kernel, stride, padding, groups, channels-last, shortcut, relu
        (3, 20, 9, 3, 1, 1, (4,), False, False, True),
        (20, 20, 8, 3, 1, 1, (3, 5), True, True, True),
        (20, 40, 8, 3, 2, 1, (3, 5), True, False, True),
        (20, 40, 7, 3, 2, 1, (2, 1), True, False, True),
        (20, 36, 8, 1, 2, 0, (4, 3), True, False, False),
        (5, 7, 5, 1, 1, 0, (2, 40), True, True, False),
        (3, 16, 17, 7, 2, 3, (2,), False, False, True),
        (2, 3, 4, 1, 1, 0, (1030, 1), True, False, True),  # more tiles than are summed up at once
        (5, 8, 11, 7, 2, 3, (3, 4), True, True, True),
        (5, 8, 11, 7, 2, 3, (3, 4), False, True, True),
        (40, 70, 2, 3, 1, 1, (9, 30), True, True, True),
        (64, 64, 4, 3, 1, 1, (3, 5), True, True, True),
        (64, 128, 5, 3, 2, 1, (3,), True, False, True),
    ]
    some = slice(None) if DEVICE == "cuda" else slice(0, 10)  # the last take the interpreter long
    for channels, filters, size, kernel, stride, pad, groups, last, with_shortcut, relu in cases[some]:
        draw = torch.Generator().manual_seed(1)
        layout = torch.channels_last if last else torch.contiguous_format
        x = torch.randn(sum(groups), channels, size, size, generator=draw).to(DEVICE, memory_format=layout)
        conv = Conv2d(channels, filters, kernel, stride, pad, bias=False)
        with torch.no_grad():
            conv.weight.copy_(torch.randn(conv.weight.shape, generator=draw))
        conv.to(DEVICE)
        s = torch.randn(conv(x).shape, generator=draw).to(DEVICE).requires_grad_() if with_shortcut else None
        near_truth(partial(normed, groups, relu), conv, x.requires_grad_(), s)
        assert not arrivals(conv, x.device).any(), "the counters must be left as they were found"


def normed(groups: tuple[int, ...], relu: bool, conv: nn.Conv2d, x: Tensor, shortcut: Tensor | None) -> list[Tensor]:
    """Outputs, gradients and statistics in training, and outputs in evaluation mode."""
    from bcl.nets import BatchNorm2d
    from bcl.ops.layers import batch_groups, conv_norm

    norm = BatchNorm2d(conv.out_channels).to(DEVICE, x.dtype)
    with torch.no_grad():
        norm.weight.copy_(torch.linspace(-1, 1, conv.out_channels))
        norm.bias.copy_(torch.linspace(0, 1, conv.out_channels))
    with batch_groups(groups):
        y = conv_norm(conv, norm, x, shortcut, relu)
    inputs = [x, conv.weight, norm.weight, norm.bias, *([] if shortcut is None else [shortcut])]
    w = torch.linspace(-1, 2, y.numel()).view_as(y).to(y)
    results = [y, *torch.autograd.grad((y * w).sum(), inputs), norm.running_mean, norm.running_var]
    norm.eval()
    with torch.no_grad():
        return [*results, conv_norm(conv, norm, x, shortcut, relu)]


def check_stacked() -> None:
    """Whole networks, their layers stacked: with the same weights in all of them, and with others in each."""
    from bcl.nets import MLP

    draw = torch.Generator().manual_seed(2)
    for net, shape in ((MLP((3, 5, 5), 7, [40, 33]), (3, 5, 5)), (shorter(ResNet18(6, width=5)), (3, 9, 9))):
        x = torch.randn(3 * 4, *shape, generator=draw).to(DEVICE)
        for others in (False, True):
            near_truth(partial(stacked, others), net.to(DEVICE).train(), x)


def shorter(net: ResNet18) -> ResNet18:
    """For the interpreter, which is slow: without its later blocks, which are wider and otherwise the same."""
    if DEVICE == "cpu":
        net.layer1, net.layer2, net.layer3, net.layer4 = net.layer1[:1], net.layer2[:1], nn.Identity(), nn.Identity()
        net.fc = nn.Linear(net.fc.in_features // 4, net.fc.out_features)
    return net


def stacked(others: bool, net: nn.Module, x: Tensor) -> list[Tensor]:
    """Three copies, each on its four samples: logits, gradients of each copy's weights, statistics of each."""
    state = {n: w.detach().expand(3, *w.shape).requires_grad_() for n, w in net.named_parameters()}
    if others:
        by_layer = torch.linspace(0.5, 1.5, 3).to(x)
        state = {n: (w * by_layer.view(3, *[1] * (w.dim() - 1))).detach().requires_grad_() for n, w in state.items()}
    weights = list(state.values())
    buffers = {n: b.expand(3, *b.shape).clone() for n, b in net.named_buffers()}
    y = torch.func.functional_call(net, state | buffers, (x,))
    w = torch.linspace(-1, 2, y.numel()).view_as(y).to(y)
    return [y, *torch.autograd.grad((y * w).sum(), weights), *(b.double() for b in buffers.values())]


def check_linear() -> None:
    for n, fan_in, fan_out, relu in [(7, 100, 40, True), (33, 20, 10, False), (1, 5, 70, True), (70, 65, 33, True)]:
        draw = torch.Generator().manual_seed(n)
        layer = nn.Linear(fan_in, fan_out).to(DEVICE)
        x = torch.randn(n, fan_in, generator=draw).to(DEVICE)
        compare(both(partial(multiplied, layer, x, relu)))
        compare(both(partial(multiplied, layer, x.requires_grad_(), relu)))


def multiplied(layer: nn.Linear, x: Tensor, relu: bool) -> list[Tensor]:
    from bcl.ops.layers import linear

    y = linear(layer, x, relu)
    inputs = [layer.weight, layer.bias, *([x] if x.requires_grad else [])]
    return [y, *torch.autograd.grad((y * torch.linspace(-1, 2, y.numel(), device=DEVICE).view_as(y)).sum(), inputs)]


def check_max_pool() -> None:
    for size in (1, 2, 7, 8):
        draw = torch.Generator().manual_seed(size)
        x = torch.randint(0, 4, (3, 5, size, size), generator=draw).float().to(DEVICE).requires_grad_()  # many ties
        for fused, plain in zip(*both(partial(pooled, x)), strict=True):
            assert torch.equal(fused, plain)


def pooled(x: Tensor) -> list[Tensor]:
    from bcl.ops.layers import max_pool

    y = max_pool(nn.MaxPool2d(3, 2, 1), x)
    return [y, *torch.autograd.grad((y * torch.arange(y.numel(), device=DEVICE).view_as(y)).sum(), [x])]


def check_network() -> None:
    """Two groups through a whole network, and what it answers in evaluation mode."""
    from bcl.ops.layers import batch_groups

    torch.manual_seed(0)
    net = shorter(ResNet18(10, 4, "pool")).to(DEVICE)
    x = torch.rand(7, 3, 16, 16, device=DEVICE)
    start = {name: value.clone() for name, value in net.state_dict().items()}

    def run() -> list[Tensor]:
        net.load_state_dict(start)
        net.train()
        with batch_groups((3, 4)):
            y = net(x)
        slopes = torch.autograd.grad((y * torch.arange(10, device=DEVICE)).sum(), list(net.parameters()))
        net.eval()
        with torch.no_grad():
            return [y, *slopes, *(b for b in net.buffers() if b.is_floating_point()), net(x)]

    compare(both(run), 1e-3)


def check_exactness() -> None:
    """Float32 means float32: products are as near to those in float64 as torch's are."""
    from bcl.nets import BatchNorm2d
    from bcl.nets.modules import Conv2d
    from bcl.ops.layers import conv_norm, linear

    draw = torch.Generator().manual_seed(0)
    layer, conv, norm = nn.Linear(500, 40), Conv2d(40, 40, 3, 1, 1, bias=False), BatchNorm2d(40).eval()
    pairs = [
        (lambda x: linear(layer, x), layer, torch.randn(20, 500, generator=draw).to(DEVICE)),
        (lambda x: conv_norm(conv, norm, x), conv, torch.randn(4, 40, 6, 6, generator=draw).to(DEVICE)),
    ]
    for module in (layer, conv, norm):
        module.to(DEVICE)
    for run, module, x in pairs:
        with torch.no_grad():
            fused, plain = both(lambda run=run, x=x: [run(x)])  # type: ignore[misc]
            truth = deepcopy(module).double()(x.double())
            if module is conv:
                truth = truth / (1 + norm.eps) ** 0.5
            errors = [float((result[0].double() - truth).norm() / truth.norm()) for result in (fused, plain)]
        print("error of the fused product and of torch's:", *(f"{error:.1e}" for error in errors))
        assert errors[0] < 3 * errors[1] < 1e-5


def check_not_a_number() -> None:
    """A network that has diverged shows it: NaN in torch's operations is NaN in the kernels, and nothing else is."""
    from bcl.nets import BatchNorm2d
    from bcl.nets.modules import Conv2d
    from bcl.ops.layers import conv_norm

    layer, conv, norm = nn.Linear(6, 5).to(DEVICE), Conv2d(2, 3, 3, 1, 1, bias=False).to(DEVICE), BatchNorm2d(3)
    norm.to(DEVICE)
    row, image = torch.randn(4, 6, device=DEVICE), torch.randn(3, 2, 7, 7, device=DEVICE)
    row[1, 2] = image[2, 0, 3, 4] = torch.nan
    with torch.no_grad():
        evaluated = both(lambda: [conv_norm(conv, norm.eval(), image, None, True)])
        trained = both(lambda: [conv_norm(conv, norm.train(), image, None, True)])
    learnt = both(partial(multiplied, layer, row.requires_grad_(), True))
    maximum = both(partial(pooled, image.requires_grad_()))
    for fused, plain in (evaluated, trained, learnt, maximum):
        assert plain[0].isnan().any()
        for one, other in zip(fused, plain, strict=True):
            torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3, equal_nan=True)


def check_one_sample() -> None:
    """Of which a channel has but one value: its own mean."""
    from bcl.nets.modules import Conv2d

    draw = torch.Generator().manual_seed(0)
    conv = Conv2d(3, 4, 1, bias=False).to(DEVICE)
    for groups in ((1,), (1, 3)):
        x = torch.randn(sum(groups), 3, 1, 1, generator=draw).to(DEVICE).requires_grad_()
        compare(both(partial(normed, groups, False, conv, x, None)))


def check_unusual_layers() -> None:
    """What the kernels do not know is left to torch."""
    from bcl.nets import BatchNorm2d
    from bcl.ops.layers import conv_norm, linear, max_pool

    x, row = torch.rand(4, 4, 8, 8, device=DEVICE), torch.rand(4, 6, device=DEVICE)
    for conv in (
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(4, 4, 3, padding=1, bias=True),
        nn.Conv2d(4, 4, (3, 5), bias=False),
        nn.Conv2d(4, 4, 3, (1, 2), bias=False),
        nn.Conv2d(4, 4, 3, padding="same", bias=False),
        nn.Conv2d(4, 4, 3, dilation=2, bias=False),
        nn.Conv2d(4, 4, 3, groups=2, bias=False),
    ):
        layers = conv.to(DEVICE), BatchNorm2d(4).to(DEVICE)
        compare(both(lambda layers=layers: [conv_norm(*layers, x)]))  # type: ignore[misc]
    layer = nn.Linear(6, 3, bias=False).to(DEVICE)
    compare(both(lambda: [linear(layer, row)]))
    for pool in (nn.MaxPool2d(2), nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.MaxPool2d(3, 1, 1)):
        compare(both(lambda pool=pool: [max_pool(pool, x)]))  # type: ignore[misc]


CHECKS = [
    "exactness", "conv_norm", "linear", "max_pool", "network", "not_a_number", "one_sample", "stacked",
    "unusual_layers",
]  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_a_fused_kernel_equals_its_plain_form(name: str) -> None:
    interpreted(__file__, f"check_{name}")


if __name__ == "__main__":  # where pytest is not at hand to collect it
    for name in CHECKS:
        globals()[f"check_{name}"]()
    print("fused kernels of networks equal their plain forms on", DEVICE)
