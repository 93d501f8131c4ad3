"""On a GPU: a captured step does what an eager one does, bit for bit, alone and side by side with others."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch

from bcl.engine import Loop, Member
from bcl.learners import METHODS, method
from bcl.nets import build
from bcl.streams import benchmark

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
RESERVOIRS = ("er", "er-mir", "bcl-single", "bcl-dual", "bcl-dual-mir")


def run(
    names: list[str],
    captured: bool,
    samples: int | None = None,
    net: str = "mlp",
    first_seed: int = 0,
    **values: Any,
) -> list[Member]:
    """Learn three tasks of permuted digits in full precision, at small rates."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    members = []
    for seed, name in enumerate(names, first_seed):
        stream = benchmark("permuted-digits").stream(seed, tasks=3, samples=samples, scenario=scenario(name))
        learner = method(name)(build(net, stream.setting), stream.setting, **calm(name), **values).cuda()
        members.append(Member(learner, stream))
    Loop(members, torch.device("cuda"), captured=captured).run()
    return members


def calm(name: str) -> dict[str, float]:
    rates = [f.name for f in dataclasses.fields(method(name).Hyper) if f.name.endswith("lr") and f.name != "outer_lr"]
    return dict.fromkeys(rates, 0.003)


def scenario(name: str) -> str:
    return "domain" if "domain" in method(name).scenarios else "task"


def difference(one: Member, other: Member) -> float:
    """The largest difference between two networks' weights, over the largest weight."""
    pairs = list(zip(one.learner.net.state_dict().values(), other.learner.net.state_dict().values(), strict=True))
    return max(float((a - b).abs().max() / (a.abs().max() + 1e-12)) for a, b in pairs if a.is_floating_point())


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", METHODS)
def test_captured_equals_eager(name: str, caplog: pytest.LogCaptureFixture) -> None:
    (captured,), (eager,) = run([name], True, 700), run([name], False, 700)
    assert "not captured" not in caplog.text
    assert captured.position.steps == eager.position.steps >= 200
    assert difference(captured, eager) == 0


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", RESERVOIRS)
def test_captured_equals_eager_with_a_reservoir(name: str, caplog: pytest.LogCaptureFixture) -> None:
    captured, eager = (run([name], how, 700, memory="reservoir")[0] for how in (True, False))
    assert "not captured" not in caplog.text
    assert difference(captured, eager) == 0


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", ["er", "bcl-dual"])
def test_captured_equals_eager_with_batch_norm(name: str) -> None:
    captured, eager = (run([name], how, 150, "resnet18-reduced")[0] for how in (True, False))
    assert difference(captured, eager) == 0


@pytest.mark.gpu
@needs_gpu
def test_side_by_side_equals_alone() -> None:
    assert not any(side_by_side("mlp").values())
    assert not any(side_by_side("resnet18-reduced", 150).values())


def side_by_side(net: str, samples: int | None = None) -> dict[str, float]:
    """How far learners that ran side by side are from the same ones alone."""
    names = ["er", "bcl-dual", "finetune", "der++"]
    together = run(names, True, samples, net)
    alone = [run([name], True, samples, net, first_seed=seed)[0] for seed, name in enumerate(names)]
    return {name: difference(a, b) for name, a, b in zip(names, together, alone, strict=True)}


@pytest.mark.gpu
@needs_gpu
def test_a_step_that_cannot_be_captured_runs_eagerly_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    member = run_stubborn()
    assert member.position.steps >= 30
    assert "steps are not captured" in (note := caplog.text)
    assert "x.sum().item()" in note


class Stubborn(method("finetune")):  # type: ignore[misc]
    """A learner that reads a value back in every step."""

    def step(self, x: torch.Tensor, y: torch.Tensor, t: int) -> None:
        x.sum().item()
        super().step(x, y, t)


def run_stubborn() -> Member:
    stream = benchmark("permuted-digits").stream(0, tasks=2, samples=150)
    member = Member(Stubborn(build("mlp", stream.setting), stream.setting).cuda(), stream)
    Loop([member], torch.device("cuda")).run()
    return member


if __name__ == "__main__":  # where pytest is not installed
    for name in ("er", "bcl-dual"):
        captured, eager = (run([name], how, 150, "resnet18-reduced")[0] for how in (True, False))
        print(f"{name:14s} reduced ResNet-18, captured against eager: {difference(captured, eager):.1e}", flush=True)
    for name in RESERVOIRS:
        captured, eager = (run([name], how, 700, memory="reservoir")[0] for how in (True, False))
        print(f"{name:14s} reservoir, captured against eager: {difference(captured, eager):.1e}", flush=True)
    for net, samples in (("mlp", None), ("resnet18-reduced", 150)):
        print(f"side by side against alone, {net}: {side_by_side(net, samples)}", flush=True)
    print("a step that reads a value back:", run_stubborn().position.steps, "steps, and a note before", flush=True)
    for name in METHODS:
        (captured,), (eager,) = run([name], True, 700), run([name], False, 700)
        verdict = difference(captured, eager)
        print(f"{name:14s} {captured.position.steps} steps, captured against eager: {verdict:.1e}", flush=True)
