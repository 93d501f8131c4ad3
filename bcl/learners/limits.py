"""Where a method cannot do what it is for, and says so."""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING

from torch import Tensor

from bcl.learners.inputs import warn_once

if TYPE_CHECKING:
    from bcl.learners.base import Learner


def warn_of_limits(learner: Learner) -> None:
    """Of a learner that does nothing against forgetting in its setting."""
    name, setting = type(learner).__name__, learner.setting
    if setting.boundaries == "none" and learner.needs_boundaries:
        warn_once(
            f"{name} does nothing against forgetting before a boundary: {learner.needs_boundaries}. Call end_task() "
            "where you know of one, or use Setting.stream(..., boundaries='drift')"
        )
    elif not setting.open and setting.tasks == 1 and learner.learns_plainly():
        warn_once(
            f"{name} does nothing against forgetting within one task, and this setting has no other. For a stream "
            "without tasks use Setting.stream(classes, shape)"
        )


def warn_of_loss(learner: Learner, loss: Tensor | None) -> None:
    """Of a loss that is not finite, once for a learner. One on a GPU is not looked at: the step would wait for it."""
    seen = isinstance(loss, Tensor) and loss.is_cpu and loss.dim() == 0
    if loss is None or not seen or learner.is_lost or math.isfinite(loss.item()):
        return
    learner.is_lost = True
    logging.getLogger("bcl").warning(
        "the loss of %s is not finite, and its weights may be lost: a sample or the learning rate is too large; scale "
        "samples, or go back to a saved file",
        type(learner).__name__,
    )
