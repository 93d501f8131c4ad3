"""Multi-level online sequential experts."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.nearest_mean import NearestMean
from bcl.learners.optimizer import optimizer_of
from bcl.learners.replay import Common, Replaying, check_width, draw_earlier, keep
from bcl.memory import Samples
from bcl.nets import Experts, stages_of
from bcl.ops.contrastive import supervised_contrastive_loss
from bcl.ops.losses import Loss, cross_entropies, mask_tasks

Parts = tuple[Tensor, Tensor, Tensor, Tensor]  # samples, labels, tasks, and which of them count


@hypers
class MultiLevel(Common):
    lr: float = hyper(0.001, "learning rate", above=0)
    replay_batch: int = hyper(
        64, "replayed samples per step: of earlier tasks, and half of that of the current one", low=4
    )
    temperature: float = hyper(0.07, "temperature of the contrastive loss", symbol="τ", above=0)
    dimensions: int = hyper(128, "of the projections that the contrastive loss compares", low=1)


MOSEHyper = variant("MOSEHyper", MultiLevel, memory="reservoir", optimizer="adam", weight_decay=0.0001)


class MOSE(NearestMean, Replaying):
    """Multi-level online sequential experts (MOSE; Yan et al., 2024).

    Each stage i of the network has an expert: features f_i of one size, a classifier h_i, a projection g_i.

        N <- B_n ∪ sample(M of the current task);   P <- some of B_n ∪ sample(M of earlier tasks)
        V <- N ∪ P, each sample four times: as it is, mirrored, and a view of either
        Σ_i [ L_SupCon(g_i on V; τ) + L(h_i on N; classes of the task) + 2 L(h_i on P; all seen) ]
            + Σ_{i < last} || a(f_last) / |a(f_last)| - f_i / |f_i| ||          (f_i without gradient, a linear)
        M <- reservoir(M, B_n)
        answer: the class, of those visible, with the nearest mean of stored samples, over the mean of the distances
                in the spaces of all f_i

    The last term, over all of V at once, lets the last expert learn from the others. In the first task there is no P,
    and N has `replay_batch` stored samples; later half as many, the current batch included. P has as large a share of
    the current batch as the task's classes have among those seen. The authors' view is much like augment=zoom+grey.
    With augment=none a sample stands once. A network names its stages by a method stages(x); without it there is one
    expert, on its features. The authors report the last expert's answers, too; what answers here is what they call
    MOE-MOSE.

    Deviations: classes that have not come yet are masked; learns from the first batch on; the network's own last layer
    is not used; the attention before an expert is brought to the size of its stage whatever that is; convolutions begin
    with torch's weights, not with those of He et al. (2015).
    """

    Hyper = MOSEHyper
    reference = "Yan et al., 2024"
    memory_kind = "reservoir; experts at every stage"
    cost = "K x 4 forward and backward on batch + replay and half of that (1 without augmentation)"
    family, colour, marker, relative_cost = "replay", "#4d4d99", "p", 8.0

    def setup(self) -> None:
        super().setup()
        self.experts = Experts(self.net, self.setting, self.hyper.dimensions)
        self.optimizer = optimizer_of(self, self.experts)

    def trained(self) -> list[nn.Parameter]:
        return [*self.weights(), *self.experts.parameters()]

    def step_signature(self) -> Hashable:
        return bool(self.past), self.share()

    def share(self) -> int:
        """How many of the current batch stand among the earlier tasks' samples."""
        classes = self.setting.classes
        seen = {c for s in self.seen for c in classes[s]}
        return int(self.hyper.replay_batch * len(classes[self.task]) / max(1, len(seen)))

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss, self.trained())
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        parts = [self.new(x, y, t)]
        if self.past:
            parts.append(self.mixed(x, y, t))
        sizes = [len(part[1]) for part in parts]
        samples, label, task, counted = (torch.cat(field) for field in zip(*parts, strict=True))
        copies = self.copies(samples)
        times = len(copies) // len(label)
        features = self.experts.features(stages_of(self.net, self.scale(copies)))
        label, task, counted = label.repeat(times), task.repeat(times), counted.repeat(times)
        is_new = (torch.arange(sum(sizes), device=y.device) < sizes[0]).repeat(times)
        student = normalize(self.experts.adapt(features[-1]))
        total = Loss(torch.zeros((), device=x.device))
        for i, own in enumerate(features):
            z = normalize(self.experts.project[i](own))
            total = total + supervised_contrastive_loss(z, label, self.hyper.temperature, counted)
            total = total + self.labelled(self.experts.classify[i](own), label, task, counted, is_new)
            if i < len(features) - 1:
                total = total + ((student - normalize(own.detach())) * counted[:, None]).norm()
        return total

    def labelled(self, raw: Tensor, y: Tensor, task: Tensor, counted: Tensor, is_new: Tensor) -> Tensor:
        """New samples among the classes of their task, once there are others; mixed ones among all seen, twice."""
        seen = self.mask(raw, task)
        if not self.past:
            return _mean(cross_entropies(seen, y), counted)
        own = cross_entropies(mask_tasks(raw, self.own_classes, task), y)
        return _mean(own, counted & is_new) + 2 * _mean(cross_entropies(seen, y), counted & ~is_new)

    def new(self, x: Tensor, y: Tensor, t: int) -> Parts:
        """The current batch, and stored samples of its task: none counts twice."""
        k = max(1, self.hyper.replay_batch // 2 - len(y)) if self.past else self.hyper.replay_batch
        here = self.memory.of_task(t)
        drawn = self.memory.draw(k, self.random, among=here)
        held = here.sum()
        there = held > 0
        place = torch.arange(len(drawn.y), device=y.device) % len(y)
        again = torch.where(there, drawn.x, x[place]), torch.where(there, drawn.y, y[place])
        task = torch.zeros_like(y) + t
        counted = torch.cat([torch.ones_like(y) > 0, torch.arange(len(place), device=y.device) < held])
        return torch.cat([x, again[0]]), torch.cat([y, again[1]]), torch.cat([task, task[place]]), counted

    def mixed(self, x: Tensor, y: Tensor, t: int) -> Parts:
        """Some of the current batch, and stored samples of earlier tasks."""
        n = min(self.share(), len(y))
        old: Samples = draw_earlier(self, self.memory, self.hyper.replay_batch - n, t)
        label, task = torch.cat([y[:n], old.y]), torch.cat([torch.zeros_like(y[:n]) + t, old.task])
        return torch.cat([x[:n], old.x]), label, task, torch.ones_like(label) > 0

    def copies(self, x: Tensor) -> Tensor:
        if self.hyper.augment == "none":
            return x
        both = torch.cat([x, x.flip(-1)])
        return torch.cat([both, self.view(both)])

    def begin_task(self, t: int) -> None:
        super().begin_task(t)
        check_width(self)

    # ---- answering -------------------------------------------------------------------------------------------------

    def unit(self, x: Tensor) -> Tensor:
        """Features of unit length, [experts, n, d]."""
        parts = [
            torch.stack(self.experts.features(stages_of(self.net, self.scale(part)))).float() for part in x.split(256)
        ]
        return normalize(torch.cat(parts, 1), dim=2)

    def mean_of(self, member: Tensor, features: Tensor) -> Tensor:
        """In each expert's space [experts, classes, d]."""
        return normalize(torch.einsum("cn,end->ecd", member.double(), features.double()), dim=2).float()

    def nearness(self, features: Tensor, means: Tensor) -> Tensor:
        """The mean over the experts."""
        return (2 * torch.einsum("end,ecd->enc", features.double(), means.double()) - 2).mean(0).float()


def _mean(each: Tensor, counted: Tensor) -> Tensor:
    return torch.where(counted, each, 0).sum() / counted.sum().clamp(min=1)
