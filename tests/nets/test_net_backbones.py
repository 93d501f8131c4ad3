"""The networks of the paper: sizes, names, shapes."""

import copy
import os
from pathlib import Path

import pytest
import torch
from torch import nn

from bcl import Setting
from bcl.nets import MLP, ResNet18, build


def parameters(net):
    return sum(p.numel() for p in net.parameters())


def torchvision_names():
    """Every key of torchvision's resnet18, from the architecture."""

    def batch_norm(name):
        return [f"{name}.{field}" for field in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")]

    names = ["conv1.weight", *batch_norm("bn1"), "fc.weight", "fc.bias"]
    for stage in (1, 2, 3, 4):
        for block in (0, 1):
            at = f"layer{stage}.{block}"
            names += [f"{at}.conv1.weight", *batch_norm(f"{at}.bn1"), f"{at}.conv2.weight", *batch_norm(f"{at}.bn2")]
            if stage > 1 and block == 0:
                names += [f"{at}.downsample.0.weight", *batch_norm(f"{at}.downsample.1")]
    return set(names)


def test_sizes_are_the_papers():
    assert parameters(ResNet18(85, 20, "pool")) == 1_106_825
    assert parameters(ResNet18(1000, 64, "imagenet")) == 11_689_512
    assert parameters(MLP((1, 28, 28), 10)) == 784 * 128 + 128 + 2 * (128 * 128 + 128) + 128 * 10 + 10
    assert parameters(ResNet18(10, 20, "plain")) == parameters(ResNet18(10, 20, "pool"))


def test_keys_are_torchvisions():
    net = ResNet18(1000, 64, "imagenet")
    assert set(net.state_dict()) == torchvision_names()
    assert len(torchvision_names()) == 122
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    assert shapes["conv1.weight"] == (64, 3, 7, 7)
    assert shapes["layer4.0.downsample.0.weight"] == (512, 256, 1, 1)
    assert shapes["fc.weight"] == (1000, 512)


def test_pretrained_weights_fit():
    folder = os.environ.get("BCL_TEST_DATA")
    file = Path(folder or ".") / "resnet18-imagenet.pth"
    if not folder or not file.is_file():
        pytest.skip("BCL_TEST_DATA does not name a directory with resnet18-imagenet.pth")
    net = ResNet18(1000, 64, "imagenet")
    net.load_state_dict(torch.load(file, weights_only=True), strict=True)
    with torch.no_grad():
        assert torch.isfinite(net.eval()(torch.rand(1, 3, 224, 224, generator=torch.Generator().manual_seed(0)))).all()


@pytest.mark.parametrize(
    ("stem", "width", "size", "sides"),
    [
        ("pool", 20, 32, [32, 16, 8, 4, 2]),
        ("pool", 20, 84, [84, 42, 21, 11, 6]),
        ("plain", 20, 32, [32, 32, 16, 8, 4]),
        ("imagenet", 64, 224, [112, 56, 28, 14, 7]),
        ("pool", 20, 224, [224, 112, 56, 28, 14]),
    ],
)
def test_shapes_through_the_network(stem, width, size, sides):
    net, maps = ResNet18(7, width, stem).eval(), []
    for stage in (net.bn1, net.layer1, net.layer2, net.layer3, net.layer4):
        stage.register_forward_hook(lambda _module, _inputs, output: maps.append(output))
    with torch.no_grad():
        x = torch.rand(2, 3, size, size, generator=torch.Generator().manual_seed(0))
        logits = net(x)
        assert logits.shape == (2, 7)
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        assert [m.shape[1:] for m in maps] == [(w, side, side) for w, side in zip(widths, sides, strict=True)]
        features = net.features(x)
        torch.testing.assert_close(features, maps[4].flatten(2).sum(2) / sides[4] ** 2)
        assert torch.equal(net.fc(features), logits)


def test_the_stem_has_a_max_pool_of_three_with_stride_two():
    pool = ResNet18(7, 20, "pool").maxpool
    assert isinstance(pool, nn.MaxPool2d)
    assert (pool.kernel_size, pool.stride, pool.padding) == (3, 2, 1)
    assert isinstance(ResNet18(7, 20, "plain").maxpool, nn.Identity)


def test_a_block_is_two_convolutions_and_a_shortcut():
    """By hand: relu(bn2(conv2(relu(bn1(conv1 x)))) + shortcut), in evaluation mode."""
    net = ResNet18(7, 4, "plain").eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.running_mean, generator=torch.Generator().manual_seed(1))
            nn.init.uniform_(module.running_var, 0.5, 2, generator=torch.Generator().manual_seed(2))
    x = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        same, down = net.layer1[0], net.layer2[0]
        inside = same.bn2(same.conv2(same.bn1(same.conv1(x)).clamp(min=0)))
        torch.testing.assert_close(same(x), (inside + x).clamp(min=0))
        inside = down.bn2(down.conv2(down.bn1(down.conv1(x)).clamp(min=0)))
        torch.testing.assert_close(down(x), (inside + down.downsample(x)).clamp(min=0))


def test_the_mlp_by_hand():
    net = MLP((2, 3), 4, hidden=(5, 7))
    assert [tuple(p.shape) for p in net.parameters()] == [(5, 6), (5,), (7, 5), (7,), (4, 7), (4,)]
    x = torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(0))
    hidden = x.reshape(3, 6)
    for layer in (net.body[0], net.body[2]):
        hidden = (hidden @ layer.weight.T + layer.bias).clamp(min=0)
    torch.testing.assert_close(net.features(x), hidden)
    torch.testing.assert_close(net(x), hidden @ net.fc.weight.T + net.fc.bias)


def test_the_mlp_starts_xavier_uniform_with_zero_biases():
    net = build("mlp", Setting.domain(1, 10, (784,)))
    for layer in (net.body[0], net.body[2], net.body[4], net.fc):
        bound = (6 / (layer.in_features + layer.out_features)) ** 0.5
        assert layer.bias.eq(0).all()
        assert layer.weight.abs().max() <= bound
        assert layer.weight.abs().max() > 0.98 * bound
        assert layer.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_convolutions_stay_channels_last():
    """Through copies, moves, checkpoints and steps; and the features that follow are channels-last too."""
    last = torch.channels_last
    net = ResNet18(4, 20)
    weights = net.state_dict()
    net = copy.deepcopy(net).double().float()
    net.load_state_dict({name: value.contiguous() for name, value in weights.items()})
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 20
    x = net.maxpool(net.conv1(torch.rand(2, 3, 8, 8)))
    assert net.layer1(x).is_contiguous(memory_format=last)
    assert not net.layer1(x).is_contiguous()
    gradients = torch.autograd.grad(net(torch.rand(3, 3, 8, 8)).sum(), [c.weight for c in convolutions])
    torch._foreach_add_([c.weight.data for c in convolutions], list(gradients))
    assert all(c.weight.is_contiguous(memory_format=last) for c in convolutions)
    assert sum(c.weight.is_contiguous() for c in convolutions) == 3, "those of 1x1 lie both ways"
