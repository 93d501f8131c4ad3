"""`bcl data status`: what the cache holds and what it lacks."""

from __future__ import annotations

from typing import Any

from bcl.data import cache
from bcl.data.cache import root
from bcl.data.sets import RESNET18, SETS, how_to_get
from bcl.errors import UserError, unknown

__all__ = ["cached_names", "check_name", "root", "status"]


def cached_names() -> list[str]:
    """The entries that the cache has, the user's own included."""
    own = sorted(f"own/{path.parent.name}" for path in (root() / "own").glob("[!.]*/manifest.json"))
    return [name for name in (*SETS, RESNET18) if (root() / name / cache.MANIFEST).exists()] + own


def check_name(name: str) -> None:
    if name not in SETS and name != RESNET18 and not name.startswith("own/"):
        raise unknown("data set", name, (*SETS, RESNET18))


def status() -> list[dict[str, Any]]:
    rows = []
    for name in dict.fromkeys((*SETS, RESNET18, *cached_names())):
        row: dict[str, Any] = {"name": name, "present": False}
        try:
            about = cache.manifest(name)
        except UserError as error:  # one damaged entry must not hide the others
            rows.append({**row, "problem": str(error)})
            continue
        if about is None:
            rows.append({**row, "hint": how_to_get(name)})
            continue
        files = about["files"]
        row |= {
            "present": True,
            "classes": len(about["classes"]),
            "bytes": sum(int(f["bytes"]) for f in files.values()),
        }
        row |= {key: about.get(key) for key in ("counts", "shape", "kind", "source", "date", "digest")}
        rows.append({**row, "files": {name: file["sha256"] for name, file in files.items()}})
    return rows
