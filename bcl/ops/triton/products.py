"""Matrix products inside kernels, in the precision that is set."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def product(a, b, acc, PRECISION: tl.constexpr):
    """acc + a @ b for float32 tiles."""
    if PRECISION == "bf16":
        acc = tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), acc)
    else:
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    return acc


def precision(allow_tf32: bool) -> str:
    """bfloat16 within autocast; TF32 where it is allowed; else float32, as three TF32 products of high and low parts:
    on the matrix units, and with the error of float32 (tests/ops/test_network_kernels.py)."""
    if torch.is_autocast_enabled("cuda"):
        return "bf16"
    return "tf32" if allow_tf32 else "tf32x3"
