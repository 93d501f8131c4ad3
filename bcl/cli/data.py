"""`bcl data`: the cache of data sets."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="The cache of data sets: what is there, fetch, import, verify.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="mnist, cifar10, cifar100, cub, miniimagenet or resnet18.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]


@app.command()
def status(json_: Json = False) -> None:
    """What the cache holds."""
    from bcl.data import inventory

    rows = inventory.status()
    if json_:
        print(json.dumps({"cache": str(inventory.root()), "data": rows}))
    else:
        inventory.show(rows)


@app.command("import")
def import_(name: Name, path: Annotated[Path, typer.Argument(metavar="PATH")], json_: Json = False) -> None:
    """Read a data set, or the pretrained weights, from files that you have."""
    with _orderly():
        about = _import(name, path)
    _print(about, json_)


@app.command()
def fetch(name: Name, json_: Json = False) -> None:
    """Download a data set, or the pretrained weights, from its public home, and import it."""
    from bcl.data.fetch import downloaded
    from bcl.data.progress import progress

    with _orderly(), contextlib.ExitStack() as stack:
        with progress(f"downloading {name}") as report:
            path = stack.enter_context(downloaded(name, report))
        about = _import(name, path, _home(name))
    _print(about, json_)


@app.command()
def verify(names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]")] = None, json_: Json = False) -> None:
    """Recompute checksums; of everything in the cache where no name is given."""
    from bcl.data import cache, inventory
    from bcl.data.progress import progress

    checked = {}
    for name in names or inventory.cached_names():
        inventory.check_name(name)
        with progress(f"verifying {name}") as report:
            checked[name] = cache.verify(name, report)
    if json_:
        print(json.dumps({"verified": checked}))
    for name, files in {} if json_ else checked.items():
        print(f"{name}: {files} files match their checksums")
    if not checked and not json_:
        print(f"the cache {cache.root()} is empty")


def _import(name: str, path: Path, source: str = "") -> dict[str, Any]:
    from bcl.data.progress import progress
    from bcl.data.sets import RESNET18

    if name == RESNET18:
        from bcl.nets.pretrained import import_weights

        return import_weights(path, source)
    from bcl.data.importing import import_set

    with progress(f"importing {name}") as report:
        return import_set(name, path, report, source)


def _home(name: str) -> str:
    from bcl.data.sets import RESNET18, RESNET18_ORIGIN, set_spec

    return RESNET18_ORIGIN.url if name == RESNET18 else set_spec(name).origins[0].url


def _print(about: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(about))
        return
    counts = ", ".join(f"{count:,} {what}" for what, count in about["counts"].items())
    resized = f", {about['resized']:,} resized" if about.get("resized") else ""
    print(f"{about['name']}: {counts}{resized}, from {about['source']} ({about['kind']})")


@contextlib.contextmanager
def _orderly() -> Iterator[None]:
    """A polite request to end (SIGTERM) cleans up like Ctrl-C does."""

    def leave(*_: object) -> None:
        raise SystemExit(143)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    except KeyboardInterrupt:
        print("bcl: stopped; the cache is as it was", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)
