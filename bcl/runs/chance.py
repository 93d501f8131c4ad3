"""What a guess is worth: the level that a learner must pass to have learnt anything."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Classes = Sequence[Collection[int]]  # of each task


def chance(scenario: str, classes: Classes, mask_unseen: bool = True) -> list[float]:
    """The accuracy of a guess on the tasks seen so far, in percent, after each task.

    >>> chance("task", [[0, 1], [2, 3]]), chance("class", [[0, 1], [2, 3]]), chance("domain", [[0, 1], [0, 1]])
    ([50.0, 50.0], [50.0, 25.0], [50.0, 50.0])
    """
    if scenario == "task":  # the task is known: a guess is among its own classes
        shares = [100.0 / len(set(own)) for own in classes]
        return [sum(shares[: i + 1]) / (i + 1) for i in range(len(shares))]
    if scenario == "domain" or not mask_unseen:
        return [100.0 / len(set().union(*classes))] * len(classes)
    return [100.0 / len(set().union(*classes[: i + 1])) for i in range(len(classes))]
