"""Greedy sampler and dumb learner."""

from __future__ import annotations

import math
from collections.abc import Hashable

import torch
from torch import Tensor

from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.ingredients import Views, check_views
from bcl.learners.optimizer import Descent, Optimizer
from bcl.learners.replay import Replaying, check_width, keep, memory_of
from bcl.memory import Samples
from bcl.nets import FrozenCopy
from bcl.ops.losses import Loss, cross_entropy, gradients


@hypers
class Dumb(Views, Descent):
    lr: float = hyper(0.05, "highest learning rate", symbol="α", above=0)
    lowest_lr: float = hyper(0.0005, "lowest learning rate", symbol="α_min", low=0)
    epochs: int = hyper(32, "passes over the memory, each time from the first weights on", low=1)
    train_batch: int = hyper(16, "samples per step", low=1)
    cutmix: float = hyper(0.5, "share of the steps in which images are mixed; others are not", low=0, high=1)
    wait: bool = hyper(False, "learn when the last task of the stream ends, once, and know nothing until then")


GDumbHyper = variant("GDumbHyper", Dumb, optimizer="momentum", weight_decay=1e-6, clip=10.0)


class GDumb(Replaying):
    """GDumb (Prabhu et al., 2020): keep a balanced memory, and learn from nothing else.

        M <- balanced(M, B_n)                                                       (a step; no weight moves)
        when a task ends (with `wait`, the last one):
            θ <- the first weights;   `epochs` times:  SGD with momentum over M, shuffled

    It uses nothing of the stream but what is stored, so a continual learner that is not better than this has gained
    nothing from what it saw. The rate is a tenth of α in the first epoch, then follows cosines of 1, 2, 4, 8 ... epochs
    from α to α_min (Loshchilov & Hutter, 2017): an `epochs` that is a power of two ends at a low one; the authors take
    256. In half of the steps a rectangle of every image comes from another one, and so does that share of its label
    (CutMix; Yun et al., 2019).

    Between two ends of tasks it answers as it did at the last one. The cost is that of training when a task ends; it
    does not depend on how long the task was.

    Deviations: the samples of a class are a uniform sample of those that came, not the first ones; the authors train
    once, when the stream ends (`wait`), and report the best of all epochs, as the test set tells; here the last one
    counts. Their ResNets have a batch norm over the logits, and begin with weights after He et al. (2015).
    """

    Hyper = GDumbHyper
    reference = "Prabhu et al., 2020"
    memory_kind = "as many of each class; the first weights"
    cost = "none; when a task ends, `epochs` x 1 forward and backward on the memory"
    needs_boundaries = "it learns from its memory when a task ends"
    family, colour, marker, relative_cost = "bound", "#6b4c9a", "s", 6.0

    def setup(self) -> None:
        check_views(self.setting, self.hyper.augment)
        self.memory = memory_of(self.setting, "balanced")
        self.first = FrozenCopy(self.net)
        self.optimizers: dict[torch.device, Optimizer] = {}  # in a mapping: between two ends of tasks it is no state

    def step_signature(self) -> Hashable:
        return ()

    def step(self, x: Tensor, y: Tensor, t: int) -> None:
        keep(self, self.memory, x, y, t)

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        check_width(self)

    def end_task(self, t: int | None = None) -> int:
        t = super().end_task(t)
        h, stored = self.hyper, self.memory.filled()
        if h.wait and len(self.seen) < self.setting.tasks:
            return t
        self.net.load_state_dict(self.first.net.state_dict())
        device = self.visible.device
        if device not in self.optimizers:
            self.optimizers = {device: Optimizer([self.net], h.optimizer, h.weight_decay, h.clip)}
        self.optimizers[device].forget()
        for epoch in range(h.epochs):
            order, rate = self.random.choose(stored, int(stored.sum())), torch.tensor(self.rate(epoch), device=device)
            batches = [slots for slots in order.split(h.train_batch) if len(slots) > 1 or len(order) == 1]
            for slots in batches:  # none of one sample, which batch norm does not know
                self.repeat("step", self.descend_on, slots, rate, of=h.epochs * len(batches))
        return t

    def descend_on(self, slots: Tensor, rate: Tensor) -> None:
        loss = self.loss(self.memory.get(slots))
        self.optimizers[slots.device].step(self.weights(), gradients(loss, self.weights()), rate)

    def rate(self, epoch: int) -> float:
        """A warm start, then cosines of 1, 2, 4 ... epochs, each from the highest rate down."""
        low, high = min(self.hyper.lowest_lr, self.hyper.lr), self.hyper.lr
        if epoch == 0:
            return float(0.1 * high)
        length = 2 ** (epoch.bit_length() - 1)
        return float(low + (high - low) * (1 + math.cos(math.pi * (epoch - length) / length)) / 2)

    def loss(self, samples: Samples) -> Loss:
        """Cross-entropy of views; where images are mixed, of both labels by their share of the pixels."""
        x = self.view(samples.x)
        if len(self.setting.shape) != 3 or not self.hyper.cutmix:
            return cross_entropy(self.logits(x, samples.task), samples.y)
        other = self.random.choose(torch.ones(len(x), dtype=torch.bool, device=x.device), len(x))
        inside = self.rectangle()
        share = inside.float().mean()
        raw = self.raw_logits(torch.where(inside, x[other], x))
        own, theirs = (self.mask(raw, tasks) for tasks in (samples.task, samples.task[other]))
        return (1 - share) * cross_entropy(own, samples.y) + share * cross_entropy(theirs, samples.y[other])

    def rectangle(self) -> Tensor:
        """The pixels of a uniform share of the image, anywhere; what lies outside is cut off. None, where the step does
        not mix."""
        mixes, share, *where = ((self.random.integers(4) % 2**24).double() / 2**24).unbind()
        sides: list[Tensor] = []
        for size, place in zip(self.setting.shape[1:], where, strict=True):
            middle, half = (place * size).long(), (share.sqrt() * size).long() // 2
            pixels = torch.arange(size, device=place.device)
            sides.append((pixels >= middle - half) & (pixels < middle + half))
        rows, columns = sides
        return rows[:, None] & columns & (mixes < float(self.hyper.cutmix))
