"""bcl-mean's equations, transcribed slowly. See naive.py."""

import math

import torch
from naive import NaiveFinetune, NaiveRing
from naive_rivals import NaiveReservoir, repeated


class NaiveRings:
    """A ring per task, drawn from as one memory."""

    def __init__(self, setting, random):
        self.rings = [NaiveRing(setting.memory, "wrap") for _ in range(setting.tasks)]
        self.size, self.random = setting.memory, random

    @property
    def items(self):
        return [sample for ring in self.rings for sample in ring.items]

    def add(self, samples):
        self.rings[samples[0].t].add(samples)

    def draw(self, k, without=None):
        eligible = [
            place < len(ring.items) and s != without for s, ring in enumerate(self.rings) for place in range(self.size)
        ]
        chosen = self.random.choose(torch.tensor(eligible), min(k, self.size)).tolist()
        return [self.rings[i // self.size].items[i % self.size] for i in chosen] if any(eligible) else []


class NaiveMean(NaiveFinetune):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        slots = setting.memory * setting.tasks
        self.memory = (
            NaiveReservoir(slots, self.random) if h["memory"] == "reservoir" else NaiveRings(setting, self.random)
        )
        self.mean, self.number, self.has_targets = self.net.copy(), 0, set()
        self.share = dict.fromkeys(range(setting.n_classes), 0.0)

    def begin(self, t):
        for s in self.begun:
            if s not in self.has_targets and self.h["distill_weight"] > 0:
                for sample in self.memory.items:
                    if sample.t == s:
                        self.write_target(sample)
                self.has_targets.add(s)
        before = self.come()
        super().begin(t)
        self.extend_targets(self.memory.items, before)
        self.has_targets.discard(t)

    def write_target(self, sample):
        (z,) = self.mean.forward(self.inputs([sample]), False)
        sample.target = {c: p.detach() for c, p in self.softened(z, self.classes(sample.t)).items()}

    def softened(self, z, classes):
        whole = sum(torch.exp(z[c] / self.h["temperature"]) for c in classes)
        return {c: torch.exp(z[c] / self.h["temperature"]) / whole for c in classes}

    def step(self, batch, t):
        for _ in range(self.h["repeats"]):
            self.net.descend(self.net.gradient(self.loss(batch, t)), self.h["lr"])
            self.follow()
        self.memory.add(batch)

    def loss(self, batch, t):
        h, past = self.h, bool(set(self.begun) - {t})
        if h["replay_current"]:
            replay = self.memory.draw(h["replay_batch"])
        else:
            replay = self.memory.draw(h["replay_batch"], without=t) if past else []
        # What batch norm sees while nothing is stored: the current batch in place of the draw.
        shown = replay or (repeated(batch, min(h["replay_batch"], self.memory.size)) if h["replay_current"] else [])
        if h["joint_forward"] or not shown:
            logits = self.logits(batch + shown)
        else:
            logits = self.logits(batch) + self.logits(shown)
        labelled = self.adjusted(batch, replay, logits) if h.get("logit_adjustment") else logits
        loss = self.cross_entropy(batch, labelled[: len(batch)])
        if replay and h.get("weigh") == "samples":
            loss = self.cross_entropy(batch + replay, labelled)
        elif replay:
            loss = loss + self.cross_entropy(replay, labelled[len(batch) :])
        if replay and past:
            loss = loss + h["distill_weight"] * self.divergence(replay, logits[len(batch) :])
        return loss

    def adjusted(self, batch, replay, logits):
        """Every class is learnt as if its share in the loss, a running mean over the steps, were to its advantage."""
        alike, rate = self.h.get("weigh") == "samples", self.h["share_rate"]
        now = dict.fromkeys(self.share, 0.0)
        for samples in (batch, replay):
            for sample in samples:
                now[sample.y] += 1.0 if alike else 1.0 / len(samples)
        for c in self.share:
            self.share[c] = (1 - rate) * self.share[c] + rate * now[c] / sum(now.values())
        whole = sum(self.share.values())
        logs = [math.log(max(self.share[c] / whole, 1e-30)) for c in self.share]
        return [z + self.h["logit_adjustment"] * torch.tensor(logs, dtype=z.dtype) for z in logits]

    def divergence(self, replay, logits):
        """The mean over all that was drawn; a sample that has no target yet adds nothing."""
        total = 0.0
        for sample, z in zip(replay, logits, strict=True):
            now = self.softened(z, self.classes(sample.t))
            total = total + sum(p * (torch.log(p) - torch.log(now[c])) for c, p in sample.target.items())
        return total / len(replay)

    def follow(self):
        """Weights and batch-norm statistics; a mean of numbers of batches means nothing."""
        self.number += 1
        decay = min(self.h["mean_decay"], self.number / (self.number + 9))
        for name, value in self.net.value.items():
            if not name.endswith("num_batches_tracked"):
                self.mean.value[name] = decay * self.mean.value[name] + (1 - decay) * value.detach()
