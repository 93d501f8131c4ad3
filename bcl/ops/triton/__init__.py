"""Fused GPU kernels in Triton; `bcl.ops` chooses between them and the plain forms."""
