"""Single samples, from which some networks cannot learn: with a batch norm over nothing but the samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from bcl.errors import InputError, first_line

if TYPE_CHECKING:
    from bcl.learners.base import Learner

SAID = "more than 1 value per channel"  # by torch, when it is too late


def state_before(learner: Learner, x: Tensor) -> dict[str, Tensor] | None:
    """The learner as it is, where a mini-batch may be a sample that it cannot learn from.

    One sample may well do: where replayed samples join it, or a convolution gives the batch norm more to count.
    """
    if len(x) > 1 or not learner.why_not_alone():
        return None
    return {name: tensor.clone() for name, tensor in learner.state_dict().items()}


def refuse_alone(learner: Learner, before: dict[str, Tensor] | None, error: ValueError) -> None:
    """If a step failed for a sample that was alone: an InputError, and the learner is as it was."""
    if SAID not in str(error):
        return
    if before is not None:
        learner.load_state_dict(before)
    remedy = "give more samples at a time" if before is not None else "one was replayed: use a larger memory"
    raise InputError(
        f"{type(learner.net).__name__} cannot learn from one sample alone ({first_line(error)}); {remedy}, or use "
        "a network without such a batch norm"
    ) from error
