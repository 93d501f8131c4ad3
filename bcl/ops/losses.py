"""What goes into a network and comes out of it: samples scaled, logits masked to the classes that may be answered, the
losses, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import log_softmax

from bcl.errors import InputError
from bcl.ops.dispatch import by_hand, fused

# Finite, so that 0 * log p of a hidden class is 0 and not NaN; its softmax is exactly 0 all the same.
HIDDEN = -1e9
ONE = torch.ones(())  # a share that is known without a look at it


def full_precision(logits: Tensor) -> Tensor:
    """Half precision becomes float32, in which losses are computed; float64 stays."""
    return logits if logits.dtype == torch.float64 else logits.float()


def logits_of(output: Any) -> Tensor:
    """What a network answers: a tensor, or an object that carries it as `logits`, as those of Hugging Face do."""
    if isinstance(output, Tensor):
        return output
    logits = getattr(output, "logits", None)
    if not isinstance(logits, Tensor):
        raise InputError(f"a network gives logits, a tensor or an object with `.logits`, not {type(output).__name__}")
    return logits


def rows_of(table: Tensor, t: int | Tensor) -> Tensor:
    """The row of task t. Indexing by a tensor without dimensions would wait for the device."""
    return table.index_select(0, t.view(1))[0] if isinstance(t, Tensor) and t.dim() == 0 else table[t]


def mask_logits(logits: Tensor, visible: Tensor) -> Tensor:
    """Hide the classes that may not be answered. `visible`: a row over all classes, or a row per sample."""
    return hide(logits, ~visible)


def hide(logits: Tensor, hidden: Tensor) -> Tensor:
    """The same, given what is to be hidden."""
    return full_precision(logits).masked_fill(hidden, HIDDEN)


def mask_tasks(logits: Tensor, visible: Tensor, t: int | Tensor, rest: Tensor | None = None) -> Tensor:
    """Hide the classes that may not be answered by samples of task t (a number, or a value on the device), or of a task
    each. `rest`: the tasks of the samples that come after those of one task t.
    """
    each = isinstance(t, Tensor) and t.dim() == 1
    ahead = len(logits) - (0 if rest is None else len(rest))
    if fused(logits) and logits.dtype == torch.float32 and logits.numel():
        from bcl.ops.triton.inputs import mask

        if isinstance(t, Tensor) and each:
            return mask(logits, visible, 0, 0, t, HIDDEN)
        return mask(logits, visible, t, ahead, rest, HIDDEN)
    if isinstance(t, Tensor) and not each:
        t = t.expand(ahead)  # to index by a tensor without dimensions would wait for the device
    if rest is not None:
        t = torch.cat([t if isinstance(t, Tensor) else rest.new_full((ahead,), t), rest])
    return mask_logits(logits, visible[t])


def join_inputs(batches: Sequence[Tensor], input_range: tuple[float, float]) -> Tensor:
    """Batches as one, as the network sees them: uint8 samples scaled, float samples as they are."""
    low, high = input_range
    scale = (high - low) / 255
    if batches[0].dtype == torch.uint8 and len(batches) <= 2 and len(batches[0]) and fused(batches[0]):
        from bcl.ops.triton import inputs

        return inputs.scale(batches, scale, low)
    x = batches[0] if len(batches) == 1 else torch.cat(list(batches))
    if x.dtype != torch.uint8:
        return x
    scaled = x * scale if x.is_cuda else x.float().mul_(scale)  # one kernel there; two quick passes here
    return scaled.add_(low) if low else scaled


class Loss:
    """The loss of a batch, a number that can be differentiated.

    A fused kernel computes the gradient with respect to the logits together with the value; `gradients` begins there.
    Sums and multiples have a value alone. `number`: gives the number alone when it is asked for, and `value` then gives
    one that can be differentiated.
    """

    __slots__ = ("given", "logits", "number", "slope")

    def __init__(
        self,
        value: Tensor | Callable[[], Tensor],
        logits: Tensor | None = None,
        slope: Tensor | None = None,
        number: Callable[[], Tensor] | None = None,
    ):
        self.given, self.logits, self.slope, self.number = value, logits, slope, number

    @property
    def value(self) -> Tensor:
        """The number, to be differentiated."""
        return self.given if isinstance(self.given, Tensor) else self.given()

    def __add__(self, other: Loss | Tensor | float) -> Loss:
        return Loss(self.value + (other.value if isinstance(other, Loss) else other))

    def __mul__(self, factor: Tensor | float) -> Loss:
        return Loss(self.value * factor)

    __radd__, __rmul__ = __add__, __mul__

    def detach(self) -> Tensor:
        """The number alone; it stays on its device."""
        return self.value.detach() if self.number is None else self.number()


def gradients(loss: Loss | Tensor, parameters: Sequence[Tensor], create_graph: bool = False) -> list[Tensor]:
    """The gradient of a loss, one tensor per parameter; zero where the loss does not depend on one.

    `create_graph`: it can be differentiated in turn, within `plain`.
    """
    loss = loss if isinstance(loss, Loss) else Loss(loss)
    root = loss.value if loss.logits is None else loss.logits
    options = {"create_graph": create_graph, "allow_unused": True, "materialize_grads": True}
    return list(torch.autograd.grad(root, parameters, loss.slope, **options))


def cross_entropy(logits: Tensor, label: Tensor, count: Tensor | None = None) -> Loss:
    """The mean cross-entropy of rows of logits with integer labels (Eq. 2). `count`: of so many first rows alone."""
    known = _fused(logits, label, count=count)
    if known is not None:
        return known
    if count is None:
        return Loss(functional.cross_entropy(logits, label))
    each = cross_entropies(logits, label)
    return Loss(torch.where(torch.arange(len(each), device=each.device) < count, each, 0).sum() / count.clamp(min=1))


def cross_entropies(logits: Tensor, label: Tensor) -> Tensor:
    """The cross-entropy of each row."""
    return functional.cross_entropy(logits, label, reduction="none")


def distillation_loss(logits: Tensor, target: Tensor, temperature: float, reduction: str = "classes") -> Loss:
    """KL(target || softmax(logits / temperature)) over the visible classes (Hinton et al., 2015; BCL's Eq. 6).

    `logits` are masked, `target` is a distribution over the same classes. Averaged over the samples; reduction
    "classes" averages each sample's sum over its visible classes as well (the released code of BCL), "batch" does not.
    """
    known = _fused(logits, None, None, target, temperature, 1.0, reduction == "classes")
    if known is not None:
        return known
    log_p = log_softmax(logits / temperature, dim=1)
    per_sample = (torch.xlogy(target, target) - target * log_p).sum(1)
    if reduction == "classes":
        per_sample = per_sample / (logits > HIDDEN / 10).sum(1)
    return Loss(per_sample.mean())


def replay_loss(
    logits: Tensor,
    label: Tensor,
    replayed_label: Tensor,
    target: Tensor | None = None,
    weight: float = 1.0,
    temperature: float = 1.0,
    reduction: str = "classes",
    share: Tensor | None = None,
) -> Loss:
    """The loss of a current and a replayed batch, given the logits of one after the other (BCL's Eq. 6):

    L(current) + L(replayed) + weight * KL_τ(target || replayed), the last where there is a target. `share`: a number
    on the device, or `ONE`, by which all that is replayed is multiplied.
    """
    if share is None or share is ONE:
        known = _fused(logits, label, replayed_label, target, temperature, weight, reduction == "classes")
        if known is not None:
            return known
        if by_hand(logits) and label.numel() and replayed_label.numel():
            return _replay_loss_by_hand(logits, label, replayed_label, target, weight, temperature, reduction)
    return _replay_loss(logits, label, replayed_label, target, weight, temperature, reduction, share)


def _replay_loss(
    logits: Tensor,
    label: Tensor,
    replayed_label: Tensor,
    target: Tensor | None,
    weight: float,
    temperature: float,
    reduction: str,
    share: Tensor | None = None,
) -> Loss:
    current, replayed = logits.split([len(label), len(replayed_label)])
    again = cross_entropy(replayed, replayed_label)
    loss = cross_entropy(current, label) + (again if share is None else share * again)
    if target is not None:
        held = weight * distillation_loss(replayed, target, temperature, reduction)
        loss = loss + (held if share is None else share * held)
    return loss


def _replay_loss_by_hand(
    given: Tensor, label: Tensor, replayed_label: Tensor, target: Tensor | None, *how: Any
) -> Loss:
    """The same and its gradient, bit for bit what autograd finds, in half the operations. Few ask for the number."""
    logits, n, m = given.detach(), label.numel(), replayed_label.numel()
    log_p = log_softmax(logits, dim=1)
    right = torch.cat((label, replayed_label))[:, None]
    slope = torch.zeros_like(log_p).scatter_(1, right, _shares(n, m))
    slope = torch._log_softmax_backward_data(slope, log_p, 1, torch.float32)
    if target is not None:
        weight, temperature, reduction = how
        replayed, share = logits[n:], logits.new_tensor(-weight) / m
        log_q = log_softmax(replayed / temperature, dim=1)
        classes = _visible_classes(replayed) if reduction == "classes" else 1
        pull = torch._log_softmax_backward_data(target * (share / classes), log_q, 1, torch.float32)
        slope[n:].add_(pull.div_(temperature))

    def number() -> Tensor:
        value: Tensor = functional.nll_loss(log_p[:n], label) + functional.nll_loss(log_p[n:], replayed_label)
        if target is None:
            return value
        per_sample = (torch.xlogy(target, target) - target * log_q).sum(1, keepdim=True)
        held: Tensor = (per_sample / classes).mean() * weight
        return value + held

    return Loss(lambda: _replay_loss(given, label, replayed_label, target, *how).value, given, slope, number)


def _visible_classes(logits: Tensor) -> int | Tensor:
    """How many classes each sample may be answered with: one number for all where none is hidden, else a column."""
    none_hidden = logits.amin().item() > HIDDEN / 10
    return logits.shape[1] if none_hidden else (logits > HIDDEN / 10).sum(1, keepdim=True)


@lru_cache(maxsize=32)
def _shares(n: int, m: int) -> Tensor:
    """How the log-probability of each sample enters the sum of two means, of n and of m of them."""
    return torch.tensor([[-1 / n]] * n + [[-1 / m]] * m)


def _fused(logits: Tensor, *args: Any, **options: Any) -> Loss | None:
    """The loss from one kernel, where that can be done: see `bcl.ops.triton.losses.loss`."""
    if not fused(logits):
        return None
    from bcl.ops.triton import losses

    if not losses.takes(logits):
        return None
    value, slope = losses.loss(logits, *args, **options)
    return Loss(value, logits, slope)
