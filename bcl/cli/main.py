"""The command line: parse, call, print."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bcl.cli.data import app as data_app
from bcl.cli.suite import app as suite_app
from bcl.errors import InputError, UserError, unknown

STOPPED = 130  # the exit code after Ctrl-C
app = typer.Typer(
    help="Online continual learning: BCL, its rivals, its benchmarks, its tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # or help texts in square brackets vanish
)

app.add_typer(data_app, name="data")
app.add_typer(suite_app, name="suite")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Out = Annotated[Path | None, typer.Option("--out", help="Directory of the run store [default: in runs/].")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on from the checkpoints of runs that were stopped.")]
Seeds = Annotated[int, typer.Option("--seeds", help="Seeds 0 to N-1.")]
Set = Annotated[list[str], typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter; may be repeated.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")]


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show a traceback for every error.")] = False) -> None:
    del debug  # read by main(), wherever it stands on the line


@app.command()
def demo(seeds: Seeds = 3, out: Path = Path("runs/demo"), json_: Json = False) -> None:
    """BCL against replay and fine-tuning on embedded data: a table and a report, in a minute or two."""
    from bcl.cli import run_command as command

    methods = ["finetune", "er", "bcl-single", "bcl-dual", "offline"]
    results = command.run("permuted-digits", methods, seeds=range(_count("seeds", seeds)), out=out, resume=True)
    _print(results, json_, out)
    from bcl.report.grouping import from_results
    from bcl.report.page import write_report

    (page,) = write_report(from_results(results, "BCL on permuted digits"), out / "report.html")
    print(f"report: {page}", file=sys.stderr)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="[benchmarks|methods|suites]")] = "", json_: Json = False
) -> None:
    """What there is: benchmarks, methods, suites."""
    from bcl.cli import catalogue

    known = ("benchmarks", "methods", "suites")
    if what and what not in known:
        raise unknown("list", what, known)
    content = {name: getattr(catalogue, name)() for name in ([what] if what else known)}
    if json_:
        print(json.dumps(content))
    else:
        catalogue.show(content)


@app.command()
def run(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK")],
    methods: Annotated[list[str], typer.Argument(metavar="METHOD...")],
    seeds: Annotated[int | None, typer.Option("--seeds", help="Seeds 0 to N-1 [default: 5].")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="This seed alone.")] = None,
    scenario: Annotated[str | None, typer.Option("--scenario", help="task, domain or class.")] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", help="The first N tasks alone.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Training samples per task.")] = None,
    memory: Annotated[int | None, typer.Option("--memory", help="Memory slots per task.")] = None,
    net: Annotated[
        str | None,
        typer.Option(
            "--net", help="Network, instead of the benchmark's: mlp, resnet18-reduced, resnet18, module:function."
        ),
    ] = None,
    set_: Set = [],  # noqa: B006
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="fp32, tf32 or bf16.")] = "fp32",
    out: Out = None,
    resume: Resume = False,
    workers: Annotated[int | None, typer.Option("--workers", help="Runs at once [default: cores].")] = None,
    save_every: Annotated[float, typer.Option("--save-every", help="Seconds between checkpoints.")] = 60.0,
    json_: Json = False,
) -> None:
    """Run methods on a benchmark, several seeds each, and print the table."""
    from bcl.cli import run_command as command

    if seeds is not None and seed is not None:
        raise InputError("give --seeds N or --seed S, not both")
    chosen = [seed] if seed is not None else range(_count("seeds", 5 if seeds is None else seeds))
    out = out or Path("runs") / benchmark.replace(":", "-").replace("/", "-")
    results = command.run(
        benchmark,
        methods,
        seeds=chosen,
        out=out,
        resume=resume,
        workers=None if workers is None else _count("workers", workers),
        save_every=save_every,
        scenario=scenario,
        tasks=tasks,
        samples=samples,
        memory=memory,
        net=net,
        device=device,
        precision=precision,
        overrides=command.parse_settings(set_),
    )
    _print(results, json_, out)


@app.command()
def tune(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK")],
    methods: Annotated[list[str], typer.Argument(metavar="METHOD...")],
    trials: Annotated[int | None, typer.Option("--trials", help="Try N of the grid's points [default: all].")] = None,
    search: Annotated[str, typer.Option("--search", help="grid, or optuna: between the grid's values.")] = "grid",
    seeds: Seeds = 3,
    finalists: Annotated[int, typer.Option("--finalists", help="Let ten seeds decide among the N best.")] = 0,
    scenario: Annotated[str | None, typer.Option("--scenario", help="task, domain or class.")] = None,
    memory: Annotated[int | None, typer.Option("--memory", help="Memory slots per task.")] = None,
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="fp32, tf32 or bf16.")] = "fp32",
    out: Out = None,
    save: Annotated[Path, typer.Option("--save", help="Where `bcl run` finds the winner.")] = Path("runs/hyper.yaml"),
    workers: Annotated[int | None, typer.Option("--workers", help="Runs at once [default: cores].")] = None,
    json_: Json = False,
) -> None:
    """Choose a method's hyper-parameters on the tuning tasks alone."""
    from bcl.studies import tuning

    tuning.command(
        benchmark,
        methods,
        trials=None if trials is None else _count("trials", trials),
        search=search,
        finalists=finalists if not finalists else _count("finalists", finalists),
        seeds=range(_count("seeds", seeds)),
        scenario=scenario,
        memory=memory,
        device=device,
        precision=precision,
        out=out or Path("runs/tune") / benchmark.replace(":", "-").replace("/", "-"),
        save=save,
        workers=None if workers is None else _count("workers", workers),
        as_json=json_,
    )


@app.command()
def speed(
    methods: Annotated[list[str] | None, typer.Argument(metavar="[METHOD...]")] = None,
    benchmark: Annotated[
        str, typer.Option("--benchmark", help="Whose shapes, network and settings.")
    ] = "permuted-mnist",
    members: Annotated[str, typer.Option("--members", help="Learners side by side on a GPU, e.g. 1,5,10.")] = "1,5",
    device: Device = "auto",
    precision: Annotated[str, typer.Option("--precision", help="fp32, tf32 or bf16.")] = "fp32",
    repeats: Annotated[int, typer.Option("--repeats", help="Steps that are timed.")] = 50,
    tasks: Annotated[int | None, typer.Option("--tasks", help="Tasks seen by then [default: all].")] = None,
    json_: Json = False,
) -> None:
    """Steps per second on this machine, on random data: every method, or those named."""
    from bcl.cli import speed_command

    speed_command.command(benchmark, methods or [], members, device, precision, repeats, tasks, json_)


@app.command()
def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="[default: DIR/report.html]")] = None,
    figures: Annotated[Path | None, typer.Option("--figures", help="Write the figures here, as SVG and PDF.")] = None,
    tables: Annotated[Path | None, typer.Option("--tables", help="For the tables [default: DIR/tables].")] = None,
    json_: Json = False,
) -> None:
    """Tables and figures of the runs in a directory, as one page; of a suite, against the published figures."""
    from bcl.report.read import read_study
    from bcl.report.summary import as_json

    study = read_study(directory)
    for note in (*study.notes, *study.problems):
        print(f"bcl: {note}", file=sys.stderr)
    if json_:
        print(json.dumps(as_json(study.results, study.labels, study.problems)))
        return
    from bcl.report.page import write_report

    page = output or directory / "report.html"
    for path in write_report(study, page, tables or directory / "tables"):
        print(f"{'report' if path == page else 'table'}: {path}", file=sys.stderr)
    if figures is not None:
        from bcl.report.figures import save_figures

        for path in save_figures(study, figures):
            print(path)


def _print(results: list[dict[str, Any]], as_json: bool, out: Path) -> None:
    from bcl.report.grouping import from_results
    from bcl.report.summary import as_json as json_object

    if as_json:
        print(json.dumps(json_object(results)))
        return
    from rich.console import Console

    from bcl.report.terminal import table

    Console().print(table(from_results(results)))
    print(f"runs: {out}    page: bcl report {out}", file=sys.stderr)


def _count(name: str, value: int) -> int:
    if value < 1:
        raise InputError(f"{name} must be at least 1, not {value}")
    return value


def main(arguments: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or bool(os.environ.get("BCL_DEBUG"))
    words = [word for word in words if word != "--debug"]
    try:
        code = app(words, prog_name="bcl", standalone_mode=False)
        if code == STOPPED:  # typer's word for a KeyboardInterrupt
            return _fail(_stopped(words), STOPPED)
        return code if isinstance(code, int) else 0
    except UserError as error:
        if debug:
            raise
        return _fail(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if debug or not hasattr(error, "exit_code"):
            if type(error).__name__ in ("Abort", "Stopped"):
                return _fail(_stopped(words), STOPPED)
            raise
        return _usage(error, words)
    except KeyboardInterrupt:
        return _fail(_stopped(words), STOPPED)


def _stopped(words: list[str]) -> str:
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "run":
        return "stopped; the same command with --resume goes on"
    return "stopped; the same command goes on" if command in ("demo", "suite", "tune") else "stopped"


def _usage(error: Any, words: list[str]) -> int:
    """A mistake on the command line itself, as one line; a command without words, its help."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message, file=sys.stderr)
        return 2
    if message.startswith("No such command"):
        commands = error.ctx.command.list_commands(error.ctx)  # of the group in which it was looked for
        message = str(unknown("command", next((w for w in words if f"'{w}'" in message), ""), commands))
    return _fail(" ".join(message.split()), 2)


def _fail(message: str, code: int) -> int:
    """One line, whatever a file's name contains that the message quotes."""
    line = "".join(letter if letter.isprintable() else "?" for letter in message)
    print(f"bcl: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
