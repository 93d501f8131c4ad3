"""Triton's interpreter, made to notice what a GPU may not: a kernel that reads or writes outside of its tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.runtime.interpreter as interpreter

BY_ADDRESS = "_update"  # a kernel that is given a table of addresses


def watch() -> None:
    """From now on an access outside of the memory of a kernel's arguments is an AssertionError."""
    builder, executor = interpreter.InterpreterBuilder, interpreter.GridExecutor
    begin, load, store = executor._init_args_hst, builder.create_masked_load, builder.create_masked_store
    known: dict[str, Any] = {}

    def begun(self: Any, args: Any, kwargs: Any) -> Any:
        given = begin(self, args, kwargs)
        tensors = [value for value in (*given[0], *given[1].values()) if isinstance(value, torch.Tensor)]
        spans = [tensor.untyped_storage() for tensor in tensors]
        known["spans"] = [(span.data_ptr(), span.data_ptr() + span.nbytes()) for span in spans if span.nbytes()]
        known["kernel"] = self.fn.__name__
        return given

    def check(pointers: Any, mask: Any, size: int, what: str) -> None:
        places = np.asarray(pointers.data)
        used = places[np.broadcast_to(np.asarray(mask.data), places.shape).astype(bool)].astype(np.uint64)
        inside = np.zeros(used.shape, bool)
        for first, end in known["spans"]:
            inside |= (used >= first) & (used + size <= end)
        assert inside.all() or known["kernel"] == BY_ADDRESS, (
            f"{known['kernel']} {what} {(~inside).sum()} values outside of its tensors"
        )

    def loaded(self: Any, pointers: Any, mask: Any, *rest: Any) -> Any:
        check(pointers, mask, pointers.get_element_ty().primitive_bitwidth // 8 or 1, "reads")
        return load(self, pointers, mask, *rest)

    def stored(self: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        check(pointers, mask, np.asarray(value.data).dtype.itemsize, "writes")
        return store(self, pointers, value, mask, *rest)

    executor._init_args_hst, builder.create_masked_load, builder.create_masked_store = begun, loaded, stored
