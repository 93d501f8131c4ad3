"""The old heads: what learners that distil on new samples want to keep as it was (Li & Hoiem, 2017)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import softmax

from bcl.learners.base import Learner
from bcl.ops.losses import Loss, distillation_loss, mask_logits


def old_heads(learner: Learner) -> Tensor:
    """A boolean row over all classes for each head that is to stay as it was.

    Task-incrementally the earlier tasks' classes, one head per task; else one head, the classes of all earlier tasks.
    On a GPU there are rows for the tasks to come too, without classes, so that a captured step serves every task: such
    a head is at no distance and has no gradient.
    """
    rows = learner.own_classes & learner.earlier[:, None]
    if learner.setting.scenario != "task":
        return rows.any(0, keepdim=True)
    return rows if rows.is_cuda else rows[list(learner.past)]


def old_heads_loss(learner: Learner, new: Tensor, old: Tensor, temperature: float) -> Loss:
    """The sum over the old heads of each one's mean distance from what it used to answer; both logits unmasked."""
    heads = old_heads(learner)
    rows = heads.repeat(len(new), 1)  # of every sample, a row for each head
    new, old = (mask_logits(z.repeat_interleave(len(heads), 0), rows) for z in (new, old))
    return len(heads) * distillation_loss(new, softmax(old / temperature, dim=1), temperature, "batch")
