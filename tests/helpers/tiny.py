"""Networks, settings and streams so small that every equation can be followed by hand."""

import torch
from torch import nn

from bcl import Setting
from bcl.learners import METHODS, method

SCHEDULE = (0, 0, 0, 1, 1, 1, 2, 2, 0, 0, 2)  # three tasks, two of which come back
SIZES = (4, 3, 6, 4, 1, 5, 4, 3, 4, 2, 4)  # of the batches; larger than a ring, as large, a single sample


class TinyMLP(nn.Module):
    def __init__(self, shape, classes):
        super().__init__()
        self.first = nn.Linear(shape[0], 6)
        self.fc = nn.Linear(6, classes)

    def features(self, x):
        return torch.tanh(self.first(x))

    def forward(self, x):
        return self.fc(self.features(x))


class TinyConv(nn.Module):
    """A convolution, batch norm, the mean over the image, a linear head."""

    def __init__(self, shape, classes):
        super().__init__()
        self.conv = nn.Conv2d(shape[0], 4, 3, bias=False)
        self.bn = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, classes)

    def features(self, x):
        return torch.tanh(self.bn(self.conv(x))).mean((2, 3))

    def forward(self, x):
        return self.fc(self.features(x))


# Every method in every scenario that it learns in.
METHODS_AND_SCENARIOS = [(name, scenario) for name in METHODS for scenario in method(name).scenarios]
TRAINING = [name for name in METHODS if method(name).trains_network]  # not those that keep statistics
TRAINING_AND_SCENARIOS = [(name, scenario) for name, scenario in METHODS_AND_SCENARIOS if name in TRAINING]
SHAPES = {"mlp": (5,), "conv": (2, 5, 5)}
NETS = {"mlp": TinyMLP, "conv": TinyConv}


def tiny_setting(net="mlp", scenario="task", *, memory=5, dtype="float32", input_range=(0.0, 1.0), seed=3):
    """Three tasks of 2, 3 and 2 classes; domain-incremental: three tasks with the same three classes."""
    classes = ((0, 1, 2),) * 3 if scenario == "domain" else ((0, 3), (1, 4, 6), (2, 5))
    return Setting(scenario, classes, SHAPES[net], dtype, memory, 4, input_range, seed)


def image_setting(scenario):
    """Bytes that are large enough to be cropped, for the network `conv`."""
    classes = tiny_setting("conv", scenario).classes
    return Setting(scenario, classes, (2, 16, 16), "uint8", 5, 4, (0.0, 1.0), 3)


def tiny_net(net, setting, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return NETS[net](setting.shape, setting.n_classes)


def tiny_stream(setting, schedule=SCHEDULE, sizes=SIZES, seed=11):
    """Batches (x, y, t): noise around a mean per class and task, so that there is something to learn."""
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for t, n in zip(schedule, sizes, strict=True):
        if setting.dtype == "uint8":
            x = torch.randint(0, 256, (n, *setting.shape), generator=generator, dtype=torch.uint8)
        else:
            x = torch.randn(n, *setting.shape, generator=generator)
        classes = torch.tensor(setting.classes[t])
        batches.append((x, classes[torch.randint(0, len(classes), (n,), generator=generator)], t))
    return batches


def tiny_learner(name, net="mlp", scenario=None, *, seed=3, net_seed=0, memory=5, **values):
    """A learner by its method's name, in a scenario that it learns in."""
    cls = method(name)
    setting = tiny_setting(net, scenario or cls.scenarios[0], seed=seed, memory=memory)
    return cls(tiny_net(net, setting, net_seed), setting, **values)


def state(learner):
    """A copy of all that a learner is."""
    return {name: tensor.clone() for name, tensor in learner.state_dict().items()}


def same_state(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
