"""What a learner does with its network: forward passes, masked or not, and steps of gradient descent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from bcl.errors import InputError
from bcl.memory import Random, Samples
from bcl.nets import (
    by_running_statistics,
    classes_of_tasks,
    couples_samples,
    evaluating,
    groups_samples,
    precision_of,
    visible_at_start,
    why_not_alone,
)
from bcl.ops.augment import DRAWS, augment
from bcl.ops.dispatch import can_look
from bcl.ops.layers import batch_groups
from bcl.ops.losses import Loss, full_precision, gradients, hide, join_inputs, logits_of, mask_tasks
from bcl.ops.updates import sgd_, whole_state
from bcl.streams import Setting

if TYPE_CHECKING:
    from bcl.learners.ingredients import RunningMean
    from bcl.learners.optimizer import Optimizer

_requires_grad = attrgetter("requires_grad")


class Passes(nn.Module):
    """A network in a setting.

    `visible[t]` and `own_classes[t]` are boolean rows over all classes: what samples of task t may be answered with by
    now, and what task t is about. The latter follow from the setting and are not saved.
    """

    hyper: Any
    random: Random
    _hidden: tuple[Tensor, int, Tensor | None] | None  # `visible`, its version, and what it hides

    def __init__(self, net: nn.Module, setting: Setting):
        super().__init__()
        self.net, self.setting = net, setting
        self.optimizer: Optimizer | None = None  # of `update`; None: plain SGD
        self.mean: RunningMean | None = None  # of the network, that follows `update`
        self.visible: Tensor
        self.own_classes: Tensor
        self.earlier: Tensor  # of every task, whether it began before the current one
        self.register_buffer("visible", visible_at_start(setting))
        self.register_buffer("own_classes", classes_of_tasks(setting), persistent=False)
        self.register_buffer("earlier", torch.zeros(len(self.own_classes), dtype=torch.bool), persistent=False)
        self.forget_tensors()

    def logits(
        self,
        x: Tensor,
        t: int | Tensor,
        state: Mapping[str, Tensor] | None = None,
        replayed: Samples | None = None,
        net: nn.Module | None = None,
    ) -> Tensor:
        """The network's logits for samples of task t (or of a task each), masked to what may be answered.

        `state`: parameters and buffers, by name, to be used in place of the network's own; batch norm updates its
        running statistics in whichever it uses. `replayed`: samples that follow those of task t in the same pass.
        `net`: another network, in place of the learner's.
        """
        if replayed is None:
            return self.mask(self.raw_logits(x, state=state, net=net), t)
        return self.mask(self.raw_logits(x, replayed.x, state=state, net=net), t, replayed.task)

    def replay_logits(
        self, x: Tensor, t: int, replayed: Samples, together: bool, state: Mapping[str, Tensor] | None = None
    ) -> Tensor:
        """Masked logits of the current batch and, below them, of the replayed one: see `raw_replay_logits`."""
        return self.mask(self.raw_replay_logits(x, replayed, together, state), t, replayed.task)

    def raw_replay_logits(
        self,
        x: Tensor,
        replayed: Samples,
        together: bool,
        state: Mapping[str, Tensor] | None = None,
        net: nn.Module | None = None,
    ) -> Tensor:
        """Logits of the current batch and, below them, of the replayed one, in one forward pass or in two.

        It matters to batch norm alone: together both batches are normalised as one, else each by itself. In a stream
        without tasks a single sample is never by itself where there are others: it has no variance. Where the
        network treats every sample by itself, or can normalise two groups of one batch, one pass does for two and is
        quicker. `net`: another network of the same making.
        """
        couples, groups = self.coupling()
        apart = couples and not together and not (len(x) == 1 and self.setting.open)
        if not apart:
            return self.raw_logits(x, replayed.x, state=state, net=net)
        if not groups:
            return torch.cat([self.raw_logits(part, state=state, net=net) for part in (x, replayed.x)])
        with batch_groups([len(x), len(replayed.x)]):
            return self.raw_logits(x, replayed.x, state=state, net=net)

    def raw_logits(
        self, *batches: Tensor, state: Mapping[str, Tensor] | None = None, net: nn.Module | None = None
    ) -> Tensor:
        """What the network, or another, answers to batches in one pass, nothing masked. See `logits`.

        In a stream without tasks, batch norm takes a sample that is alone by its running statistics, which stay.
        """
        net, x = self.net if net is None else net, self.scale(*batches)
        if len(x) == 1 and self.setting.open:
            with by_running_statistics(net):
                out = logits_of(net(x) if state is None else functional_call(net, dict(state), (x,)))
        else:
            out = logits_of(net(x) if state is None else functional_call(net, dict(state), (x,)))
        wanted = len(x), self.visible.shape[1]
        if out.shape != wanted:
            raise InputError(f"{type(net).__name__} gives {tuple(out.shape)} for {len(x)} samples, not {wanted} logits")
        return out

    @torch.no_grad()
    def try_out(self, x: Tensor) -> None:
        """Let the network answer once: what it cannot take shows before anything has changed."""
        with evaluating(self.net.modules()):
            self.raw_logits(x)

    def blank(self, n: int) -> Tensor:
        """n samples of zeros, on the network's device."""
        device = next((weight.device for weight in self.net.parameters()), self.visible.device)
        return torch.zeros(n, *self.setting.shape, dtype=getattr(torch, self.setting.dtype), device=device)

    def scale(self, *batches: Tensor) -> Tensor:
        """Batches as one, as the network sees them. Scaled samples stay as they are, so that a learner which gives
        the same ones to several networks can scale them once."""
        x, precision = join_inputs(batches, self.setting.input_range), self.precision()
        return x.to(precision) if x.dtype == torch.float32 != precision else x

    def view(self, x: Tensor, kind: str = "") -> Tensor:
        """Random views of samples, or the samples themselves: of this kind, or as the hyper-parameter says."""
        kind = kind or self.hyper.augment
        return x if kind == "none" else augment(x, kind, self.random.integers(DRAWS[kind] * len(x)))

    def mask(self, logits: Tensor, t: int | Tensor, rest: Tensor | None = None) -> Tensor:
        """Hide the classes that may not be answered by samples of task t; `rest`: the tasks of those that follow."""
        if self.setting.scenario == "domain":
            return full_precision(logits)  # every class may be answered: there is nothing to hide
        if self.setting.scenario == "class" and can_look(logits):
            hidden = self.hidden()
            return full_precision(logits) if hidden is None else hide(logits, hidden)
        return mask_tasks(logits, self.visible, t, rest)

    def hidden(self) -> Tensor | None:
        """Class-incrementally, on a CPU: the classes that may not be answered, the same for all tasks; None where there
        are none. Found anew when `visible` has changed."""
        visible, known = self.visible, self._hidden
        if known is None or known[0] is not visible or known[1] != visible._version:
            hidden = ~visible[0]
            known = self._hidden = visible, visible._version, hidden if hidden.any() else None
        return known[2]

    def descend(self, loss: Loss | Tensor, rate: float, weights: Sequence[Tensor] | None = None) -> None:
        """One SGD step on a loss, of the network's weights or of others."""
        weights = self.weights() if weights is None else weights
        sgd_(weights, gradients(loss, weights), rate)

    def update(self, loss: Loss | Tensor, weights: Sequence[Tensor] | None = None) -> None:
        """One step on a loss, of the network's weights or of others; the running mean follows."""
        weights = self.weights() if weights is None else weights
        self.move(weights, gradients(loss, weights))
        self.average()

    def move(self, weights: Sequence[Tensor], direction: Sequence[Tensor]) -> None:
        """A step along a direction, by the optimiser that was asked for, at the learner's rate."""
        if self.optimizer is None:
            sgd_(weights, direction, self.hyper.lr)
        else:
            self.optimizer.step(weights, direction, self.hyper.lr)

    def average(self) -> None:
        """The running mean follows what the network is now."""
        if self.mean is not None:
            self.mean.follow(self.whole_state(), self.hyper.mean_decay)

    def stacked(self, copies: int) -> tuple[dict[str, Tensor], list[Tensor]]:
        """The network's state as that of so many copies, stacked (see `bcl.ops.layers`), and its trainable weights,
        to take gradients of: the weights share the network's memory, the statistics have their own."""
        state = {
            name: weight.detach().expand(copies, *weight.shape).requires_grad_(weight.requires_grad)
            for name, weight in self.net.named_parameters()
        }
        weights = [weight for weight in state.values() if weight.requires_grad]
        for name, buffer in self.net.named_buffers():
            state[name] = buffer.expand(copies, *buffer.shape).clone()
        return state, weights

    @torch.no_grad()
    def follow_in_turn(self, state: Mapping[str, Tensor]) -> None:
        """After a forward pass of stacked copies: let the network's running statistics be what they would be, had it
        seen the copies' batches one after another.

        A copy's statistic r_i = (1 - m) r + m s_i has moved by its own batch alone; in turn they give
        (1 - m)^n r + sum_i (1 - m)^(n - 1 - i) m s_i.
        """
        momenta = {norm.momentum for norm in self.net.modules() if isinstance(norm, _BatchNorm)}
        if not momenta:
            return
        (momentum,) = momenta
        assert momentum is not None
        named = {name: buffer for name, buffer in self.net.named_buffers() if buffer.is_floating_point()}
        before = torch.cat([buffer.flatten() for buffer in named.values()])
        moved = torch.cat([state[name].flatten(1) for name in named], dim=1) - (1 - momentum) * before
        n = len(moved)
        shares = (1 - momentum) ** torch.arange(n - 1, -1, -1, device=before.device, dtype=before.dtype)
        after = (1 - momentum) ** n * before + (shares[:, None] * moved).sum(0)
        parts = after.split([buffer.numel() for buffer in named.values()])
        torch._foreach_copy_(list(named.values()), [p.view_as(b) for p, b in zip(parts, named.values(), strict=True)])

    def forget_tensors(self) -> None:
        """The network's tensors may be others: look for them again."""
        self._hidden = None
        self._weights: list[nn.Parameter] | None = None  # walking through a network's modules takes longer than a layer
        self._state: list[Tensor] | None = None
        self._coupling: tuple[bool, bool] | None = None
        self._alone: str | None = None
        self._precision: torch.dtype | None = None

    def weights(self) -> list[nn.Parameter]:
        """The network's trainable parameters."""
        if self._weights is None or not all(map(_requires_grad, self._weights)):
            self._weights = [p for p in self.net.parameters() if p.requires_grad]
        return self._weights

    def whole_state(self) -> list[Tensor]:
        """The network's parameters and its statistics (see `updates.whole_state`)."""
        if self._state is None:
            self._state = whole_state(self.net)
        return self._state

    def coupling(self) -> tuple[bool, bool]:
        """Whether the network couples the samples of a batch, and whether it can keep groups of them apart."""
        if self._coupling is None:
            self._coupling = couples_samples(self.net), groups_samples(self.net)
        return self._coupling

    def why_not_alone(self) -> str:
        """Why the network cannot learn from a single sample; empty where it can."""
        if self._alone is None:
            self._alone = why_not_alone(self.net, self.setting.shape, self.setting.dtype)
        return self._alone

    def precision(self) -> torch.dtype:
        """What the network computes in, and takes its samples in: the type of its weights."""
        if self._precision is None:
            self._precision = precision_of(self.net)
        return self._precision

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self.forget_tensors()  # it may put other tensors in their place
        return super().load_state_dict(*args, **kwargs)

    def _apply(self, *args: Any, **kwargs: Any) -> Passes:
        self.forget_tensors()  # a move to another device replaces buffers
        super()._apply(*args, **kwargs)
        return self
