"""The arithmetic of a run: float32, TF32 in matrix products and convolutions, or bfloat16 where autocast allows."""

from __future__ import annotations

import contextlib
from typing import Any

PRECISIONS = ("fp32", "tf32", "bf16")


def set_precision(name: str) -> None:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = name == "tf32"


def precision_context(name: str, device: Any) -> Any:
    import torch

    if name == "bf16":
        # Its cache of converted weights lasts as long as the context, and would hide every step from the next one.
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=False)
    return contextlib.nullcontext()
