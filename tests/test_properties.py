"""Masks, measures, splits and names of runs, whatever they are made of."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import bcl
from bcl.metrics import all_metrics
from bcl.nets import reveal, visible_at_start
from bcl.ops.losses import HIDDEN, mask_tasks
from bcl.runs.config import RunConfig
from bcl.streams.benchmark import hold_out

FEW = settings(max_examples=30)
MATRIX = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.floats(0, 100), min_size=n, max_size=n), min_size=n, max_size=n)
)
ROWS = st.lists(st.sets(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=4)


@FEW
@given(ROWS, st.sampled_from(["task", "class"]), st.data())
def test_what_is_visible(rows: list[set[int]], scenario: str, data: st.DataObject) -> None:
    """Task-incrementally a task's classes; class-incrementally those of all tasks that have begun."""
    setting = bcl.Setting.split([sorted(row) for row in rows], shape=(1,), scenario=scenario)
    begun = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=5))
    visible = visible_at_start(setting)
    for t in begun:
        reveal(visible, setting, t)
    for t in begun:
        seen = rows[t] if scenario == "task" else set().union(*(rows[s] for s in begun))
        assert set(visible[t].nonzero().flatten().tolist()) == seen
    t = begun[-1]
    logits = mask_tasks(torch.zeros(2, setting.n_classes), visible, t)
    assert ((logits == HIDDEN) == ~visible[t]).all()
    each = mask_tasks(torch.zeros(len(begun), setting.n_classes), visible, torch.tensor(begun))
    assert ((each == 0) == visible[begun]).all()


@FEW
@given(MATRIX, st.data())
def test_measures(matrix: list[list[float]], data: st.DataObject) -> None:
    n = len(matrix)
    before = data.draw(st.lists(st.floats(0, 100), min_size=n, max_size=n))
    found = all_metrics(matrix, before)
    a = np.array(matrix)
    assert found["acc"] == pytest.approx(sum(a[-1]) / n)
    assert found["la"] == pytest.approx(sum(a[i, i] for i in range(n)) / n)
    assert found["anytime"] == pytest.approx(sum(sum(a[i, : i + 1]) / (i + 1) for i in range(n)) / n)
    if n > 1:
        falls = [max(a[i, j] for i in range(n - 1)) - a[-1, j] for j in range(n - 1)]
        assert found["fm"] == pytest.approx(sum(falls) / (n - 1))
        assert found["bwt"] == pytest.approx(sum(a[-1, j] - a[j, j] for j in range(n - 1)) / (n - 1))
        assert found["fwt"] == pytest.approx(sum(a[j - 1, j] - before[j] for j in range(1, n)) / (n - 1))
    shifted = all_metrics((a / 2).tolist(), [b / 2 for b in before])
    assert all(shifted[name] == pytest.approx(value / 2) for name, value in found.items() if value is not None)


@FEW
@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.floats(0, 1))
def test_holding_out_splits_every_class_alike(labels: list[int], share: float) -> None:
    y, index = np.array(labels), np.arange(len(labels))
    kept, held = hold_out(y, index, share)
    assert sorted([*kept, *held]) == index.tolist()
    for c in set(labels):
        assert (y[held] == c).sum() == round((y == c).sum() * share)
    only = np.flatnonzero(y == labels[0])
    assert set(hold_out(y, only, share)[1]) == {i for i in held if y[i] == labels[0]}, "whatever shares its task"


@FEW
@given(
    st.sampled_from(["split-digits", "permuted-digits"]),
    st.integers(0, 2**63 - 1),
    st.sampled_from(["learn", "tune"]),
    st.sampled_from(["task", "domain", "class"]),
    st.integers(1, 3),
    st.integers(1, 40),
)
def test_a_stream(name: str, seed: int, part: str, scenario: str, tasks: int, samples: int) -> None:
    """Its tasks bring the classes that its setting says, no sample twice, and none that is tested; again the same."""
    words = {"part": part, "scenario": scenario, "tasks": tasks, "samples": samples}
    stream, again = (bcl.benchmark(name).stream(seed, **words) for _ in range(2))
    assert len(stream) == tasks
    for t, plan in enumerate(stream.plans):
        assert len(plan.train) == len(set(plan.train.tolist())) <= samples
        assert not plan.test_from_train or not set(plan.train.tolist()) & set(plan.test.tolist())
        (x, y), (x_again, y_again) = stream.train(t), again.train(t)
        assert np.array_equal(x, x_again)
        assert np.array_equal(y, y_again)
        assert set(y.tolist()) <= set(stream.setting.classes[t])
        assert set(stream.test(t)[1].tolist()) == set(stream.setting.classes[t])
        assert sum(len(labels) for _, labels, _ in stream.batches(t)) == len(y)
    learnt = [c for plan in stream.plans for c in plan.classes.tolist()]
    assert name != "split-digits" or len(set(learnt)) == len(learnt)


@FEW
@given(st.integers(0, 99), st.integers(0, 99))
def test_no_seed_learns_what_a_seed_tunes_on(one: int, other: int) -> None:
    learnt = bcl.benchmark("split-digits").stream(one)
    tuned = bcl.benchmark("split-digits").stream(other, part="tune")
    samples = {int(i) for plan in learnt.plans for i in plan.train}
    assert not samples & {int(i) for plan in tuned.plans for i in (*plan.train, *plan.test)}


CONFIG = RunConfig.resolve("split-digits", "er", 0, tasks=2, samples=20)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "seed": st.integers(0, 99),
        "tasks": st.integers(1, 5),
        "samples": st.none() | st.integers(1, 50),
        "memory": st.integers(1, 50),
        "batch_size": st.integers(1, 20),
        "scenario": st.sampled_from(["task", "class"]),
        "method": st.sampled_from(["er", "bcl-dual"]),
        "net": st.sampled_from(["mlp", "resnet18"]),
        "part": st.sampled_from(["learn", "tune"]),
        "precision": st.sampled_from(["fp32", "bf16"]),
        "data": st.sampled_from(["", "abc"]),
        "hyper": st.fixed_dictionaries({"lr": st.floats(0.01, 1), "memory": st.sampled_from(["ring", "reservoir"])}),
    },
)


@FEW
@given(CHANGES, CHANGES)
def test_two_runs_have_one_name_only_if_they_are_one_run(one: dict[str, object], other: dict[str, object]) -> None:
    a, b = replace(CONFIG, **one), replace(CONFIG, **other)  # type: ignore[arg-type]
    assert (a.id == b.id) == (a == b)
    assert RunConfig.from_json(json.loads(json.dumps(a.to_json()))) == a
    assert RunConfig.from_json(json.loads(json.dumps(a.to_json()))).id == a.id
    assert "/" not in a.id
    assert a.id.isprintable()
