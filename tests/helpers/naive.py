"""The learners' equations, transcribed slowly: loops over samples, weights in a dictionary, memories as lists.

Nothing is taken from the package but the random choice of which samples are drawn. All arithmetic is in float64.
"""

import copy

import torch
from torch.nn.functional import conv2d

from bcl.memory import Random


class NaiveNet:
    """The tiny networks, written out. `value` holds parameters and batch-norm statistics by name."""

    def __init__(self, net):
        self.value = {name: v.detach().clone().double() for name, v in net.state_dict().items()}
        self.parameters = [name for name, _ in net.named_parameters()]
        for name in self.parameters:
            self.value[name].requires_grad_()

    def forward(self, samples, training):
        """One forward pass over a list of inputs: a list of logits."""
        return [self.value["fc.weight"] @ f + self.value["fc.bias"] for f in self.features(samples, training)]

    def features(self, samples, training):
        v = self.value
        if "conv.weight" in v:
            hidden = self.batch_norm([conv2d(x[None], v["conv.weight"])[0] for x in samples], training)
            return [torch.tanh(h).mean((1, 2)) for h in hidden]
        return [torch.tanh(v["first.weight"] @ x + v["first.bias"]) for x in samples]

    def copy(self):
        """The network as it is now, for later."""
        other = copy.copy(self)
        other.value = {name: v.detach().clone() for name, v in self.value.items()}
        return other

    def batch_norm(self, maps, training):
        v, columns = self.value, []
        for c in range(4):
            values = torch.cat([m[c].flatten() for m in maps])
            mean, n = values.sum() / len(values), len(values)
            spread = ((values - mean) ** 2).sum()
            if training:
                v["bn.running_mean"][c] = 0.9 * v["bn.running_mean"][c] + 0.1 * mean.detach()
                v["bn.running_var"][c] = 0.9 * v["bn.running_var"][c] + 0.1 * spread.detach() / (n - 1)
                variance = spread / n
            else:
                mean, variance = v["bn.running_mean"][c].clone(), v["bn.running_var"][c].clone()
            scale = v["bn.weight"][c] / (variance + 1e-5).sqrt()
            columns.append([scale * (m[c] - mean) + v["bn.bias"][c] for m in maps])
        if training:
            v["bn.num_batches_tracked"] += 1
        return [torch.stack(channels) for channels in zip(*columns, strict=True)]

    def gradient(self, loss):
        values = torch.autograd.grad(loss, [self.value[name] for name in self.parameters])
        return dict(zip(self.parameters, values, strict=True))

    def descend(self, direction, rate):
        for name in self.parameters:
            self.value[name] = (self.value[name].detach() - rate * direction[name]).requires_grad_()


class Sample:
    def __init__(self, x, y, t):
        self.x, self.y, self.t = x, y, t
        self.target = {}  # class -> probability


class NaiveRing:
    """The samples of one task, oldest replaced first."""

    def __init__(self, size, overflow):
        self.size, self.overflow, self.items, self.next, self.stored = size, overflow, [], 0, 0

    def add(self, samples):
        for sample in samples:
            if len(self.items) < self.size:
                self.items.append(sample)
            else:
                self.items[self.next] = sample
            self.next, self.stored = (self.next + 1) % self.size, self.stored + 1
            if self.overflow == "cut" and self.next == 0:
                return


class NaiveFinetune:
    def __init__(self, net, setting, **h):
        self.net, self.setting, self.h = NaiveNet(net), setting, h
        self.random = Random(setting.seed)
        self.task, self.begun = None, []

    def observe(self, x, y, t):
        if t != self.task:
            self.begin(t)
        self.step([Sample(*one, t) for one in zip(x, y.tolist(), strict=True)], t)

    def begin(self, t):
        self.task = t
        if t not in self.begun:
            self.begun.append(t)

    def step(self, batch, t):
        loss = self.cross_entropy(batch, self.logits(batch))
        self.net.descend(self.net.gradient(loss), self.h["lr"])

    def classes(self, t):
        """The classes among which a sample of task t is told apart."""
        if self.setting.scenario == "task":
            return sorted(self.setting.classes[t])
        if self.setting.scenario == "class":
            return sorted(c for s in self.begun for c in self.setting.classes[s])
        return list(range(self.setting.n_classes))

    def come(self):
        """The classes that have come, where they are told apart from those of other tasks."""
        return self.classes(0) if self.setting.scenario == "class" else []

    def extend_targets(self, samples, before):
        """In each target, classes that have come since `before` get a share of its least probable one's probability."""
        new = [c for c in self.come() if c not in before] if self.h.get("later_classes") else []
        for sample in samples:
            if sample.target:
                least = self.h.get("later_classes", 0) * min(sample.target.values())
                whole = 1 + len(new) * least
                sample.target = {c: p / whole for c, p in sample.target.items()} | dict.fromkeys(new, least / whole)

    def logits(self, samples, training=True):
        return self.net.forward(self.inputs(samples), training)

    def inputs(self, samples):
        inputs = [s.x.double() for s in samples]
        if self.setting.dtype == "uint8":
            low, high = self.setting.input_range
            inputs = [low + (high - low) * x / 255 for x in inputs]
        return inputs

    def cross_entropy(self, samples, logits):
        """Eq. 2: the mean of -log p(y), p over the classes of the sample's task alone."""
        total = 0.0
        for sample, z in zip(samples, logits, strict=True):
            total = total + torch.log(sum(torch.exp(z[c]) for c in self.classes(sample.t))) - z[sample.y]
        return total / len(samples)


class NaiveER(NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.rings = [NaiveRing(setting.memory, "wrap") for _ in range(setting.tasks)]

    def step(self, batch, t):
        replay = self.draw_replay(t) if set(self.begun) - {t} else []
        loss = self.loss(batch, replay)
        self.net.descend(self.net.gradient(loss), self.h["lr"])
        self.keep(batch, t)

    def keep(self, batch, t):
        self.rings[t].add(batch)

    def draw_replay(self, t):
        """Samples of other tasks: as many as one ring holds, at most replay_batch."""
        return self.choose(t, min(self.h["replay_batch"], self.most()))[0]

    def most(self):
        """Of how many samples a draw consists at most."""
        return self.rings[0].size

    def choose(self, t, k):
        """k samples of other tasks, and how many of them are stored."""
        size = self.rings[0].size
        eligible = [s != t and place < len(ring.items) for s, ring in enumerate(self.rings) for place in range(size)]
        chosen = self.random.choose(torch.tensor(eligible), k).tolist()
        return [self.rings[slot // size].items[slot % size] for slot in chosen], sum(eligible)

    def loss(self, batch, replay):
        if self.h["joint_forward"]:
            logits = self.logits(batch + replay)
        else:
            logits = self.logits(batch) + (self.logits(replay) if replay else [])
        loss = self.cross_entropy(batch, logits[: len(batch)])
        if replay:
            loss = loss + self.cross_entropy(replay, logits[len(batch) :])
            loss = loss + self.regularizer(replay, logits[len(batch) :])
        return loss

    def regularizer(self, replay, logits):
        return 0.0
