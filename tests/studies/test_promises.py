"""`bcl check`: a method that breaks a promise is told which, and where."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from bcl.cli import main
from bcl.learners.base import Learner
from bcl.learners.er import ER
from bcl.studies import contract
from bcl.studies.operations import NoSynchronisation


def er(**members: Any) -> type[Learner]:
    """Experience replay, but for what is given."""
    return type("Broken", (ER,), members)


def stands_still(self, x, y, t):
    """No step at all."""


def diverges(self, x, y, t):
    ER.step(self, x, y, t)
    self.net.fc.weight.data.mul_(float("inf"))


def draws_from_torch(self, x, y, t):
    ER.step(self, x + torch.randint(0, 2, x.shape).to(x.dtype), y, t)


def draws_from_python(self, x, y, t):
    ER.step(self, x + int(random.random() * 3), y, t)


def counts_in_python(self, x, y, t):
    self.steps = getattr(self, "steps", 0) + 1
    ER.step(self, x + self.steps % 2, y, t)


def too_large(self):
    from dataclasses import replace

    self.setting = replace(self.setting, memory=2 * self.setting.memory)
    ER.setup(self)
    self.setting = replace(self.setting, memory=self.setting.memory // 2)


def unmasked(self, x, t):
    return self.net(x / 16)


def reads_back(self, x, y, t):
    if x.float().mean().item() > -1:
        ER.step(self, x, y, t)


def changes(self, x, y, t):
    self.steps = getattr(self, "steps", 0) + 1
    ER.step(self, x + 1 if self.steps % 2 else x, y, t)


def keeps_its_graph(self, x, y, t):
    return ER.step(self, x, y, t).clone().requires_grad_()


def forgets_the_task(self, t=None):
    ER.end_task(self, t)


def takes_anything(self, x, y, t):
    return torch.zeros(2, *self.setting.shape, dtype=torch.uint8), torch.tensor([self.setting.classes[0][0]] * 2)


BROKEN = [
    (contract.learns, {"step": stands_still}, "no weight has changed"),
    (contract.learns, {"step": diverges}, "not finite"),
    (contract.learns, {"begin_task": lambda self, t: None}, r"does not call super\(\)\.begin_task"),
    (contract.learns, {"step": keeps_its_graph}, "a loss that is not detached"),
    (contract.keeps_its_budget, {"end_task": lambda self, t=None: t}, r"does not call super\(\)\.end_task"),
    (contract.keeps_its_budget, {"end_task": forgets_the_task}, "does not return the task"),
    (contract.is_deterministic, {"step": draws_from_torch}, "two runs with the same seed differ in"),
    (contract.leaves_random_state_alone, {"step": draws_from_torch}, "generator of torch"),
    (contract.leaves_random_state_alone, {"step": draws_from_python}, "generator of random"),
    (contract.resumes, {"step": counts_in_python}, "for want of state that is saved"),
    (contract.keeps_its_budget, {"setup": too_large}, "42 slots, and the budget is 21"),
    (contract.respects_masks, {"answer": unmasked}, "which are masked"),
    (contract.does_not_synchronise, {"step": reads_back}, "makes the host wait"),
    (contract.repeats_its_operations, {"step": changes}, "step 2 of task 0 runs other operations"),
    (contract.refuses_bad_input, {"check": takes_anything}, "it takes samples of another shape"),
]


@pytest.mark.parametrize(("promise", "members", "said"), BROKEN)
def test_a_broken_promise_is_noticed(promise: Any, members: dict[str, Any], said: str) -> None:
    promise(contract.trial(ER, "task"))
    with pytest.raises(AssertionError, match=said):
        promise(contract.trial(er(**members), "task"))


def test_every_promise_is_broken_above() -> None:
    assert {promise for promise, _, _ in BROKEN} == set(contract.PROMISES)


def test_the_command_names_the_authors_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    look = "def look(x):\n    return float(x.sum())\n"
    step = "class Mine(ER):\n    def step(self, x, y, t):\n        look(x)\n        super().step(x, y, t)\n"
    Path("checked_method.py").write_text(f"from bcl.learners.er import ER\n{look}{step}")
    assert main(["check", "checked_method:Mine"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert len(out) == len(contract.PROMISES)
    (failed,) = (line for line in out if line.startswith("FAILED"))
    assert failed.startswith("FAILED does not synchronise: task-incrementally: aten::_local_scalar_dense makes")
    assert failed.endswith("(checked_method.py:3: return float(x.sum()))")
    Path("checked_error.py").write_text("from bcl.learners.er import ER\nclass Mine(ER):\n    step = None\n")
    assert main(["check", "checked_error:Mine"]) == 1
    first, *others = (line for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED"))
    assert first.startswith("FAILED learns: task-incrementally: TypeError")
    assert others
    assert all(line.endswith(": for a reason told above") for line in others)
    assert main(["check", "finetune", "--json"]) == 0
    assert all(promise["kept"] for promise in json.loads(capsys.readouterr().out)["promises"])


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: float(x[0]),
        lambda x: x[x > 0],
        lambda x: x[torch.tensor(0)],
        lambda x: 1 if x.sum() > 0 else 0,
        lambda x: x.nonzero(),
        lambda x: x.unique(),
    ],
)
def test_the_watch_sees_a_synchronisation(read: Any) -> None:
    with pytest.raises(AssertionError, match="wait for the device"), NoSynchronisation():
        read(torch.ones(3))
