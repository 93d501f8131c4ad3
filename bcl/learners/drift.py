"""A boundary that nobody told of, found in a series of numbers such as the loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Drift(nn.Module):
    """Page's cumulative sum test (1954) for a rise of the mean, in standard deviations of what was usual.

        z_n = (x_n - μ_n) / σ_n;      S_n = max(0, S_{n-1} + min(z_n, c) - δ);      alarm where S_n > λ

    μ_n and σ_n are running means over about `reach` values before the nth. Values that are no more than δ deviations
    above what is usual take the sum back to zero. No single value counts for more than c = ¾ λ, so that one outlier is
    no alarm. After an alarm all begins anew; the first `quiet` values are learnt from alone.

    A learner watches log(loss + 0.01): the losses of a network that learns are spread over orders of magnitude.

    >>> drift = Drift()
    >>> values = [1.0 + 0.1 * (n % 3) for n in range(100)] + [3.0] * 10
    >>> [n for n, value in enumerate(values) if drift.update(value)]
    [101]
    """

    def __init__(self, slack: float = 1.0, threshold: float = 6.0, reach: int = 50, quiet: int = 20):
        super().__init__()
        self.slack, self.threshold, self.reach, self.quiet = slack, threshold, reach, quiet
        self.state: Tensor  # values so far, their mean, their variance, the sum S
        self.register_buffer("state", torch.zeros(4, dtype=torch.float64))

    def update(self, value: float) -> bool:
        """The next value; whether the mean has risen."""
        n, mean, variance, total = self.state.tolist()
        if n >= self.quiet:
            deviation = (value - mean) / max(variance**0.5, 1e-9)
            total = max(0.0, total + min(deviation, 0.75 * self.threshold) - self.slack)
        if total > self.threshold:
            self.state.zero_()
            return True
        n += 1
        share = 1 / min(n, self.reach)
        step = value - mean
        mean, variance = mean + share * step, (1 - share) * (variance + share * step**2)
        self.state.copy_(torch.tensor([n, mean, variance, total], dtype=torch.float64))
        return False
