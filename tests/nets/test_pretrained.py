"""Weights from elsewhere: kept if they are those of a ResNet-18 and nothing else, and then known as an encoder."""

import pytest
import torch

from bcl.errors import MissingDataError, UserError
from bcl.nets import ResNet18, build
from bcl.nets.encoders import find_encoder
from bcl.nets.pretrained import check, import_weights
from bcl.streams import Setting


@pytest.fixture(scope="module")
def weights():
    torch.manual_seed(0)
    return ResNet18(1000, 64, "imagenet").state_dict()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: [1, 2], "holds no state dict"),
        (lambda w: {**w, "more": torch.zeros(1)}, "is not a ResNet-18: it has 'more'"),
        (lambda w: {name: w[name] for name in w if name != "conv1.weight"}, "it lacks 'conv1.weight'"),
        (lambda w: {**w, "bn1.bias": torch.zeros(3)}, r"'bn1.bias' is \(3,\), not \(64,\)"),
        (lambda w: {**w, "bn1.bias": torch.full((64,), torch.nan)}, "'bn1.bias' contains NaN"),
    ],
)
def test_weights_that_are_refused(weights, tmp_path, change, says):
    with pytest.raises(UserError, match=says):
        check(tmp_path / "weights.pth", change(weights))


def test_weights_become_an_encoder_without_their_last_layer(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    with pytest.raises(MissingDataError, match="is not a file"):
        import_weights(tmp_path / "nowhere.pth")
    kept = {name: tensor for name, tensor in weights.items() if not name.startswith("fc.")}
    torch.save({"state_dict": kept}, tmp_path / "weights.pth")
    assert import_weights(tmp_path / "weights.pth")["counts"] == {"tensors": len(kept)}
    find_encoder.cache_clear()
    encoder = find_encoder("resnet18-imagenet").encode
    find_encoder.cache_clear()
    net = ResNet18(1000, 64, "imagenet").eval()
    net.load_state_dict(weights)
    x = torch.rand(2, 3, 32, 32)
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    with torch.no_grad():
        wanted = net.features((x - mean.view(3, 1, 1)) / deviation.view(3, 1, 1))
        assert torch.allclose(encoder(x), wanted, atol=1e-6)


def test_a_pretrained_network_sees_images_as_it_saw_imagenets(weights, tmp_path, monkeypatch):
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "cache"))
    torch.save(weights, tmp_path / "weights.pth")
    import_weights(tmp_path / "weights.pth")
    setting = Setting.split([[0, 1], [2, 3]], shape=(3, 32, 32), scenario="task", memory=4)
    net, raw = build("resnet18-imagenet", setting), build("resnet18-imagenet-raw", setting)
    assert net.state_dict().keys() == raw.state_dict().keys(), "nothing of it is state"
    raw.load_state_dict(net.state_dict())
    x = torch.rand(4, 3, 32, 32)
    standard = (x - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(
        3, 1, 1
    )
    answers = net.eval()(x)
    assert torch.allclose(answers, raw.eval()(standard), atol=1e-5)
    assert not torch.allclose(answers, raw(x), atol=1e-2)
