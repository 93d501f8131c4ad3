"""Online continual learning: Bilevel Continual Learning and its rivals, benchmarks, tables and figures.

Names are loaded when they are first used, so that `import bcl` and `bcl --help` are quick.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Setting": "bcl.streams",
    "benchmark": "bcl.streams",
    "build": "bcl.nets",
    "method": "bcl.learners",
    "Learner": "bcl.learners.base",
    "Finetune": "bcl.learners.finetune",
    "Offline": "bcl.learners.finetune",
    "LwF": "bcl.learners.lwf",
    "EWC": "bcl.learners.ewc",
    "ICaRL": "bcl.learners.icarl",
    "GEM": "bcl.learners.gem",
    "AGEM": "bcl.learners.agem",
    "ER": "bcl.learners.er",
    "ERMIR": "bcl.learners.er",
    "ERACE": "bcl.learners.er_ace",
    "DERPlusPlus": "bcl.learners.der",
    "KDR": "bcl.learners.kdr",
    "MER": "bcl.learners.mer",
    "FTML": "bcl.learners.ftml",
    "BCLSingle": "bcl.learners.bcl",
    "BCLDual": "bcl.learners.bcl",
    "BCLDualMIR": "bcl.learners.bcl",
    "BCLMean": "bcl.learners.bcl_mean",
    "SCR": "bcl.learners.scr",
    "MKD": "bcl.learners.mkd",
    "CLSER": "bcl.learners.cls_er",
    "CCLDC": "bcl.learners.ccl_dc",
    "MOSE": "bcl.learners.mose",
    "GDumb": "bcl.learners.gdumb",
    "NCM": "bcl.learners.ncm",
    "SLDA": "bcl.learners.slda",
    "RanPAC": "bcl.learners.ranpac",
    "Encoder": "bcl.nets.encoder",
    "Packed": "bcl.nets.packed",
    "Packing": "bcl.streams",
    "Drift": "bcl.learners.drift",
    "OnlineClassifier": "bcl.online",
    "RiverClassifier": "bcl.online.river_base",
    "is_finite": "bcl.engine.evaluate",
    "capture_steps": "bcl.engine.observing",
    "run": "bcl.engine.run",
    "save": "bcl.engine.checkpoint",
    "load": "bcl.engine.checkpoint",
    "restore": "bcl.engine.restore",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bcl' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
