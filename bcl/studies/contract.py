"""What every method promises, as checks: `bcl check METHOD` runs them, and so do the tests of the package's methods."""

from __future__ import annotations

import inspect
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bcl import engine
from bcl.errors import InputError
from bcl.learners import method
from bcl.learners.base import Learner
from bcl.loading import authors_line, describe
from bcl.memory import Memory
from bcl.nets import build
from bcl.ops.dispatch import blind
from bcl.streams import benchmark
from bcl.studies.operations import NoSynchronisation, Recorder, Synchronises

Batch = tuple[Any, Any, int]  # samples, labels, task


class Broken(AssertionError):
    """A promise that is not kept; the message says how."""


@dataclass(frozen=True)
class Trial:
    """What a promise is checked on: learners that differ in their network's seed alone, and what they learn from."""

    make: Callable[[int], Learner]
    batches: Sequence[Batch]

    def learnt(self, learner: Learner) -> Learner:
        for x, y, t in self.batches:
            loss = learner.observe(x, y, t)
            _hold(learner.task == t, "its begin_task does not call super().begin_task(t)")
            _hold(loss is None or not loss.requires_grad, "its step returns a loss that is not detached")
        return learner

    def tasks(self) -> Iterator[tuple[int, list[tuple[Tensor, Tensor]]]]:
        """The stretches of one task, as tensors."""
        for t, batches in groupby(self.batches, key=lambda batch: batch[2]):
            yield t, [(torch.as_tensor(x), torch.as_tensor(y)) for x, y, _ in batches]


def end(learner: Learner) -> None:
    """The current task has ended."""
    t = learner.task
    _hold(learner.end_task(t) == t, "its end_task does not return the task; return what super().end_task(t) gives")
    _hold(learner.task == -1, "its end_task does not call super().end_task(t)")


def trial(learner: type[Learner], scenario: str) -> Trial:
    """Two of three tasks of small digits, the first of which comes back, and a small network."""
    stream = benchmark("split-digits").stream(5, scenario=scenario, tasks=3, samples=30, memory=7)

    def make(net_seed: int) -> Learner:
        return learner(build("mlp", replace(stream.setting, seed=net_seed)), stream.setting)

    return Trial(make, [batch for t in (0, 1, 0) for batch in stream.batches(t)])


def learns(trial: Trial) -> None:
    """A step changes the weights, and they stay finite; or, of a learner that keeps statistics, what it answers."""
    learner = trial.make(0)
    if not learner.trains_network:
        _hold(_answers_from_statistics(trial, learner), "what it answers has not changed, or its network has")
        return
    before = [weight.detach().clone() for weight in learner.net.parameters()]
    after = list(trial.learnt(learner).net.parameters())
    _hold(all(bool(weight.isfinite().all()) for weight in after), "the weights are not finite")
    changed = any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    _hold(changed, "no weight has changed")


def _answers_from_statistics(trial: Trial, learner: Learner) -> bool:
    (x, _, t), weights = trial.batches[0], [weight.detach().clone() for weight in learner.net.parameters()]
    learner.enter(t)
    before = learner.predict(x, t)
    after = trial.learnt(learner).predict(x, t)
    still = all(torch.equal(old, new) for old, new in zip(weights, learner.net.parameters(), strict=True))
    return still and bool(after.isfinite().all()) and not torch.equal(before, after)


def is_deterministic(trial: Trial) -> None:
    """The same seed ends the same, whatever the global generators give."""
    ends = []
    for noise in (0, 1):
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(noise)  # those of numpy and Python have moved on by themselves
            ends.append(state(trial.learnt(trial.make(0))))
    _same(ends[0], ends[1], "two runs with the same seed differ in")


def leaves_random_state_alone(trial: Trial) -> None:
    """The global generators of torch, numpy and Python are where they were."""
    learner, before = trial.make(0), _generators()
    x, _, t = trial.batches[0]
    trial.learnt(learner).predict(x, t)
    for name, one, other in zip(("torch", "numpy", "random"), before, _generators(), strict=True):
        _hold(one == other, f"the global generator of {name} was used; draw from self.random")


def resumes(trial: Trial) -> None:
    """Saved and loaded it goes on bit for bit: within a task that is new, and within one that has come back."""
    for stop in (len(trial.batches) * 2 // 5, len(trial.batches) - 2):
        one, other = trial.make(0), trial.make(1)  # other weights: all must come from the file
        for x, y, t in trial.batches[:stop]:
            one.observe(x, y, t)
        with tempfile.TemporaryDirectory() as folder:
            engine.save(one, Path(folder) / "learner.safetensors", {"stop": stop})
            _hold(engine.load(other, Path(folder) / "learner.safetensors") == {"stop": stop}, "its notes are lost")
        _same(state(one), state(other), "after loading, these differ:")
        for x, y, t in trial.batches[stop:]:
            one.observe(x, y, t)
            other.observe(x, y, t)
            _same(state(one), state(other), "it goes on otherwise, for want of state that is saved, in")
        x, _, t = trial.batches[0]
        _hold(torch.equal(one.predict(x, t), other.predict(x, t)), "after loading, it predicts otherwise")


def keeps_its_budget(trial: Trial) -> None:
    """No more samples are stored than `memory` slots per task."""
    learner = trial.make(0)
    budget = learner.setting.memory * learner.setting.tasks
    slots = sum(memory.slots for memory in learner.modules() if isinstance(memory, Memory))
    _hold(slots <= budget, f"its memories have {slots} slots, and the budget is {budget}")
    for x, y, t in trial.batches:
        learner.observe(x, y, t)
        _hold(stored(learner) <= budget, f"it stores {stored(learner)} samples, and the budget is {budget}")
    end(learner)
    _hold(stored(learner) <= budget, f"after a task it stores {stored(learner)} samples; the budget is {budget}")


def respects_masks(trial: Trial) -> None:
    """It answers classes of the task (task-incremental), or those seen so far (class-incremental), alone."""
    learner, seen = trial.make(0), set[int]()
    every, scenario = set(range(learner.setting.n_classes)), learner.setting.scenario
    for x, y, t in trial.batches:
        learner.observe(x, y, t)
        seen |= set(learner.setting.classes[t])
        allowed = {"task": set(learner.setting.classes[t]), "class": seen, "domain": every}[scenario]
        answers = learner.predict(x, t)
        _hold(answers.shape == (len(x), len(every)), f"predict gives {tuple(answers.shape)} for {len(x)} samples")
        answered = set(torch.nonzero((answers.softmax(1) > 0).any(0)).flatten().tolist())
        _hold(answered <= allowed, f"in task {t} it answers classes {sorted(answered - allowed)}, which are masked")


def does_not_synchronise(trial: Trial) -> None:
    """A step reads no value back to Python: it would stall a GPU, and could not be captured as one graph."""
    learner = trial.make(0)
    for t, ((x, y), *others) in trial.tasks():
        learner.enter(t)
        learner.step(x, y, t)  # what a task's first step prepares is not part of a captured one
        with blind(), NoSynchronisation():
            for x, y in others:
                learner.step(x, y, t)
        end(learner)


def repeats_its_operations(trial: Trial) -> None:
    """Every step of a task runs the same operations, so that one that was captured stands for all."""
    learner = trial.make(0)
    for t, batches in trial.tasks():
        learner.enter(t)
        runs = []
        for x, y in batches:
            with blind(), Recorder() as recorder:
                learner.step(x, y, t)
            runs.append(recorder.seen)
            _hold(runs[0] == runs[-1] != [], f"step {len(runs)} of task {t} runs other operations than step 1")
        end(learner)


def refuses_bad_input(trial: Trial) -> None:
    """A batch that cannot be learnt from is refused with an InputError, before anything has changed."""
    learner, (x, y, t) = trial.make(0), trial.batches[0]
    bad: dict[str, Batch] = {
        "samples of another shape": (x[..., :-1], y, t),
        "no samples": (x[:0], y[:0], t),
        "labels of no class": (x, y * 0 - 1, t),
        "too few labels": (x, y[:-1], t),
        "labels that are not whole numbers": (x, y * 1.0, t),
        "a task that does not exist": (x, y, learner.setting.tasks),
    }
    before = state(learner)
    for what, batch in bad.items():
        try:
            learner.observe(*batch)
        except InputError:
            _same(before, state(learner), f"it refuses {what}, but these have changed:")
        else:
            raise Broken(f"it takes {what}")


PROMISES: tuple[Callable[[Trial], object], ...] = (
    *(learns, is_deterministic, leaves_random_state_alone, resumes, keeps_its_budget, respects_masks),
    *(does_not_synchronise, repeats_its_operations, refuses_bad_input),
)


@dataclass(frozen=True)
class Verdict:
    promise: str
    meaning: str
    reason: str  # why it is broken, with the author's line; empty where it is kept


def check_promises(name: str) -> Iterator[Verdict]:
    """Every promise, tried in every scenario in which the method learns."""
    learner = method(name)
    torch.set_num_threads(1)  # the networks are small
    for promise in PROMISES:
        meaning = " ".join((promise.__doc__ or "").split())
        reason = ""
        for scenario in learner.scenarios:
            try:
                promise(trial(learner, scenario))
            except Exception as error:
                reason = f"{scenario}-incrementally: {_told(error, inspect.getfile(learner))}"
                break
        yield Verdict(promise.__name__.replace("_", " "), meaning, reason)


def _told(error: Exception, file: str) -> str:
    if not isinstance(error, Broken | Synchronises):
        return describe(error, file)
    line = authors_line(error, file)
    return f"{error} ({line})" if line else str(error)


def stored(learner: Learner) -> int:
    return sum(int(memory.filled().sum()) for memory in learner.modules() if isinstance(memory, Memory))


def state(learner: Learner) -> dict[str, Tensor]:
    """A copy of all that a learner is."""
    return {name: tensor.clone() for name, tensor in learner.state_dict().items()}


def _same(one: dict[str, Tensor], other: dict[str, Tensor], message: str) -> None:
    names = [name for name in one if name not in other or not torch.equal(one[name], other[name])]
    _hold(not names and one.keys() == other.keys(), f"{message} {', '.join(names[:5])}")


def _hold(condition: bool, message: str) -> None:
    if not condition:
        raise Broken(message)


def _generators() -> tuple[Any, ...]:
    _, keys, position, *_ = np.random.get_state()
    return torch.get_rng_state().tolist(), (np.asarray(keys).tolist(), position), random.getstate()
