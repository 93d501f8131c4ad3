"""MOSE's losses and draws, transcribed slowly, in float64; the layers are the learner's own, copied."""

from copy import deepcopy

import torch
from naive import Sample
from naive_rivals import NaiveReservoir

from bcl.memory import Random
from bcl.nets import stages_of
from bcl.ops.augment import DRAWS, augment


class NaiveMOSE:
    def __init__(self, learner):
        self.net, self.experts = deepcopy(learner.net).double(), deepcopy(learner.experts).double()
        self.setting, self.h, self.random = learner.setting, learner.hyper, Random(learner.setting.seed)
        self.memory = NaiveReservoir(self.setting.memory * self.setting.tasks, self.random)
        self.begun = []

    def observe(self, x, y, t):
        if t not in self.begun:
            self.begun.append(t)
        batch = [Sample(*one, t) for one in zip(x, y.tolist(), strict=True)]
        for _ in range(self.h.repeats):
            loss = self.loss(batch, t)
            weights = [*self.net.parameters(), *self.experts.parameters()]
            slopes = torch.autograd.grad(loss, weights, allow_unused=True)
            with torch.no_grad():
                for weight, slope in zip(weights, slopes, strict=True):
                    if slope is not None:
                        weight -= self.h.lr * slope
        self.memory.add(batch)

    def loss(self, batch, t):
        past = set(self.begun) - {t}
        new, missing = self.new(batch, t, past)
        mixed = self.mixed(batch, t) if past else []
        samples = new + mixed
        kinds = ["new"] * (len(new) - missing) + ["absent"] * missing + ["mixed"] * len(mixed)
        inputs, times = self.copies(samples)
        samples, kinds = samples * times, kinds * times
        features = self.experts.features(stages_of(self.net, torch.stack(inputs)))
        there = [i for i, kind in enumerate(kinds) if kind != "absent"]
        total = 0.0
        for level, own in enumerate(features):
            z = [self.experts.project[level](f) for f in own]
            total = total + self.contrast([z[i] / z[i].norm() for i in there], [samples[i].y for i in there])
            total = total + self.labelled([self.experts.classify[level](f) for f in own], samples, kinds, t, past)
            if level < len(features) - 1:
                square = 0.0
                for i in there:
                    student = self.experts.adapt(features[-1][i])
                    teacher = own[i].detach()
                    square = square + ((student / student.norm() - teacher / teacher.norm()) ** 2).sum()
                total = total + square.sqrt()
        return total

    def new(self, batch, t, past):
        k = max(1, self.h.replay_batch // 2 - len(batch)) if past else self.h.replay_batch
        here = [i < len(self.memory.items) and self.memory.items[i].t == t for i in range(self.memory.size)]
        slots = self.random.choose(torch.tensor(here), min(k, self.memory.size)).tolist()
        if any(here):
            return batch + [self.memory.items[i] for i in slots], max(0, len(slots) - sum(here))  # repeats come last
        return batch + [batch[i % len(batch)] for i in range(len(slots))], len(slots)

    def mixed(self, batch, t):
        seen = {c for s in self.begun for c in self.setting.classes[s]}
        n = min(int(self.h.replay_batch * len(self.setting.classes[t]) / len(seen)), len(batch))
        filled = [i < len(self.memory.items) for i in range(self.memory.size)]
        others = [there and self.memory.items[i].t != t for i, there in enumerate(filled)]
        eligible = torch.tensor(others if any(others) else filled)
        slots = self.random.choose(eligible, min(self.h.replay_batch - n, self.memory.size)).tolist()
        return batch[:n] + [self.memory.items[i] for i in slots]

    def copies(self, samples):
        x = torch.stack([s.x for s in samples])
        times = 1
        if self.h.augment != "none":
            both = torch.cat([x, x.flip(-1)])
            x = torch.cat(
                [both, augment(both, self.h.augment, self.random.integers(len(both) * DRAWS[self.h.augment]))]
            )
            times = 4
        return [image.double() / 255 if image.dtype == torch.uint8 else image.double() for image in x], times

    def contrast(self, z, labels):
        total = 0.0
        for i in range(len(z)):
            below = sum(torch.exp(z[i] @ z[a] / self.h.temperature) for a in range(len(z)) if a != i)
            positive = [p for p in range(len(z)) if p != i and labels[p] == labels[i]]
            for p in positive:
                total = total - torch.log(torch.exp(z[i] @ z[p] / self.h.temperature) / below) / len(positive)
        return total / len(z)

    def labelled(self, logits, samples, kinds, t, past):
        total = 0.0
        for kind, weight in (("new", 1), ("mixed", 2)):
            rows = [(s, z) for s, z, k in zip(samples, logits, kinds, strict=True) if k == kind]
            for sample, z in rows:
                classes = self.setting.classes[t] if past and kind == "new" else self.visible(sample.t)
                rest = torch.log(sum(torch.exp(z[c]) for c in classes))
                total = total + weight * (rest - z[sample.y]) / len(rows)
        return total

    def visible(self, t):
        if self.setting.scenario == "task":
            return self.setting.classes[t]
        return [c for s in self.begun for c in self.setting.classes[s]]

    def nearest(self, x, classes):
        """Minus the squared distance of each class that has means, averaged over the experts."""
        near = {}
        for c in classes:
            own = [s.x for s in self.memory.items if s.y == c]
            if own:
                asked, stored = self.unit([x]), self.unit(own)
                distances = []
                for level in range(len(asked)):
                    mean = sum(stored[level]) / len(own)
                    distances.append(((asked[level][0] - mean / mean.norm()) ** 2).sum())
                near[c] = -sum(distances) / len(distances)
        return near

    @torch.no_grad()
    def unit(self, images):
        self.net.eval()
        self.experts.eval()
        x = torch.stack(images)
        x = x.double() / 255 if x.dtype == torch.uint8 else x.double()
        features = self.experts.features(stages_of(self.net, x))
        self.net.train()
        self.experts.train()
        return [[f / f.norm() for f in own] for own in features]
