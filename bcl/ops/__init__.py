"""Losses, updates, draws, projections, masks, layers. Each function has a plain form in torch's operations and, beside
it, the choice of a fused kernel (`bcl/ops/triton`). Callers know nothing of kernels; `plain` switches them off."""

from bcl.ops.dispatch import plain

__all__ = ["plain"]
