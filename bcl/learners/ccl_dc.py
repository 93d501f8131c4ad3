"""Collaborative continual learning with a distillation chain."""

from __future__ import annotations

from collections.abc import Hashable

import torch
from torch import Tensor, nn
from torch.nn.functional import softmax

from bcl.learners.base import from_state
from bcl.learners.er_ace import mask_to_batch
from bcl.learners.hyper import hyper, hypers, variant
from bcl.learners.optimizer import optimizer_of
from bcl.learners.replay import Common, Replaying, draw_or_repeat, keep, weighted
from bcl.memory import Samples
from bcl.nets import peer_of
from bcl.ops.losses import Loss, cross_entropy, distillation_loss

CHAIN = ("zoom", "operations", "operations")  # the views of a chain, each of the one before


@hypers
class Collaboration(Common):
    lr: float = hyper(0.0005, "learning rate of both peers", above=0)
    replay_batch: int = hyper(64, "replayed samples per step", low=1)
    temperature: float = hyper(4.0, "softmax temperature of the distillation", symbol="τ", above=0)
    distill_weight: float = hyper(1.0, "weight of the distillation", symbol="λ", low=0)
    chain_weight: float = hyper(0.5, "weight of the labels along the chain", symbol="β", low=0)


CCLDCHyper = variant("CCLDCHyper", Collaboration, memory="reservoir", optimizer="adamw", weight_decay=0.0001)


class CCLDC(Replaying):
    """Collaborative continual learning with a distillation chain (CCL-DC; Wang et al., 2024), on ER-ACE.

    Two peers, θ_1 and θ_2, learn from the same samples and from each other. For each, with the other one θ':

        B_M <- sample(M);   V_0 = B,  V_1 = zoom(V_0),  V_2 = operations(V_1),  V_3 = operations(V_2);   V <- crop(B)
        L(θ, V) + Σ_{i=0..3} [ β L(θ, V_i)  +  λ τ² KL( p_θ'^τ(V_{min(i+1, 3)}) || p_θ^τ(V_i) ) ]
        M <- reservoir(M, B_n);   answer: the mean of the peers' logits

    All of it for the current batch and for the replayed one, added up: means over their samples, and batch norm sees
    each apart. L is ER-ACE's: current samples compete among the classes of their batch, replayed ones among all seen.
    Each peer learns from what the other thinks of a view that is one step harder. `zoom` is a resized crop of at least
    three fifths, mirrored half of the time; `operations` are three of RandAugment's, at one strength; `crop` is
    `augment`. With augment=none the chain is the samples alone.

    Deviations: the divergence is over the classes that are visible, in the authors' code over all outputs. The second
    peer begins with weights of its own as far as the network's modules can be begun anew (`reset_parameters`). Of
    RandAugment's operations three are missing (sharpness, autocontrast, equalise), and every sample has its own, where
    the authors' code draws one set for a batch, and one place to crop. Of a view the current batch and the replayed one
    go through the network one after the other, in the authors' code all current views and then all replayed ones, which
    its running batch-norm statistics see.
    """

    Hyper = CCLDCHyper
    reference = "Wang et al., 2024"
    memory_kind = "reservoir; a second network"
    cost = "K x 10 forward and backward on batch + replay (4 without augmentation)"
    family, colour, marker, relative_cost = "replay", "#7f3b08", "h", 12.0

    def setup(self) -> None:
        super().setup()
        self.peer = peer_of(self.net, self.setting.seed)
        self.optimizer = optimizer_of(self, self.peer)

    def step_signature(self) -> Hashable:
        return bool(self.past)

    def step(self, x: Tensor, y: Tensor, t: int) -> Tensor:
        trained = [*self.weights(), *(p for p in self.peer.parameters() if p.requires_grad)]
        for _ in range(self.hyper.repeats):
            loss = self.loss(x, y, t)
            self.update(loss, trained)
        keep(self, self.memory, x, y, t)
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, t: int) -> Loss:
        """Of both peers; what one learns from the other has no gradient there."""
        replay, weight = draw_or_repeat(self, self.memory, self.hyper.replay_batch, x, y, t)
        peers: list[nn.Module] = [self.net, self.peer]
        chain, crops = self.chain(x, replay), (self.view(x), self.view(replay.x))
        order = (crops, chain[-1], *chain[:-1])  # in which batch norm's running statistics see them
        total, said = Loss(torch.zeros((), device=x.device)), []
        for net in peers:
            (current, again), hardest, *easier = (self.both(net, *views, t, replay) for views in order)
            said.append([*easier, hardest])
            total = total + cross_entropy(mask_to_batch(current, y), y)
            total = total + weighted(cross_entropy(again, replay.y), weight)
        for own, other in (said, said[::-1]):
            for i, (current, again) in enumerate(own):
                told, told_again = other[min(i + 1, len(own) - 1)]
                total = total + self.link(current, told, mask_to_batch(current, y), y)
                total = total + weighted(self.link(again, told_again, again, replay.y), weight)
        return total

    def link(self, logits: Tensor, told: Tensor, competing: Tensor, label: Tensor) -> Loss:
        """Of one view: its labels, among the classes that compete, and what the other peer thinks of a harder one."""
        h = self.hyper
        target = softmax(told.detach() / h.temperature, dim=1)
        factor: float = h.distill_weight * h.temperature**2
        learnt: Loss = h.chain_weight * cross_entropy(competing, label)
        return learnt + factor * distillation_loss(logits, target, h.temperature, "batch")

    def chain(self, x: Tensor, replay: Samples) -> list[tuple[Tensor, Tensor]]:
        """The samples, and ever harder views of them: of the current batch and of the replayed one."""
        views = [(x, replay.x)]
        for kind in CHAIN if self.hyper.augment != "none" else ():
            current, again = views[-1]
            views.append((self.view(current, kind), self.view(again, kind)))
        return views

    def both(self, net: nn.Module, x: Tensor, again: Tensor, t: int, replay: Samples) -> tuple[Tensor, Tensor]:
        """Masked logits of the current batch and of the replayed one, each normalised by itself."""
        raw = self.raw_replay_logits(x, replay._replace(x=again), together=False, net=net)
        current, replayed = self.mask(raw, t, replay.task).split([len(x), len(again)])
        return current, replayed

    @from_state
    def answer(self, x: Tensor, t: int) -> Tensor:
        x = self.scale(x)
        return self.mask((self.raw_logits(x) + self.raw_logits(x, net=self.peer)) / 2, t)
