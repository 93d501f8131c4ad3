"""CLS-ER, CCL-DC and GDumb, transcribed slowly. See naive.py."""

import math

import torch
from naive import NaiveFinetune
from naive_contrastive import NaiveReplay


class NaiveCLSER(NaiveReplay):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.plastic, self.stable, self.number = self.net.copy(), self.net.copy(), 0

    def improve(self, batch, replay, shown):
        views, again = self.viewed(batch), self.viewed(shown)
        now = self.logits(again)
        means = [
            (mean if replay else mean.copy()).forward(self.inputs(again), True) for mean in (self.stable, self.plastic)
        ]
        logits = self.logits(views + again)
        loss = self.cross_entropy(batch + replay, logits[: len(batch) + len(replay)])
        if replay:
            loss = loss + self.h["consistency_weight"] * self.distance(replay, now, *means)
        self.net.descend(self.net.gradient(loss), self.h["lr"])
        self.number += 1
        chance = [value % 2**24 / 2**24 for value in self.random.integers(2).tolist()]
        for name, number in (("plastic", chance[0]), ("stable", chance[1])):
            if number < self.h[f"{name}_rate"]:
                self.follow(getattr(self, name), min(1 - 1 / (self.number + 1), self.h[f"{name}_decay"]))

    def distance(self, replay, now, stable, plastic):
        total = 0.0
        for sample, z, s, p in zip(replay, now, stable, plastic, strict=True):
            classes = self.classes(sample.t)
            sure = [
                (torch.exp(w[sample.y]) / sum(torch.exp(w[c]) for c in classes)).item() for w in (s, p)
            ]  # fmt: skip
            better = s if sure[0] > sure[1] else p
            total = total + sum((z[c] - better[c].detach()) ** 2 for c in classes) / len(classes)
        return total / len(replay)

    def follow(self, mean, stays):
        for name, value in self.net.value.items():
            if "running" not in name and not name.endswith("num_batches_tracked"):
                mean.value[name] = stays * mean.value[name] + (1 - stays) * value.detach()


class NaiveCCLDC(NaiveReplay):
    """`peer` is to be given: a NaiveNet."""

    def improve(self, batch, replay, shown):
        chain = [(batch, shown)]
        for kind in ("zoom", "operations", "operations") if self.h["augment"] != "none" else ():
            chain.append(tuple(self.viewed(samples, kind) for samples in chain[-1]))
        crops = self.viewed(batch), self.viewed(shown)
        nets, losses, said, cropped = (self.net, self.peer), [], {}, {}
        for net in nets:
            cropped[net] = [net.forward(self.inputs(part), True) for part in crops]
            said[net] = {}
            for i in (len(chain) - 1, *range(len(chain) - 1)):  # the hardest first
                said[net][i] = tuple(net.forward(self.inputs(part), True) for part in chain[i])
        for net, other in (nets, nets[::-1]):
            loss = self.labelled(batch, replay, *cropped[net])
            for i, (now, again) in said[net].items():
                harder = said[other][min(i + 1, len(chain) - 1)]
                loss = loss + self.h["chain_weight"] * self.labelled(batch, replay, now, again)
                weight = self.h["distill_weight"] * self.h["temperature"] ** 2
                loss = loss + weight * self.divergence(batch, harder[0], now)
                if replay:
                    loss = loss + weight * self.divergence(replay, harder[1], again)
            losses.append(loss)
        slopes = [net.gradient(loss) for net, loss in zip(nets, losses, strict=True)]
        for net, slope in zip(nets, slopes, strict=True):
            net.descend(slope, self.h["lr"])

    def labelled(self, batch, replay, now, again):
        """ER-ACE: the current samples compete among the classes of their batch."""
        loss, present = 0.0, {s.y for s in batch}
        for sample, z in zip(batch, now, strict=True):
            allowed = [c for c in self.classes(sample.t) if c in present]
            loss = loss + (torch.log(sum(torch.exp(z[c]) for c in allowed)) - z[sample.y]) / len(batch)
        return loss + (self.cross_entropy(replay, again) if replay else 0.0)


class NaiveGDumb(NaiveFinetune):
    """The choice of what is kept is the package's: tests/memory has its rule."""

    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        self.first = self.net.copy()

    def train(self, samples):
        """From the first weights on; `samples`: what is stored, by slot, None where a slot is empty."""
        h, net = self.h, self.first.copy()
        for name in net.parameters:
            net.value[name].requires_grad_()
        self.net, velocity = net, dict.fromkeys(net.parameters, 0.0)
        eligible = torch.tensor([s is not None for s in samples])
        for epoch in range(h["epochs"]):
            order = self.random.choose(eligible, int(eligible.sum())).tolist()
            for start in range(0, len(order), h["train_batch"]):
                batch = [samples[i] for i in order[start : start + h["train_batch"]]]
                if len(batch) == 1 and len(order) > 1:
                    continue
                slope = self.net.gradient(self.loss(batch))
                length = math.sqrt(sum((g**2).sum().item() for g in slope.values()))
                for name, g in slope.items():
                    g = g * min(1.0, h["clip"] / (length + 1e-6)) + h["weight_decay"] * self.net.value[name].detach()
                    velocity[name] = 0.9 * velocity[name] + g
                self.net.descend(velocity, self.rate(epoch))

    def rate(self, epoch):
        h = self.h
        if epoch == 0:
            return 0.1 * h["lr"]
        start = length = 1
        while epoch >= start + length:
            start, length = start + length, 2 * length
        return h["lowest_lr"] + (h["lr"] - h["lowest_lr"]) * (1 + math.cos(math.pi * (epoch - start) / length)) / 2

    def uniform(self):
        return self.random.integers(1).item() % 2**24 / 2**24

    def loss(self, batch):
        if len(self.setting.shape) != 3 or self.h["cutmix"] == 0:
            return self.cross_entropy(batch, self.logits(batch))
        other = self.random.choose(torch.ones(len(batch), dtype=torch.bool), len(batch)).tolist()
        mixes = self.uniform() < self.h["cutmix"]
        side, (_, height, width) = math.sqrt(self.uniform()), self.setting.shape
        rows, columns = (self.stretch(size, int(size * side) // 2) for size in (height, width))
        rows = rows if mixes else []
        inputs, theirs = [], self.inputs([batch[i] for i in other])
        for own, strange in zip(self.inputs(batch), theirs, strict=True):
            own = own.clone()
            for r in rows:
                for c in columns:
                    own[:, r, c] = strange[:, r, c]
            inputs.append(own)
        share, total = len(rows) * len(columns) / (height * width), 0.0
        for sample, i, z in zip(batch, other, self.net.forward(inputs, True), strict=True):
            for weight, s in ((1 - share, sample), (share, batch[i])):
                rest = torch.log(sum(torch.exp(z[c]) for c in self.classes(s.t)))
                total = total + weight * (rest - z[s.y]) / len(batch)
        return total

    def stretch(self, size, half):
        middle = int(self.uniform() * size)
        return [place for place in range(middle - half, middle + half) if 0 <= place < size]
