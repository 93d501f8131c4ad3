"""The options that commands share, each in one place, with the checks that need nothing but the value."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from bcl.errors import InputError, unknown
from bcl.learners import METHODS, installed_methods

MOST = 100_000
DEVICES = ("auto", "cpu", "cuda")


def count(parameter: typer.CallbackParam, value: int | None) -> int | None:
    """At least 1, and no more than can be meant, where it is given."""
    if value is not None and value < 1:
        raise InputError(f"{parameter.name} must be at least 1, not {value}")
    if value is not None and value > MOST:
        raise InputError(f"{parameter.name} must be at most {MOST:,}, not {value:,}")
    return value


def pick_device(name: str) -> str:
    """The device that `auto` stands for here."""
    if name not in DEVICES:
        raise unknown("device", name, DEVICES)
    if name == "cpu":
        return name
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if name == "cuda":
        raise InputError("no CUDA device is available here; use --device cpu")
    return "cpu"


def seeds_of(text: str) -> tuple[int, int]:
    """How many seeds `--seed` asks for, and the first of them.

    >>> seeds_of("3"), seeds_of("2-4")
    ((1, 3), (3, 2))
    """
    first, dash, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or bool(dash) != bool(last):
        raise InputError(f"--seed: a seed is a number from 0, several are two of them and a hyphen (2-4), not '{text}'")
    if int(last or first) < int(first):
        raise InputError(f"--seed: the last seed comes after the first, not '{text}'")
    number = int(last or first) - int(first) + 1
    if number > MOST:
        raise InputError(f"--seed: at most {MOST:,} seeds, not {number:,}")
    return number, int(first)


def settings(words: Sequence[str], option: str = "--set", value: str = "value", join: str = "") -> dict[str, str]:
    """`name=value` words as a mapping. A name that comes twice has both values with `join` between them, or is refused.

    >>> settings(["lr=0.1", "memory=ring"])
    {'lr': '0.1', 'memory': 'ring'}
    >>> settings(["lr=0.03", "lr=0.1,0.2"], join=",")
    {'lr': '0.03,0.1,0.2'}
    """
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InputError(f"{option} takes name={value} or method.name={value}, not '{word}'")
        name, text = name.strip(), text.strip()
        if name in pairs and not join:
            raise InputError(f"{option} says {name} twice, {pairs[name]} and {text}: leave one of them out")
        pairs[name] = f"{pairs[name]}{join}{text}" if name in pairs else text
    return pairs


def benchmark_names() -> list[str]:  # for help, and for the shell's completion, as the two below
    from bcl.streams import BENCHMARKS

    return [*BENCHMARKS]


def method_names() -> list[str]:
    return [*METHODS, *installed_methods()]


def suite_names() -> list[str]:
    from bcl.studies.suite import packaged

    return packaged()


class WithNames(TyperCommand):
    """A command whose help names the benchmarks and methods; they are looked up when it is asked for."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        _write_names(formatter, "Benchmarks", [*benchmark_names(), "folder:PATH", "npz:FILE"])
        _write_names(formatter, "Methods", [*method_names(), "module:Class"])


class WithSuites(TyperCommand):
    """A command whose help names the suites."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        _write_names(formatter, "Suites", [*suite_names(), "FILE.yaml"])


def _write_names(formatter: Any, title: str, names: Sequence[str]) -> None:
    """Every name whole: they have hyphens."""
    with formatter.section(title):
        for line in wrap(", ".join(names), formatter.width - 2, break_on_hyphens=False):
            formatter.write(f"  {line}\n")


Benchmark = Annotated[
    str,
    typer.Argument(metavar="BENCHMARK", help="A name, folder:PATH or npz:FILE.", autocompletion=benchmark_names),
]
Methods = Annotated[
    list[str],
    typer.Argument(
        metavar="METHOD...",
        help="Names, or module:Class for one of your own.",
        autocompletion=method_names,
    ),
]
OnlyMethods = Annotated[
    str,
    typer.Option("--methods", metavar="A,B,...", help="These lines of the suite alone, or all of a method."),
]
OnlyBenchmarks = Annotated[
    str,
    typer.Option("--benchmarks", metavar="A,B,...", help="These benchmarks (or parts of the table) alone."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Out = Annotated[Path | None, typer.Option("--out", help="Directory of the run store [default: in runs/].")]
Seeds = Annotated[int, typer.Option("--seeds", callback=count, help="Seeds 0 to N-1.")]
SeedsOrNot = Annotated[int | None, typer.Option("--seeds", callback=count, help="Seeds 0 to N-1 [default: 5].")]
SomeSeeds = Annotated[str | None, typer.Option("--seed", metavar="S", help="This seed alone, or these: 2-4.")]
Scenario = Annotated[str | None, typer.Option("--scenario", help="task, domain or class.")]
Memory = Annotated[int | None, typer.Option("--memory", help="Memory slots per task.")]
MemoryTotal = Annotated[int | None, typer.Option("--memory-total", help="Memory slots of all tasks together.")]
Net = Annotated[
    str | None,
    typer.Option(
        "--net",
        help="Network, instead of the benchmark's: mlp, linear, resnet18-reduced, resnet18-reduced-plain, "
        "resnet18-plain, resnet18, resnet18-imagenet, resnet18-imagenet-raw, or module:function.",
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        help="Frozen network whose features are learnt in place of samples: resnet18-imagenet, module:function.",
    ),
]
Set = Annotated[
    list[str],
    typer.Option(
        "--set", metavar="[METHOD.]NAME=VALUE", help="A hyper-parameter, of one method or of all; may be repeated."
    ),
]
Device = Annotated[str, typer.Option("--device", callback=pick_device, help="auto, cpu or cuda.")]
Precision = Annotated[str, typer.Option("--precision", help="fp32, tf32 or bf16.")]
PrecisionOrNot = Annotated[str | None, typer.Option("--precision", help="fp32, tf32 or bf16 [default: the suite's].")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", callback=count, help="Processes [default: a run per core; on a GPU up to 8, with groups of runs]."
    ),
]
SaveEvery = Annotated[float, typer.Option("--save-every", help="Seconds between checkpoints.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Begin runs that were stopped anew, not at their checkpoints.")]
StopDiverged = Annotated[
    bool, typer.Option("--stop-diverged", help="End a run at the next task once its weights are not finite.")
]
