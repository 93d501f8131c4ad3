"""The command line: its commands, and what becomes of errors and signals."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import typer

from bcl import __version__
from bcl.cli.check import check
from bcl.cli.data import app as data_app
from bcl.cli.options import Json, WithNames
from bcl.cli.outlets import deliver, is_of_an_outlet, outlets
from bcl.cli.progress import progress
from bcl.cli.report import report
from bcl.cli.run import demo, run
from bcl.cli.speed import speed
from bcl.cli.suite import app as suite_app
from bcl.cli.tune import tune
from bcl.data import reporting
from bcl.errors import UserError, unknown
from bcl.loading import authors_line, describe

STOPPED = 130  # the exit code after Ctrl-C
UNDELIVERED = "cannot write to standard output"
app = typer.Typer(
    help="Online continual learning: BCL, its rivals, its benchmarks, its tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # or help texts in square brackets vanish
)
for command in (demo, run, tune, speed, check, report):
    app.command(cls=WithNames if command in (run, tune) else None)(command)
app.add_typer(data_app, name="data")
app.add_typer(suite_app, name="suite")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"bcl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback for every error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del debug, version  # --debug is read by main(), wherever it stands on the line


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(metavar="[benchmarks|methods|suites|METHOD]")] = "", json_: Json = False
) -> None:
    """Benchmarks, methods, suites; or one method's hyper-parameters."""
    from bcl.cli import catalogue

    content = catalogue.content(what, brief=not json_)
    if json_:
        print(json.dumps(content))
    else:
        catalogue.show(content)


class _Plainly(logging.Handler):
    """What the rooms below log, as lines on standard error (as it is now: a progress bar may have replaced it)."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on standard error and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or bool(os.environ.get("BCL_DEBUG"))
    words = [word for word in words if word != "--debug"]
    with outlets(), _shown(), _signals() as received:
        code = _outcome(words, debug, received)
        reason = deliver()
        if reason and code == 0:
            code = _fail(f"{UNDELIVERED}: {reason}", 1)
    return 128 + received[0] if code == STOPPED and received else code


def _outcome(words: list[str], debug: bool, received: Sequence[int]) -> int:
    try:
        code = app(words, prog_name="bcl", standalone_mode=False)
        if code == STOPPED:  # typer's word for a KeyboardInterrupt
            return _fail(_stopped(words), STOPPED)
        return code if isinstance(code, int) else 0
    except UserError as error:
        if debug:
            raise
        code = _fail(str(error), 2)
        if error.unclean and sys.argv[1:] == words:
            _leave(code)
        return code
    except Exception as error:
        if is_of_an_outlet(error):
            deliver()
            return 1 if isinstance(error, BrokenPipeError) else _fail(f"{UNDELIVERED}: {error.strerror}", 1)
        if type(error).__name__ in ("Abort", "Stopped"):
            return _fail(_stopped(words), 128 + getattr(error, "signal", signal.SIGINT))
        if not debug and isinstance(error, OSError) and error.filename is not None:
            return _fail(f"{str(error.filename)[:200]}: {error.strerror}", 2)
        if not debug and hasattr(error, "exit_code"):
            return _usage(error, words)
        if not debug and received:  # a library that was being imported made an error of its own of it
            return _fail(_stopped(words), STOPPED)
        if not debug and authors_line(error):
            return _fail(describe(error), 1)
        raise
    except KeyboardInterrupt:
        return _fail(_stopped(words), STOPPED)


@contextmanager
def _shown() -> Iterator[None]:
    """Notes and progress from the rooms below, on standard error."""
    reporting.progress = progress
    log, handler = logging.getLogger("bcl"), _Plainly()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        reporting.progress = reporting.logged


@contextmanager
def _signals() -> Iterator[list[int]]:
    """A request to end (SIGTERM, SIGHUP) saves and cleans up as Ctrl-C does; the numbers of those that came."""
    received: list[int] = []

    def stop(number: int, _: object) -> None:
        received.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    before = {}
    try:
        for name in ("SIGTERM", "SIGHUP", "SIGINT"):
            if hasattr(signal, name) and signal.getsignal(number := getattr(signal, name)) is not signal.SIG_IGN:
                before[number] = signal.signal(number, stop)
    except ValueError:  # not in the main thread
        pass
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(code: int) -> NoReturn:
    """End the process at once: what Ray leaves behind when its cluster dies would crash it on its way out."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _stopped(words: list[str]) -> str:
    """What to do next depends on the command."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command == "data":
        return "stopped; the cache is as it was"
    return "stopped; the same command goes on" if command in ("run", "demo", "suite", "tune") else "stopped"


def _usage(error: Any, words: list[str]) -> int:
    """A mistake on the command line itself, as one line; a command without words, its help."""
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message, file=sys.stderr)
        return 2
    if message.startswith("No such command"):
        commands = error.ctx.command.list_commands(error.ctx)  # of the group in which it was looked for
        message = str(unknown("command", next((w for w in words if f"'{w}'" in message), ""), commands))
    if message.startswith("Missing argument"):
        message = f"{message.rstrip('.')}: see `{error.ctx.command_path} --help`"
    return _fail(" ".join(message.split()), 2)


def _fail(message: str, code: int) -> int:
    """One line, whatever a file's name contains that the message quotes."""
    line = "".join(letter if letter.isprintable() else "?" for letter in message)
    print(f"bcl: {line}", file=sys.stderr)
    return code
