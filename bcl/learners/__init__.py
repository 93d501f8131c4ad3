"""One file per algorithm. A new method is one file and one line here."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bcl.errors import unknown

if TYPE_CHECKING:
    from bcl.learners.base import Learner

METHODS: dict[str, str] = {
    "finetune": "bcl.learners.finetune:Finetune",
    "lwf": "bcl.learners.lwf:LwF",
    "ewc": "bcl.learners.ewc:EWC",
    "icarl": "bcl.learners.icarl:ICaRL",
    "gem": "bcl.learners.gem:GEM",
    "agem": "bcl.learners.agem:AGEM",
    "er": "bcl.learners.er:ER",
    "er-mir": "bcl.learners.er:ERMIR",
    "er-ace": "bcl.learners.er_ace:ERACE",
    "der++": "bcl.learners.der:DERPlusPlus",
    "kdr": "bcl.learners.kdr:KDR",
    "mer": "bcl.learners.mer:MER",
    "ftml": "bcl.learners.ftml:FTML",
    "bcl-single": "bcl.learners.bcl:BCLSingle",
    "bcl-dual": "bcl.learners.bcl:BCLDual",
    "bcl-dual-mir": "bcl.learners.bcl:BCLDualMIR",
    "offline": "bcl.learners.finetune:Offline",
}


def method(name: str) -> type[Learner]:
    """The learner class of a method."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    module, _, attribute = METHODS[name].partition(":")
    learner: type[Learner] = getattr(importlib.import_module(module), attribute)
    return learner
