"""Algorithm 1 and Eq. 3-6 of the paper, transcribed slowly, with every variant of the released code."""

import torch
from naive import NaiveER, NaiveRing, Sample

RELEASED = {  # what the authors' code does
    "inner_lr": 0.1, "outer_lr": 0.3, "inner_steps": 2, "outer_steps": 1, "replay_batch": 128, "temperature": 5.0,
    "distill_weight": 100.0, "generalization_share": 0.2, "carry_gradients": True, "kl_reduction": "classes",
    "redraw": True, "joint_forward": False, "target_mode": "train", "interpolate": "state", "evicted": "train",
    "prefill": True, "overflow": "cut", "later_classes": 1.0,
}  # fmt: skip
RELEASED_SINGLE = RELEASED | {"inner_steps": 1, "generalization_share": 0.0, "carry_gradients": False}


class NaiveGeneralizationRing:
    """One task's generalization memory. Prefilled: its first sample stands in every slot that has had no other."""

    def __init__(self, size, prefill):
        self.size, self.prefill, self.items, self.written = size, prefill, [], 0

    def exchange(self, sample):
        """Store a sample and return the one that leaves (of a ring that nothing has left yet, its first)."""
        place = self.written % self.size
        self.written += 1
        if self.written == 1:
            self.items = [sample] * (self.size if self.prefill else 1)
            return sample
        if place == len(self.items):  # not prefilled, and not yet full
            self.items.append(sample)
            return self.items[0]
        left, self.items[place] = self.items[place], sample
        return left


class NaiveBCL(NaiveER):
    def __init__(self, net, setting, **h):
        super().__init__(net, setting, **h)
        size = 0
        if h["generalization_share"] > 0 and setting.memory > 1:
            size = max(1, int(h["generalization_share"] * setting.memory))
        self.general = [NaiveGeneralizationRing(size, h["prefill"]) for _ in range(setting.tasks)] if size else []
        self.rings = [NaiveRing(setting.memory - size, h["overflow"]) for _ in range(setting.tasks)]
        self.has_targets = set()

    def begin(self, t):
        """The end of Algorithm 1's loop over tasks: soft targets of the tasks that are over and have none."""
        for s in self.begun:
            if s not in self.has_targets and self.h["distill_weight"] > 0:
                self.store_targets(s)
        before = self.come()
        super().begin(t)
        self.extend_targets([sample for s in range(self.setting.tasks) for sample in self.samples_of(s)], before)
        self.has_targets.discard(t)

    def store_targets(self, s):
        samples = self.samples_of(s)
        for sample, z in zip(samples, self.logits(samples, self.h["target_mode"] == "train"), strict=True):
            sample.target = {c: p.detach() for c, p in self.softened(z, self.classes(s)).items()}
        self.has_targets.add(s)

    def samples_of(self, s):
        return self.rings[s].items

    def softened(self, z, classes):
        whole = sum(torch.exp(z[c] / self.h["temperature"]) for c in classes)
        return {c: torch.exp(z[c] / self.h["temperature"]) / whole for c in classes}

    def step(self, batch, t):
        h, net = self.h, self.net
        if self.general:
            left = self.general[t].exchange(batch[0])
            batch = batch[1:] if h["evicted"] == "drop" and len(batch) > 1 else [*batch[1:], left]
        for _ in range(h["outer_steps"]):
            theta = {name: v.detach().clone() for name, v in net.value.items()}
            gradients, replay = [], []
            for i in range(h["inner_steps"]):
                if set(self.begun) - {t} and (i == 0 or h["redraw"]):
                    replay = self.draw_replay(t)
                gradients.append(net.gradient(self.loss(batch, replay)))
                self.descend(gradients)
            if self.general:
                evaluated = self.draw_general()
                gradients.append(net.gradient(self.cross_entropy(evaluated, self.logits(evaluated))))
                self.descend(gradients)
            for name, slow in theta.items():  # Eq. 5
                statistic = name in ("bn.running_mean", "bn.running_var")
                if name in net.parameters or (statistic and h["interpolate"] == "state"):
                    moved = slow + h["outer_lr"] * (net.value[name].detach() - slow)
                    net.value[name] = moved.requires_grad_(not statistic)
        self.keep([Sample(s.x, s.y, t) for s in batch], t)  # a copy: what returns has no target yet

    def descend(self, gradients):
        """Eq. 3: along the newest gradient; released code: along all since the round began."""
        used = gradients if self.h["carry_gradients"] else gradients[-1:]
        self.net.descend({name: sum(g[name] for g in used) for name in self.net.parameters}, self.h["inner_lr"])

    def regularizer(self, replay, logits):
        """Eq. 6: λ KL_τ(what was answered then || what is answered now)."""
        if not self.h["distill_weight"]:
            return 0.0
        total = 0.0
        for sample, z in zip(replay, logits, strict=True):
            now = self.softened(z, self.classes(sample.t))
            divergence = sum(p * (torch.log(p) - torch.log(now[c])) for c, p in sample.target.items())
            total = total + (divergence / len(now) if self.h["kl_reduction"] == "classes" else divergence)
        return self.h["distill_weight"] * total / len(replay)

    def draw_general(self):
        """A draw from the generalization memories of all tasks that have begun."""
        size = self.general[0].size
        k = min(self.h["replay_batch"], len(self.begun) * size)
        eligible = [place < len(ring.items) for ring in self.general for place in range(size)]
        chosen = self.random.choose(torch.tensor(eligible), k).tolist()
        return [self.general[slot // size].items[slot % size] for slot in chosen]
