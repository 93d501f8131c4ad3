"""One file per algorithm, and how a method is found by its name."""

from __future__ import annotations

import importlib
from dataclasses import fields
from importlib.metadata import EntryPoint, entry_points
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, cast

from bcl.errors import InputError, unknown
from bcl.loading import load

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
    "bcl-mean": "bcl.learners.bcl_mean:BCLMean",
    "scr": "bcl.learners.scr:SCR",
    "mkd": "bcl.learners.mkd:MKD",
    "cls-er": "bcl.learners.cls_er:CLSER",
    "ccl-dc": "bcl.learners.ccl_dc:CCLDC",
    "mose": "bcl.learners.mose:MOSE",
    "gdumb": "bcl.learners.gdumb:GDumb",
    "ncm": "bcl.learners.ncm:NCM",
    "slda": "bcl.learners.slda:SLDA",
    "ranpac": "bcl.learners.ranpac:RanPAC",
    "offline": "bcl.learners.finetune:Offline",
}


def installed_methods() -> dict[str, EntryPoint]:
    """Those that other packages bring: entry points of the group `bcl.methods`, name = "module:Class"."""
    return {point.name: point for point in entry_points(group="bcl.methods") if point.name not in METHODS}


def check_method(name: str) -> None:
    """Raise where there is no such method. Those of the package are not imported for that."""
    if name not in METHODS:
        method(name)


def method(name: str) -> type[Learner]:
    """The class of a method: of this package, of an installed one, or the user's own, named `module:Class`."""
    if name in METHODS:
        module, _, attribute = METHODS[name].partition(":")
        return cast("type[Learner]", getattr(importlib.import_module(module), attribute))
    installed = installed_methods()
    if ":" not in name and name not in installed and not name.endswith(".py"):
        if "," in name:
            raise InputError(f"one method at a time, not '{name}': names are separated by spaces")
        raise unknown("method", name, (*METHODS, *installed, "module:Class"))
    return _checked(name, load(installed[name].value if name in installed else name, "method", "class"))


def _checked(name: str, found: Any) -> type[Learner]:
    from bcl.learners.base import Learner
    from bcl.learners.hyper import HyperParameters

    if not isinstance(found, type) or not issubclass(found, Learner):
        raise InputError(f"method {name} is not a subclass of bcl.Learner")
    hyper = getattr(found, "Hyper", None)
    if not isinstance(hyper, type) or not issubclass(hyper, HyperParameters):
        raise InputError(f"method {name} has no `Hyper`: the class of its hyper-parameters")
    if found.step is Learner.step:
        raise InputError(f"method {name} has no `step(self, x, y, t)`")
    if found.observe is not Learner.observe:
        raise InputError(
            f"method {name} has an `observe` of its own, which a run does not call: write `step(self, x, y, t)`"
        )
    if "__dataclass_fields__" not in vars(hyper) and get_annotations(hyper):
        raise InputError(f"method {name}: write @hypers above the class {hyper.__name__}")
    for field in fields(hyper):
        if "meaning" not in field.metadata:
            raise InputError(f'method {name}: say what {field.name} is, as in `{field.name}: ... = hyper(0.1, "...")`')
    return found
