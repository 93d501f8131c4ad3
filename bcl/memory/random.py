"""Random numbers whose whole state is one tensor: saved, copied, moved and captured like any other buffer."""

from __future__ import annotations

from torch import Tensor, nn

from bcl.ops import rows


class Random(nn.Module):
    """SplitMix64 (Steele et al., 2014) in tensor arithmetic.

    A counter-based generator: integer operations alone, so the same seed draws the same numbers on a CPU and on a
    GPU, eagerly and inside a captured graph, and there is no generator object beside the module to save or register.

    >>> random = Random(seed=0)
    >>> (random.integers(4) % 10).tolist()
    [7, 6, 1, 0]
    >>> import torch
    >>> sorted(random.choose(torch.tensor([True, False, True, True]), 3).tolist())
    [0, 2, 3]
    """

    def __init__(self, seed: int):
        super().__init__()
        self.state: Tensor
        self.register_buffer("state", rows.first_state(seed))

    def integers(self, n: int) -> Tensor:
        """The next n random integers, uniform in [0, 2^63)."""
        return rows.integers(self.state, n)

    def choose(self, eligible: Tensor, k: int) -> Tensor:
        """k indices among those where `eligible` holds, without replacement: see `bcl.ops.rows.choose`."""
        return rows.choose(self.state, eligible, k)
