"""The layers of the experts against torch's modules, literally put together: weights, outputs, gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from bcl import Setting
from bcl.nets import Experts, build
from bcl.nets.experts import Attention, Down
from bcl.ops.layers import depthwise, gate


def literal_down(channels: int, wide: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, channels, 3, stride=2, padding=1, groups=channels, bias=False),
        nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
        nn.Conv2d(channels, channels, 3, stride=1, padding=1, groups=channels, bias=False),
        nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(),
    )  # fmt: skip


class LiteralAttention(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.layers = nn.Sequential(literal_down(channels, channels), nn.BatchNorm2d(channels), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        return gated(x, self.layers(x))


def gated(x: Tensor, seen: Tensor) -> Tensor:
    return x * torch.sigmoid(interpolate(seen, size=x.shape[2:], mode="bilinear", align_corners=False))


def with_gradients(run: nn.Module, x: Tensor) -> list[Tensor]:
    """Outputs, gradients, statistics; and outputs in evaluation mode."""
    x = x.detach().clone().requires_grad_()
    y = run.train()(x)
    w = torch.linspace(-1, 2, y.numel()).view_as(y)
    results = [y, *torch.autograd.grad((y * w).sum(), [x, *run.parameters()])]
    statistics = [value.clone() for name, value in run.named_buffers() if "running" in name]
    return [*results, *statistics, run.eval()(x)]


def images(channels: int, height: int, width: int) -> Tensor:
    return torch.randn(4, channels, height, width, generator=torch.Generator().manual_seed(height))


@pytest.mark.parametrize("sides", [(8, 8), (7, 7), (4, 7), (3, 2)])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: Down(6, 6), lambda: literal_down(6, 6)),
        (lambda: Down(6, 11), lambda: literal_down(6, 11)),
        (lambda: Attention(6), lambda: LiteralAttention(6)),
    ],
    ids=["down", "wider", "attention"],
)
def test_a_layer_is_what_its_modules_are(ours, theirs, sides):
    torch.manual_seed(0)
    one = ours()
    torch.manual_seed(0)
    other = theirs()
    assert list(one.state_dict()) == list(other.state_dict())
    for name, value in other.state_dict().items():
        assert torch.equal(one.state_dict()[name], value)
    results = with_gradients(one, images(6, *sides)), with_gradients(other, images(6, *sides))
    assert len(results[0]) == len(results[1]) > 8
    for mine, expected in zip(*results, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("stride", [1, 2])
def test_a_depthwise_convolution_is_torchs(stride):
    conv = nn.Conv2d(5, 5, 3, stride, 1, groups=5, bias=False)
    x = images(5, 7, 6)
    expected = [channel_by_itself(conv, x, i) for i in range(5)]
    torch.testing.assert_close(depthwise(conv, x), torch.cat(expected, 1), atol=1e-6, rtol=1e-5)


def channel_by_itself(conv: nn.Conv2d, x: Tensor, i: int) -> Tensor:
    return nn.functional.conv2d(x[:, i : i + 1], conv.weight[i : i + 1], stride=conv.stride, padding=1)


@pytest.mark.parametrize(("large", "small"), [((8, 8), (4, 4)), ((7, 5), (4, 3)), ((1, 2), (1, 1)), ((9, 9), (2, 3))])
def test_a_gate_is_between_the_pixels_of_a_smaller_map(large, small):
    """The interpolated value is written out, as bilinear interpolation is defined."""
    x, seen = images(3, *large).double().requires_grad_(), images(3, *small).double().requires_grad_()
    rows, columns = (weights(one, other) for one, other in zip(large, small, strict=True))
    expected = x * torch.sigmoid(torch.einsum("hp,ncpq,vq->nchv", rows, seen, columns))
    w = torch.linspace(-1, 2, x.numel()).view_as(x)
    for mine, true in zip(
        torch.autograd.grad((gate(x, seen) * w).sum(), [x, seen]),
        torch.autograd.grad((expected * w).sum(), [x, seen]),
        strict=True,
    ):
        torch.testing.assert_close(mine, true, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(gate(x, seen), expected, atol=1e-6, rtol=1e-6)


def weights(large: int, small: int) -> Tensor:
    """[large, small]: of each pixel of the smaller side in each of the larger one."""
    matrix = torch.zeros(large, small, dtype=torch.float64)
    for i in range(large):
        at = min(max((i + 0.5) * small / large - 0.5, 0), small - 1)
        first = int(at)
        matrix[i, first] += 1 - (at - first)
        matrix[i, min(first + 1, small - 1)] += at - first
    return matrix


def test_the_same_seed_gives_the_weights_that_torchs_modules_would_have():
    setting = Setting.split([[0, 1], [2, 3]], shape=(3, 32, 32), dtype="uint8", memory=8, scenario="class", seed=0)
    net = build("resnet18-reduced", setting)
    experts = Experts(net, setting, 16)
    torch.manual_seed(0 + 3)
    literal = nn.Module()
    literal.align = nn.ModuleList(
        [
            nn.Sequential(LiteralAttention(20), literal_down(20, 40), literal_down(40, 80), literal_down(80, 160)),
            nn.Sequential(LiteralAttention(40), literal_down(40, 80), literal_down(80, 160)),
            nn.Sequential(LiteralAttention(80), literal_down(80, 160)),
            nn.Sequential(),
        ]
    )
    literal.classify = nn.ModuleList(nn.Linear(160, 4) for _ in range(4))
    literal.project = nn.ModuleList(nn.Linear(160, 16) for _ in range(4))
    literal.adapt = nn.Linear(160, 160)
    mine, expected = experts.state_dict(), literal.state_dict()
    assert list(mine) == list(expected)
    assert all(torch.equal(mine[name], value) for name, value in expected.items())
    stages = [images(c, side, side) for c, side in ((20, 16), (40, 8), (80, 4), (160, 2))]
    for vector, align, stage in zip(experts.features(stages), literal.align, stages, strict=True):
        torch.testing.assert_close(vector, align(stage).mean((2, 3)), atol=1e-6, rtol=1e-6)
