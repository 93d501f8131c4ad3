"""`bcl data`: the cache of data sets."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from bcl.cli.options import Json

app = typer.Typer(help="The cache of data sets: what is there, fetch, import, verify.", no_args_is_help=True)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="mnist, cifar10, cifar100, cub, tiny-imagenet, miniimagenet or resnet18.")
]


@app.command()
def status(json_: Json = False) -> None:
    """What the cache holds."""
    from bcl.data import inventory

    rows = inventory.status()
    if json_:
        print(json.dumps({"cache": str(inventory.root()), "data": rows}))
    else:
        _show(rows)


@app.command("import")
def import_(name: Name, path: Annotated[Path, typer.Argument(metavar="PATH")], json_: Json = False) -> None:
    """Read a data set, or pretrained weights, from files of yours."""
    _print(_import(name, path), json_)


@app.command()
def fetch(name: Name, json_: Json = False) -> None:
    """Download a data set, or pretrained weights, and import it. From its public home."""
    from bcl.cli.progress import progress
    from bcl.data.fetch import downloaded

    with ExitStack() as stack:
        with progress(f"downloading {name}") as report:
            path = stack.enter_context(downloaded(name, report))
        about = _import(name, path, _home(name))
    _print(about, json_)


@app.command()
def verify(names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]")] = None, json_: Json = False) -> None:
    """Recompute checksums. Of everything in the cache, where no name is given."""
    from bcl.cli.progress import progress
    from bcl.data import cache, inventory

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
    from bcl.cli.progress import progress
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


def _show(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from bcl.data.cache import root

    table = Table(box=None, header_style="dim", pad_edge=False, collapse_padding=True)
    for column in ("name", "train", "test", "classes", "shape", "MiB", "from", "date"):
        right = column in ("train", "test", "classes", "MiB")
        wraps = column in ("name", "from")  # where the line is short, numbers, shapes and dates stay whole
        table.add_column(column, justify="right" if right else "left", no_wrap=not wraps, overflow="fold")
    for row in rows:
        if not row["present"]:
            table.add_row(row["name"], "-", "-", "-", "-", "-", "damaged" if "problem" in row else "missing", "")
            continue
        counts = row["counts"]
        table.add_row(
            row["name"],
            *(f"{counts[split]:,}" if split in counts else "" for split in ("train", "test")),
            str(row["classes"] or ""),
            "x".join(map(str, row["shape"])),
            f"{row['bytes'] / 2**20:,.0f}",
            row["kind"],
            row["date"][:10],
        )
    console = Console()
    plain: dict[str, Any] = {"highlight": False, "markup": False, "soft_wrap": True}  # paths and commands stay whole
    console.print(f"cache: {root()}", **plain)
    console.print(table)
    for row in rows:
        if not row["present"]:
            console.print(row.get("problem") or f"{row['name']} is missing: {row['hint']}", **plain)
