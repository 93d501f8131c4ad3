"""iCaRL, transcribed slowly from its paper (Algorithms 1 to 5): exemplars as a list per class."""

import torch
from naive import NaiveFinetune


class NaiveICaRL(NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.budget = setting.memory * setting.tasks
        self.exemplars, self.met = {}, {}  # class -> samples, and how many have come; in the order of their beginning

    def begin(self, t):
        if self.task is not None:
            for c in self.setting.classes[self.task]:
                self.exemplars[c] = self.herd(self.exemplars[c])
            self.old = self.net.copy()
        super().begin(t)
        for c in self.setting.classes[t]:
            self.exemplars.setdefault(c, [])
            self.met.setdefault(c, 0)
        for c in self.exemplars:  # Algorithm 5
            self.exemplars[c] = self.exemplars[c][: self.share(c)]

    def share(self, c):
        """K / classes; the remainder goes one by one to the first."""
        whole, rest = divmod(self.budget, len(self.exemplars))
        return whole + (list(self.exemplars).index(c) < rest)

    def herd(self, samples):
        """Algorithm 4."""
        features = self.features(samples)
        if not samples:
            return []
        mean, left, chosen = sum(features) / len(features), list(range(len(samples))), []
        while left:
            k = len(chosen) + 1
            gaps = {i: (mean - (features[i] + sum(features[j] for j in chosen)) / k).norm() for i in left}
            best = next(i for i in left if gaps[i] <= min(gaps.values()) + 1e-9)
            chosen.append(best)
            left.remove(best)
        return [samples[i] for i in chosen]

    def features(self, samples):
        with torch.no_grad():
            return [f / f.norm() for f in self.net.features(self.inputs(samples), training=False)] if samples else []

    def step(self, batch, t):
        past = [s for s in self.begun if s != t]
        replay = self.draw(t) if past else []
        new = self.setting.classes[t]
        earlier = {c for s in past for c in self.setting.classes[s]} - set(new)
        losses = []
        everything = batch + replay
        before = self.old.forward(self.inputs(everything), training=False) if past else [None] * len(batch)
        for sample, z, z_old in zip(everything, self.logits(everything), before, strict=True):
            loss = 0.0
            for c in new:
                loss = loss - torch.log(torch.sigmoid(z[c]) if c == sample.y else 1 - torch.sigmoid(z[c]))
            for c in earlier:
                q, g = torch.sigmoid(z_old[c]), torch.sigmoid(z[c])
                loss = loss - (q * torch.log(g) + (1 - q) * torch.log(1 - g))
            losses.append(loss)
        n = len(batch)
        loss = sum(losses[:n]) / n + (sum(losses[n:]) / len(replay) if past else 0.0)
        self.net.descend(self.net.gradient(loss), self.h["lr"])
        self.keep(batch)

    def draw(self, t):
        slots = []
        for c, samples in self.exemplars.items():
            slots += [*samples, *[None] * (self.share(c) - len(samples))]
        eligible = [s is not None and s.t != t for s in slots]
        chosen = self.random.choose(torch.tensor(eligible), min(self.h["replay_batch"], self.setting.memory))
        return [slots[i] for i in chosen.tolist()]

    def keep(self, batch):
        """A uniform sample of each class while it is learnt."""
        for sample, number in zip(batch, self.random.integers(len(batch)).tolist(), strict=True):
            c = sample.y
            held, self.met[c] = self.exemplars[c], self.met[c] + 1
            place = number % self.met[c]
            if self.met[c] <= self.share(c):
                held.append(sample)
            elif place < self.share(c):
                held[place] = sample

    def nearest(self, x, classes):
        """Algorithm 1: the distance of x from the mean of each class that has one."""
        with torch.no_grad():
            (feature,) = self.net.features([x.double()], training=False)
        distance = {}
        for c in classes:
            if self.exemplars.get(c):
                mean = sum(self.features(self.exemplars[c])) / len(self.exemplars[c])
                distance[c] = (feature / feature.norm() - mean / mean.norm()).norm()
        return distance
