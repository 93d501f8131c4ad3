"""One run, from its config to its result in the store."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import bcl
from bcl.errors import DamagedFileError, InputError
from bcl.experiments.config import RunConfig
from bcl.experiments.store import RunStore
from bcl.metrics import all_metrics


def execute(
    config: RunConfig,
    store: RunStore,
    *,
    resume: bool = False,
    save_every: float = 60.0,
    report: Callable[[int, int], None] = lambda *_: None,
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Run, or read what was run before. `resume` goes on from the checkpoint of a run that was stopped."""
    done = store.result(config)
    if done is not None:
        return done
    import torch

    from bcl import engine
    from bcl.learners import method
    from bcl.nets import build
    from bcl.streams import benchmark

    torch.set_num_threads(1)
    device = torch.device(config.device)
    stream = benchmark(config.benchmark).stream(
        config.seed,
        part=config.part,
        scenario=config.scenario,
        tasks=config.tasks,
        samples=config.samples,
        memory=config.memory,
    )
    net = build(config.net, stream.setting)
    learner = method(config.method)(net, stream.setting, **config.hyper).to(device)
    where = store.create(config)
    checkpoint = where / "checkpoint.safetensors"
    position = engine.Position()
    if resume and checkpoint.exists():
        try:
            position = engine.Position.from_json(engine.load(learner, checkpoint))
        except (DamagedFileError, InputError, TypeError) as error:
            raise DamagedFileError(f"{error}; run without --resume to start this run anew") from error
    loop = engine.Loop(
        learner,
        stream,
        position,
        device=device,
        save=lambda at: engine.save(learner, checkpoint, at.to_json()),
        save_every=save_every,
        report=report,
        stop=stop,
    )
    at = loop.run()
    engine.save(learner.net, where / "weights.safetensors", config.to_json())
    result = {
        "id": config.id,
        "benchmark": config.benchmark,
        "scenario": config.scenario,
        "method": config.method,
        "seed": config.seed,
        **all_metrics(at.matrix, at.before),
        "accuracy_matrix": at.matrix,
        "before": at.before,
        "steps": at.steps,
        "seconds": round(at.seconds, 3),
        "config": config.to_json(),
        "weights_sha256": engine.digest(learner.net.state_dict()),
        "versions": _versions(torch.__version__),
        "hardware": _hardware(device),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": config.command,
    }
    store.finish(config, result, at.log)
    return result


def _versions(torch_version: str) -> dict[str, str]:
    import numpy

    return {
        "bcl": bcl.__version__,
        "torch": torch_version,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def _hardware(device: Any) -> str:
    import torch

    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, one thread"
