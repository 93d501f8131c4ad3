"""Single samples, from which some networks cannot learn: with a batch norm over nothing but the samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from torch import Tensor

from bcl.errors import InputError, first_line

if TYPE_CHECKING:
    from bcl.learners.base import Learner

SAID = "more than 1 value per channel"  # by torch, when it is too late


@contextmanager
def all_or_nothing(learner: Learner, x: Tensor) -> Iterator[None]:
    """A mini-batch of one sample that cannot be learnt from is an InputError, and the learner is as it was.

    One sample may well do: where replayed samples join it, or a convolution gives the batch norm more to count.
    """
    before = None
    if len(x) == 1 and learner.why_not_alone():
        before = {name: tensor.clone() for name, tensor in learner.state_dict().items()}
    try:
        yield
    except ValueError as error:
        if SAID not in str(error):
            raise
        if before is not None:
            learner.load_state_dict(before)
        remedy = "give more samples at a time" if before is not None else "one was replayed: use a larger memory"
        raise InputError(
            f"{type(learner.net).__name__} cannot learn from one sample alone ({first_line(error)}); {remedy}, or use "
            "a network without such a batch norm"
        ) from error
