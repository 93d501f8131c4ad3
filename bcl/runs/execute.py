"""One run, from its config to its result in the store."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import bcl
from bcl.engine.clock import PHASES
from bcl.errors import DamagedFileError, InputError, UserError, first_line
from bcl.loading import authors_line, describe
from bcl.metrics import all_metrics, continual_metrics, prequential_accuracy
from bcl.processes import keep_freed_memory
from bcl.runs.chance import chance
from bcl.runs.config import RunConfig
from bcl.runs.options import DEFAULTS, RunOptions
from bcl.runs.precision import precision_context, set_precision
from bcl.runs.result import Result
from bcl.runs.store import RunStore


def execute_together(configs: Sequence[RunConfig], store: RunStore, options: RunOptions = DEFAULTS) -> list[Result]:
    """Run configs side by side on their device, and write each one's result.

    With `resume`, runs whose checkpoints stand at another place than those of the first run after them.
    """
    import torch

    from bcl import engine

    began = time.monotonic()
    torch.set_num_threads(1)
    device = torch.device(configs[0].device)
    if device.type == "cpu":
        keep_freed_memory()
    set_precision(configs[0].precision)
    streams: dict[Any, Any] = {}
    members = [_prepare(config, store, options.resume, device, streams) for config in configs]
    for member in members:
        member.position.spend("preparing", (time.monotonic() - began) / len(members))
    places: dict[tuple[int, int], list[int]] = {}
    for i, member in enumerate(members):
        places.setdefault((member.position.task, member.position.batch), []).append(i)
    for together in places.values():
        loop = engine.Loop(
            [members[i] for i in together],
            device,
            save_every=options.save_every,
            report=options.for_runs(together).report,
            stop=options.stop,
            stop_diverged=options.stop_diverged,
        )
        with precision_context(configs[0].precision, device):
            loop.run()
    return [_finish(config, store, member, device) for config, member in zip(configs, members, strict=True)]


def data_of(config: RunConfig) -> tuple[tuple[str, Any], ...]:
    """What determines a run's data: runs that agree in it share one stream."""
    names = ("benchmark", "seed", "part", "scenario", "tasks", "samples", "memory", "batch_size", "encoder", "device")
    return tuple((name, getattr(config, name)) for name in names)


def stream_of(config: RunConfig) -> Any:
    """The run's stream."""
    from bcl.streams import benchmark

    about = dict(data_of(config))
    encoder, device = about.pop("encoder"), about.pop("device")
    stream = benchmark(about.pop("benchmark")).stream(**about)
    return _encoder(config).stream(stream, device) if encoder else stream


def _encoder(config: RunConfig) -> Any:
    from bcl.nets.encoders import find_encoder

    found = find_encoder(config.encoder)
    if found.digest[:16] not in config.data:
        raise InputError(f"--encoder {config.encoder} has changed since this run was planned; run it anew")
    return found


def _setting_of(config: RunConfig) -> Any:
    """The run's setting. Features for a GPU are computed there, by the process that runs."""
    if config.encoder and config.device != "cpu":
        return _encoder(config).setting(stream_of(replace(config, encoder="")))
    return stream_of(config).setting


def try_out(config: RunConfig) -> None:
    """Make a run's learner, so that a mistake shows before anything is written."""
    try:
        learner_of(config, _setting_of(config), "cpu")
    except UserError:
        raise
    except Exception as error:  # memories that are too large, most often; or a mistake in the user's own method
        reason = describe(error) if authors_line(error) else first_line(error)
        raise InputError(f"{config.method} with {config.memory} slots per task cannot be made: {reason}") from error


def learner_of(config: RunConfig, setting: Any, device: Any) -> Any:
    """The run's learner, before it has learnt anything."""
    from bcl.learners import method
    from bcl.nets import build

    return method(config.method)(build(config.net, setting), setting, **config.hyper).to(device)


def _prepare(config: RunConfig, store: RunStore, resume: bool, device: Any, streams: dict[Any, Any]) -> Any:
    """The learner and stream of a run, and where it stands. Runs with the same data share one stream."""
    from bcl import engine

    key = data_of(config)
    if key not in streams:
        streams[key] = stream_of(config)
    stream = streams[key]
    if stream.dataset.digest[:16] not in config.data:
        raise InputError(f"the data of {config.benchmark} has changed since this run was planned; run it anew")
    learner = learner_of(config, stream.setting, device)
    checkpoint = store.create(config) / "checkpoint.safetensors"
    run = config.id
    save = engine.save if device.type == "cpu" else engine.save_later  # on a CPU steps would have to wait all the same
    member = engine.Member(
        learner,
        stream,
        save=lambda at: save(learner, checkpoint, at.to_json(), run=run),
        prequential=config.prequential,
        evaluate_every=config.evaluate_every,
    )
    if not resume:
        checkpoint.unlink(missing_ok=True)  # of an earlier attempt: should this one be resumed, then from its own
    elif checkpoint.exists():
        try:
            member.position = engine.Position.from_json(engine.load(learner, checkpoint, run=run))
        except (DamagedFileError, InputError) as error:
            raise DamagedFileError(f"{error}; use --fresh to start this run anew") from error
    return member


def _finish(config: RunConfig, store: RunStore, member: Any, device: Any) -> Result:
    import torch

    from bcl import engine

    began, at, net, setting = time.monotonic(), member.position, member.learner.net, member.stream.setting
    engine.save(net, store.directory(config) / "weights.safetensors", config.to_json())
    weights_sha256 = engine.digest(net.state_dict())
    at.spend("saving", time.monotonic() - began)
    content = {
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
        "time": {phase: round(at.time.get(phase, 0.0), 3) for phase in PHASES},
        "passes": engine.count_passes(member.learner, [samples / sum(member.lengths) for samples in at.passes]),
        "stored_bytes": engine.stored_bytes(member.learner),
        "config": config.to_json(),
        "sources": config.sources,
        "chance": chance(config.scenario, setting.classes, setting.mask_unseen),
        "code": config.code,
        "diverged": not engine.is_finite(net),
        "weights_sha256": weights_sha256,
        "versions": _versions(torch.__version__),
        "hardware": _hardware(device),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": config.command,
    }
    if at.prequential:
        content |= {"prequential": prequential_accuracy(at.prequential), "prequential_windows": at.prequential}
    if at.evaluations:
        rows = [one["accuracy"] for one in at.evaluations]
        content |= {**continual_metrics(rows), "evaluations": at.evaluations}
    return store.finish(config, content, at.log)


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
