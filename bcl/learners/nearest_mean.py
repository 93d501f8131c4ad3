"""Answering with the nearest mean of stored samples, in the space of a network's features (Rebuffi et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bcl.errors import InputError
from bcl.learners.ingredients import Descending
from bcl.memory import Memory

NO_MEAN = -5.0  # lower than minus any squared distance of two unit vectors, 0 to 4


class NearestMean(Descending):
    """A learner that answers so, of its `memory`. Its `setup` calls this one. Until a visible class has a mean the
    network's own logits are the answer; a class that has none while another does is not answered."""

    scenarios: ClassVar[tuple[str, ...]] = ("task", "class")
    memory: Memory

    @classmethod
    def refusal(cls, scenario: str) -> str:
        if scenario != "domain":
            return super().refusal(scenario)
        return (
            f"{cls.__name__} does not learn domain-incrementally: it answers with the nearest of one mean per class, "
            "and a class that looks different in every task has no such mean; use --scenario task or class, or er or "
            "bcl-dual"
        )

    means: tuple[Tensor, Tensor] | None = None  # known as long as the learner stays in evaluation mode

    def setup(self) -> None:
        super().setup()
        self.check_features()

    def check_features(self) -> None:
        """Raise where the network has none."""
        if not callable(getattr(self.net, "features", None)):
            raise InputError(
                f"{type(self).__name__} compares features: give {type(self.net).__name__} a method features(x) that "
                "returns what its last layer takes, [n, d]"
            )

    def train(self, mode: bool = True) -> Self:
        self.means = None
        return super().train(mode)

    @torch.no_grad()
    def make_ready(self) -> None:
        if self.means is None:
            self.means = self.class_means()

    def answer(self, x: Tensor, t: int) -> Tensor:
        self.make_ready()
        assert self.means is not None
        means, known = self.means
        if not (known & self.visible[t]).any():
            return self.logits(x, t, net=self.answering())
        return self.mask(torch.where(known, self.nearness(self.unit(x), means), NO_MEAN), t)

    def class_means(self) -> tuple[Tensor, Tensor]:
        """The mean of each class's stored samples [..., classes, d], and which classes have any."""
        slots = self.memory.filled().nonzero().flatten()
        member = self.memory.y[slots] == torch.arange(self.setting.n_classes, device=slots.device)[:, None]
        if not len(slots):
            return torch.zeros(0, device=slots.device), member.any(1)
        return self.mean_of(member, self.unit(self.memory.x[slots])), member.any(1)

    # What a learner with features of another kind changes:

    def unit(self, x: Tensor) -> Tensor:
        """Features [n, d] of the network that answers, scaled to unit length."""
        features: Callable[[Tensor], Tensor] = self.answering().features  # type: ignore[assignment]
        parts = [features(self.scale(part)) for part in x.split(256)]
        return normalize(torch.cat(parts).flatten(1).float())

    def mean_of(self, member: Tensor, features: Tensor) -> Tensor:
        """The mean of each class's features, scaled to unit length; member: [classes, n]."""
        with torch.autocast(features.device.type, enabled=False):
            return normalize(member.float() @ features)

    def nearness(self, features: Tensor, means: Tensor) -> Tensor:
        """Minus the squared distance of each class mean [n, classes]."""
        with torch.autocast(features.device.type, enabled=False):  # in half precision near neighbours would be one
            return 2 * features @ means.T - 2
