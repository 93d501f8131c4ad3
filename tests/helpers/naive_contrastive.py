"""SCR and MKD, transcribed slowly. See naive.py. Views are the package's: tests/ops has their equations."""

import torch
from naive import NaiveFinetune, Sample
from naive_rivals import NaiveReservoir, repeated

from bcl.ops.augment import DRAWS, augment


class NaiveReplay(NaiveFinetune):
    """A reservoir over the stream, of which the current task is drawn too."""

    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.memory = NaiveReservoir(setting.memory * setting.tasks, self.random)

    def step(self, batch, t):
        for _ in range(self.h["repeats"]):
            replay = self.memory.draw(self.h["replay_batch"])
            # What batch norm sees while nothing is stored: the current batch in place of the draw.
            shown = replay or repeated(batch, min(self.h["replay_batch"], self.memory.size))
            self.improve(batch, replay, shown)
        self.memory.add(batch)

    def viewed(self, samples, kind=None):
        kind = kind or self.h["augment"]
        if kind == "none":
            return samples
        views = augment(
            torch.stack([s.x for s in samples]), kind, self.random.integers(len(samples) * DRAWS[kind])
        )  # fmt: skip
        return [Sample(x, s.y, s.t) for x, s in zip(views, samples, strict=True)]

    def softened(self, z, classes):
        whole = sum(torch.exp(z[c] / self.h["temperature"]) for c in classes)
        return {c: torch.exp(z[c] / self.h["temperature"]) / whole for c in classes}

    def divergence(self, samples, told, said):
        total = 0.0
        for sample, wanted, z in zip(samples, told, said, strict=True):
            classes = self.classes(sample.t)
            target, now = self.softened(wanted.detach(), classes), self.softened(z, classes)
            total = total + sum(target[c] * (torch.log(target[c]) - torch.log(now[c])) for c in classes)
        return total / len(samples)


class NaiveSCR(NaiveReplay):
    def project(self, samples):
        head, out = self.head, []
        for f in self.net.features(self.inputs(samples), True):
            hidden = (head["0.weight"] @ f + head["0.bias"]).clamp(min=0)
            z = head["2.weight"] @ hidden + head["2.bias"]
            out.append(z / z.norm())
        return out

    def improve(self, batch, replay, shown):
        counted = len(batch) + len(replay)
        whole = batch + shown
        z = self.project(whole)[:counted] + self.project(self.viewed(whole))[:counted]
        labels = [s.y for s in whole[:counted]] * 2
        self.descend(self.contrast(z, labels), 1.0)

    def contrast(self, z, labels):
        total, places = 0.0, range(len(z))
        for i in places:
            below = sum(torch.exp(z[i] @ z[a] / self.h["temperature"]) for a in places if a != i)
            positive = [p for p in places if p != i and labels[p] == labels[i]]
            for p in positive:
                total = total - torch.log(torch.exp(z[i] @ z[p] / self.h["temperature"]) / below) / len(positive)
        return total / len(z)

    def descend(self, loss, share):
        names = [name for name in self.net.parameters if not name.startswith("fc.")]
        weights = [self.net.value[name] for name in names] + list(self.head.values())
        slopes = torch.autograd.grad(share * loss, weights)
        moved = [(w.detach() - self.h["lr"] * g).requires_grad_() for w, g in zip(weights, slopes, strict=True)]
        self.net.value.update(zip(names, moved[: len(names)], strict=True))
        self.head = dict(zip(self.head, moved[len(names) :], strict=True))

    def begin(self, t):
        if self.task is not None and self.h["review"]:
            self.review()
        super().begin(t)

    def review(self):
        k, stored = self.h["replay_batch"], len(self.memory.items)
        order = self.random.choose(torch.arange(self.memory.size) < stored, stored).tolist()
        for start in range(0, stored - k + 1, k):
            samples = [self.memory.items[i] for i in order[start : start + k]]
            z = self.project(samples) + self.project(self.viewed(samples))
            self.descend(self.contrast(z, [s.y for s in samples] * 2), 0.1)

    def nearest(self, x, classes):
        """Minus the squared distance of each class that has a mean."""
        (feature,) = self.unit([Sample(x, None, None)])
        near = {}
        for c in classes:
            own = self.unit([s for s in self.memory.items if s.y == c])
            if own:
                mean = sum(own) / len(own)
                near[c] = -((feature - mean / mean.norm()) ** 2).sum()
        return near

    def unit(self, samples):
        with torch.no_grad():
            return [f / f.norm() for f in self.net.features(self.inputs(samples), False)] if samples else []


class NaiveMKD(NaiveReplay):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.teacher, self.number = self.net.copy(), 0
        self.first = dict.fromkeys(self.net.parameters, 0.0)
        self.second = dict(self.first)

    def improve(self, batch, replay, shown):
        h, whole = self.h, batch + shown
        views = self.viewed(batch) + self.viewed(shown)
        seen = self.logits(views)
        told = self.teacher.copy().forward(self.inputs(views), True)  # its own statistics stay
        divergences = [self.divergence(whole, told, seen)]
        if h["augment"] != "none":
            divergences.append(self.divergence(whole, told, self.logits(whole)))
        held = sum(divergences) / len(divergences)
        loss = self.cross_entropy(batch + replay, seen[: len(batch) + len(replay)])
        loss = loss + h["distill_weight"] * h["temperature"] ** 2 * held
        self.net.descend(self.net.gradient(loss), h["lr"])
        for name, value in self.net.value.items():
            if not name.endswith("num_batches_tracked"):
                rate = h["teacher_rate"]
                self.teacher.value[name] = (1 - rate) * self.teacher.value[name] + rate * value.detach()
