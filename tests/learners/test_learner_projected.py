"""GEM and A-GEM against their transcriptions, and the projections against other ways to compute them."""

import numpy as np
import pytest
import torch
from followed import SCENARIOS, follow, names, same_ring
from naive_projected import NaiveAGEM, NaiveGEM
from scipy.optimize import nnls
from tiny import same_state, state, tiny_learner, tiny_setting, tiny_stream

from bcl import Setting
from bcl.learners import method
from bcl.nets import MLP, ResNet18
from bcl.ops.projections import nonnegative_qp, project_to_cone, project_to_halfspace
from bcl.ops.updates import flatten, unflatten

GEM = {"lr": 0.1, "margin": 0.5, "ridge": 1e-3}


def rings(steps, size):
    for learner, reference in steps:
        for t, ring in enumerate(reference.rings):
            same_ring(learner.memory, t, ring.items, size)


@pytest.mark.parametrize("values", [{}, {"margin": 0.0, "ridge": 1e-5}], ids=names)
@pytest.mark.parametrize("memory", [5, 12])  # 12: no ring is ever full
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_gem(net, scenario, memory, values):
    setting = tiny_setting(net, scenario, memory=memory)
    rings(follow("gem", NaiveGEM, setting, net, GEM | values, values), memory)


@pytest.mark.parametrize(("at_once", "memory"), [(2, 7), (8, 7), (2, 20)])  # 20: no ring is ever full
@pytest.mark.parametrize("kind", ["mlp", "resnet"])
def test_gem_takes_gradients_through_stacked_copies(kind, at_once, memory, monkeypatch):
    """As on a GPU. Batch norm's running statistics too are those of one pass after another."""
    shape = (3, 8, 8)
    setting = Setting.split([[0, 1], [2, 3], [4, 5], [6, 7]], shape=shape, memory=memory)
    draw, learners = torch.Generator().manual_seed(1), []
    batches = [(torch.randn(5, *shape, generator=draw).double(), torch.randint(2, (5,), generator=draw)) for _ in "123"]
    monkeypatch.setattr("bcl.learners.gem.AT_ONCE", at_once)
    for stacked in (False, True):
        monkeypatch.setattr("bcl.learners.gem.stacks", lambda _, stacked=stacked: stacked)
        torch.manual_seed(0)
        net = MLP(shape, 8, [9]) if kind == "mlp" else ResNet18(8, width=3)
        learners.append(method("gem")(net, setting, lr=0.05).double())
        for t in range(4):
            learners[-1].enter(t)
            for x, y in batches:
                learners[-1].step(x, y + 2 * t, t)
    for one, other in zip(*(learner.state_dict().values() for learner in learners), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("values", [{}, {"replay_batch": 3, "lr": 0.03}], ids=names)
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("net", ["mlp", "conv"])
def test_agem(net, scenario, values):
    setting = tiny_setting(net, scenario)
    rings(follow("agem", NaiveAGEM, setting, net, {"lr": 0.1, "replay_batch": 256} | values, values), 5)


@pytest.mark.parametrize("name", ["gem", "agem"])
def test_some_steps_are_corrected_and_some_are_not(name, monkeypatch):
    """Otherwise the comparisons above would show nothing."""
    import importlib

    module = importlib.import_module(f"bcl.learners.{name}")
    function = "project_to_cone" if name == "gem" else "project_to_halfspace"
    original, corrected = getattr(module, function), []

    def watched(gradient, *rest):
        result = original(gradient, *rest)
        corrected.append(not torch.equal(result, gradient))
        return result

    monkeypatch.setattr(module, function, watched)
    for scenario in SCENARIOS:
        learner = tiny_learner(name, "mlp", scenario)
        for x, y, t in tiny_stream(learner.setting):
            learner.observe(x, y, t)
    assert 4 < sum(corrected) < len(corrected)


@pytest.mark.parametrize("net", ["mlp", "conv"])
@pytest.mark.parametrize("name", ["gem", "agem"])
def test_with_one_task_they_are_finetune(name, net):
    ours, plain = tiny_learner(name, net), tiny_learner("finetune", net)
    for x, y, t in tiny_stream(ours.setting, schedule=(1, 1, 1), sizes=(4, 4, 2)):
        ours.observe(x, y, t)
        plain.observe(x, y, t)
        assert same_state(state(ours.net), state(plain.net))


def gradients_of(kind, t, rng):
    p = int(rng.integers(2, 60))
    rows = rng.normal(size=(t, p))
    if kind == "singular":
        rows = rng.normal(size=(t, 2)) @ rng.normal(size=(2, p))
    elif kind == "repeated":
        rows = np.repeat(rows[:1], t, 0)
    elif kind == "repeated but for rounding":
        rows = (rng.normal(size=(t, t // 2)) @ rows[: t // 2])[rng.integers(0, t, size=t)]
        rows = rows * (1 + 1e-8 * rng.normal(size=(t, p)))
    elif kind == "nearly collinear":
        rows = rows[:1] + 1e-4 * rows
    elif kind == "nearly opposed":
        rows = rows[:1] * rng.choice([-1, 1], size=(t, 1)) + 1e-3 * rows
    elif kind == "of many sizes":
        rows = rows * 10.0 ** rng.uniform(-3, 2, size=(t, 1))
    elif kind == "zero":
        rows = rows * 0
    return rows, rng.normal(size=p) * max(np.abs(rows).mean(), 1e-3)


KINDS = ["random", "singular", "repeated", "nearly collinear", "nearly opposed", "of many sizes", "zero"]


@pytest.mark.parametrize("margin", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_quadratic_program_against_another_solver(kind, margin):
    rng = np.random.default_rng(KINDS.index(kind))
    for t in (1, 2, 3, 5, 9, 16, 20, 20, 20):
        rows, g = gradients_of(kind, t, rng)
        a = rows @ rows.T + 1e-3 * np.eye(t)
        b = rows @ g + margin * a.sum(1)
        root = np.linalg.cholesky(a)
        expected, _ = nnls(root.T, -np.linalg.solve(root, b), maxiter=10_000)
        u = nonnegative_qp(torch.tensor(a), torch.tensor(b)).numpy()
        assert (u >= 0).all()
        size = np.linalg.norm(g) + np.linalg.norm(expected @ rows)
        assert np.linalg.norm((u - expected) @ rows) <= 1e-6 * size  # what it adds to the gradient
        value, best = (v @ a @ v / 2 + b @ v for v in (u, expected))
        assert value <= best + 1e-9 * abs(best) + 1e-15


@pytest.mark.parametrize("kind", ["singular", "repeated", "repeated but for rounding", "zero"])
def test_a_singular_matrix_without_a_ridge_is_solved_all_the_same(kind):
    """No other solver is to be trusted here: u >= 0, no slope is negative, and where u > 0 it is zero."""
    rng = np.random.default_rng(0)
    for t in [2, 5, 10, 20] * 10:
        rows, g = gradients_of(kind, t, rng)
        a, b = rows @ rows.T, rows @ g
        u = nonnegative_qp(torch.tensor(a), torch.tensor(b)).numpy()
        length = np.sqrt(np.diag(a)) + 1e-300
        slope = (a @ u + b) / length / np.linalg.norm(g)
        assert (u >= 0).all()
        assert (slope > -1e-5).all()
        assert np.abs(slope * u * length / np.linalg.norm(g)).max() < 1e-5


def test_the_cone_leaves_alone_what_agrees_with_all_and_turns_what_does_not():
    generator = torch.Generator().manual_seed(0)
    references = torch.randn(6, 50, generator=generator)
    agreeing = torch.linalg.lstsq(references, torch.rand(6, generator=generator)).solution
    assert torch.equal(project_to_cone(agreeing, references, 0.5, 1e-3), agreeing)
    for _ in range(20):
        g = torch.randn(50, generator=generator)
        turned = project_to_cone(g, references, 0.0, 1e-6)
        assert (references @ turned).min() > -1e-3
        if (references @ g).min() < 0:
            further = project_to_cone(g, references, 0.5, 1e-6)  # the margin favours the references
            assert (references @ further).min() > -1e-3
            assert (references @ further).sum() > (references @ turned).sum() + 1


def test_with_one_reference_and_no_margin_the_cone_is_a_half_space():
    generator = torch.Generator().manual_seed(1)
    for _ in range(10):
        g, reference = torch.randn(2, 30, generator=generator)
        expected = project_to_halfspace(g, reference)
        torch.testing.assert_close(project_to_cone(g, reference[None], 0.0, 1e-9), expected)
        assert reference @ expected > -1e-4
        assert torch.equal(expected, g) == bool(g @ reference >= 0)


def test_a_reference_of_zero_changes_nothing():
    g = torch.randn(5, generator=torch.Generator().manual_seed(2))
    assert torch.equal(project_to_halfspace(g, torch.zeros(5)), g)
    assert torch.equal(project_to_cone(g, torch.zeros(3, 5), 0.5, 1e-3), g)


def test_many_parameters_are_summed_in_blocks():
    """More than one block; the ends of two gradients, a block apart, decide."""
    n = 2**20 + 7
    g, reference = torch.zeros(n), torch.zeros(n)
    g[0], g[-1], reference[0], reference[-1] = 1.0, -2.0, 1.0, 1.0
    got = project_to_cone(g, reference[None], 0.0, 1e-9)
    torch.testing.assert_close(got[[0, -1]], torch.tensor([1.5, -1.5]))
    assert got[1:-1].eq(0).all()


def test_a_vector_and_back():
    tensors = [torch.arange(6.0).view(2, 3), torch.tensor(7.0), torch.ones(2)]
    assert flatten(tensors).tolist() == [0, 1, 2, 3, 4, 5, 7, 1, 1]
    assert all(torch.equal(a, b) for a, b in zip(unflatten(flatten(tensors), tensors), tensors, strict=True))
