"""Accuracy on the test sets: batched, in evaluation mode, without gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bcl.learners.base import Learner
from bcl.streams import Stream


def evaluate(learner: Learner, stream: Stream, device: torch.device) -> list[float]:
    """Accuracy in percent on the test set of every task, seen or not."""
    was_training = learner.training
    learner.eval()
    correct = torch.stack([_correct(learner, stream, t, device) for t in range(len(stream))])
    learner.train(was_training)
    sizes = [len(plan.test) for plan in stream.plans]
    return [100.0 * int(c) / n for c, n in zip(correct.tolist(), sizes, strict=True)]


@torch.no_grad()
def _correct(learner: Learner, stream: Stream, t: int, device: torch.device) -> Tensor:
    images, labels = stream.test(t)
    x, y = torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)
    size = max(1, min(1000, 2**22 // math.prod(stream.setting.shape)))
    answers = [learner.answer(part, t).argmax(1) for part in x.split(size)]
    return (torch.cat(answers) == y).sum()
