"""The rooms of the package: purpose, files, lines; the table of docs/architecture.md.

python bench/house.py
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "bcl"
ORDER = [
    "errors",
    "names",
    "loading",
    "processes",
    "metrics",
    "data",
    "streams",
    "ops",
    "nets",
    "memory",
    "learners",
    "engine",
    "online",
]
ORDER += ["runs", "schedule", "studies", "report", "cli"]


def row(room: str) -> str:
    folder = PACKAGE / room
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    first = next(path for path in files if path.name in ("__init__.py", f"{room}.py"))
    purpose = (ast.get_docstring(ast.parse(first.read_text(encoding="utf-8"))) or "").splitlines()[0]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    return f"| `{room}{'/' if folder.is_dir() else '.py'}` | {purpose} | {len(files)} | {lines:,} |"


def main() -> None:
    print("| room | purpose | files | lines |\n|---|---|---:|---:|")
    for room in ORDER:
        print(row(room))


if __name__ == "__main__":
    main()
