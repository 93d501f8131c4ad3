"""A run, as data: everything that determines its result, and the name that follows from it."""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import bcl
from bcl.errors import InputError, unknown
from bcl.names import slug
from bcl.runs.identity import code_digest
from bcl.runs.precision import PRECISIONS
from bcl.runs.presets import preset, sources
from bcl.streams import SCENARIOS, benchmark

UNSAID = ("data", "prequential", "evaluate_every")  # where they are empty: older names of runs are without them


@dataclass(frozen=True)
class RunConfig:
    """One method on one benchmark with one seed. Nothing is left to a default: `resolve` has filled all in."""

    benchmark: str
    scenario: str
    method: str
    seed: int
    tasks: int
    samples: int | None  # training samples per task; None: all
    memory: int  # slots per task
    batch_size: int
    net: str
    device: str
    part: str  # learn, or tune
    hyper: dict[str, Any]
    precision: str = "fp32"
    prequential: bool = False  # every mini-batch is answered before it is learnt, too
    evaluate_every: int = 0  # mini-batches, after which the tasks seen so far are evaluated, too; 0: after tasks alone
    data: str = ""  # digest of the data set and of pretrained weights or an own network; empty for what the package has
    encoder: str = ""  # a frozen network whose features are learnt in place of samples; empty: none
    sources: dict[str, str] = field(default_factory=dict, compare=False)  # of `hyper`; no part of the run's identity

    @classmethod
    def resolve(
        cls,
        benchmark_name: str,
        method_name: str,
        seed: int,
        *,
        scenario: str | None = None,
        tasks: int | None = None,
        samples: int | None = None,
        memory: int | None = None,
        memory_total: int | None = None,
        batch_size: int | None = None,
        net: str | None = None,
        encoder: str | None = None,
        device: str = "cpu",
        part: str = "learn",
        precision: str = "fp32",
        prequential: bool = False,
        evaluate_every: int = 0,
        overrides: Mapping[str, Any] | None = None,
    ) -> RunConfig:
        """Fill in the benchmark's defaults and the method's chosen hyper-parameters, and check all of it."""
        from bcl.learners import method
        from bcl.nets.build import check as check_net
        from bcl.nets.encoders import find_encoder

        home = benchmark(benchmark_name)
        benchmark_name = home.name
        scenario = scenario or home.scenario
        if scenario not in SCENARIOS:
            raise unknown("scenario", scenario, SCENARIOS)
        if precision not in PRECISIONS:
            raise unknown("precision", precision, PRECISIONS)
        if device == "cpu" and precision == "tf32":  # which is of GPUs
            precision = "fp32"
        learner = method(method_name)
        if scenario not in learner.scenarios:
            raise InputError(learner.refusal(scenario))
        sizes = {"tasks": tasks, "samples": samples, "batch_size": batch_size}
        stream = home.stream(seed, part=part, scenario=scenario, memory=memory, memory_total=memory_total, **sizes)
        net = net or ("linear" if encoder else home.net)
        digests = [stream.dataset.digest, check_net(net)]
        if encoder:
            digests.append(find_encoder(encoder).digest)
        place = (benchmark_name, scenario, home.scenario, method_name)
        hyper = asdict(learner.Hyper.of({**preset(*place, encoder), **(overrides or {})}))
        return cls(
            benchmark_name,
            scenario,
            method_name,
            seed,
            len(stream),
            samples,
            stream.setting.memory,
            stream.setting.batch_size,
            net,
            device,
            part,
            hyper,
            precision,
            prequential and not learner.is_upper_bound,
            0 if learner.is_upper_bound else evaluate_every,
            "-".join(digest[:16] for digest in digests if digest),
            encoder or "",
            sources(*place, hyper, asdict(learner.Hyper()), encoder=encoder),
        )

    @property
    def code(self) -> str:
        """A digest of the code that computes the run."""
        from bcl.learners import method

        return code_digest(Path(inspect.getfile(method(self.method))), self.device != "cpu")[:12]

    @property
    def id(self) -> str:
        """A readable name with a digest of all that determines the result; usable as the name of a directory."""
        own = {key: value for key, value in self.to_json().items() if value or key not in UNSAID}
        whole = {**own, "bcl": bcl.__version__, "code": self.code}
        digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
        return f"{slug(self.method)}-seed{self.seed}-{digest[:12]}"

    @property
    def command(self) -> str:
        """The command that runs this again, from nothing."""
        if self.part == "tune":  # one of a search's runs: the search finds it again
            words = ["bcl", "tune", self.benchmark, self.method, "--scenario", self.scenario]
            words += ["--memory", str(self.memory), "--device", self.device, "--precision", self.precision]
            words += ["--encoder", self.encoder] if self.encoder else []
            return shlex.join(words)
        words = ["bcl", "run", self.benchmark, self.method, "--seed", str(self.seed), "--scenario", self.scenario]
        words += ["--tasks", str(self.tasks), "--memory", str(self.memory), "--net", self.net, "--device", self.device]
        words += ["--precision", self.precision, "--batch-size", str(self.batch_size)]
        if self.samples is not None:
            words += ["--samples", str(self.samples)]
        words += ["--encoder", self.encoder] if self.encoder else []
        words += ["--prequential"] if self.prequential else []
        words += ["--evaluate-every", str(self.evaluate_every)] if self.evaluate_every else []
        for name, value in self.hyper.items():
            words += ["--set", f"{name}={value}"]
        return shlex.join(words)

    def to_json(self) -> dict[str, Any]:
        """What determines the result."""
        found = {key: value for key, value in asdict(self).items() if key != "sources"}
        return found if self.encoder else {key: value for key, value in found.items() if key != "encoder"}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunConfig:
        return cls(**{field.name: data[field.name] for field in fields(cls) if field.name in data})
