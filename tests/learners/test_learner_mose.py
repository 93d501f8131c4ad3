"""MOSE against a slow transcription of its losses and draws, with one expert and with several."""

import pytest
import torch
from followed import names
from naive_mose import NaiveMOSE
from tiny import TinyConv, TinyMLP, image_setting, tiny_net, tiny_setting, tiny_stream

from bcl import Setting
from bcl.learners import method
from bcl.nets import build


class TwoStages(TinyMLP):
    """Vectors of two sizes."""

    def __init__(self, shape, classes):
        super().__init__(shape, classes)
        self.second = torch.nn.Linear(6, 8)
        self.fc = torch.nn.Linear(8, classes)

    def stages(self, x):
        first = torch.tanh(self.first(x))
        return [first, torch.tanh(self.second(first))]

    def features(self, x):
        return self.stages(x)[-1]


class TwoMaps(TinyConv):
    """Maps of four and of eight channels."""

    def __init__(self, shape, classes):
        super().__init__(shape, classes)
        self.second = torch.nn.Conv2d(4, 8, 3, 2, 1, bias=False)
        self.fc = torch.nn.Linear(8, classes)

    def stages(self, x):
        first = torch.tanh(self.bn(self.conv(x)))
        return [first, torch.tanh(self.second(first))]

    def features(self, x):
        return self.stages(x)[-1].mean((2, 3))


NETS = {"stages": TwoStages, "maps": TwoMaps}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("mlp", {"replay_batch": 8, "temperature": 0.5, "lr": 0.05}),
        ("conv", {"replay_batch": 12, "temperature": 0.5, "lr": 0.05, "repeats": 2}),
        ("stages", {"replay_batch": 12, "temperature": 0.3, "lr": 0.02}),
        ("maps", {"replay_batch": 12, "temperature": 0.5, "lr": 0.01}),
        ("views", {"replay_batch": 8, "temperature": 0.5, "lr": 0.02, "augment": "simclr"}),
    ],
    ids=lambda v: v if isinstance(v, str) else names(v),
)
@pytest.mark.parametrize("scenario", ["task", "class"])
def test_mose_follows_its_equations(kind, scenario, values):
    base = {"stages": "mlp", "maps": "conv", "views": "conv"}.get(kind, kind)
    setting = image_setting(scenario) if kind == "views" else tiny_setting(base, scenario)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = NETS[kind](setting.shape, setting.n_classes) if kind in NETS else tiny_net(base, setting)
    learner = method("mose")(net, setting, optimizer="sgd", weight_decay=0.0, **values)
    assert len(learner.experts.classify) == (2 if kind in NETS else 1)
    reference = NaiveMOSE(learner)
    questions = tiny_stream(setting, schedule=(0,), sizes=(2,), seed=5)[0][0]
    for x, y, t in tiny_stream(setting):
        learner.observe(x, y, t)
        reference.observe(x, y, t)
        for ours, theirs in ((learner.net, reference.net), (learner.experts, reference.experts)):
            for name, value in theirs.state_dict().items():
                torch.testing.assert_close(ours.state_dict()[name].double(), value.double(), rtol=2e-5, atol=1e-5)
        answers = learner.predict(questions, t)
        for x, row in zip(questions, answers, strict=True):
            near = reference.nearest(x, reference.visible(t))
            assert near
            for c, value in near.items():
                torch.testing.assert_close(row[c].double(), value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("net", "levels"), [("resnet18-reduced", 4), ("mlp", 3)])
def test_every_stage_of_the_networks_here_has_an_expert(net, levels):
    setting = Setting.split([[0, 1], [2, 3]], shape=(3, 16, 16), dtype="uint8", memory=8, scenario="class")
    learner = method("mose")(build(net, setting), setting, replay_batch=8, augment="crop")
    before = {name: value.clone() for name, value in learner.experts.state_dict().items()}
    assert len(learner.experts.classify) == levels
    images = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    for t in (0, 0, 1, 1):
        learner.observe(images, torch.tensor(setting.classes[t] * 2), t)
    changed = [name for name, value in learner.experts.named_parameters() if not torch.equal(value, before[name])]
    assert len(changed) == len(list(learner.experts.parameters()))
    assert torch.isfinite(learner.predict(images, 1)).all()
