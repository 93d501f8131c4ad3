"""The code that a page of the documentation shows, and a run of it, in order, in a directory and in one process."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

PROGRAMS = "bcl|python|pip|make|podman|docker|tensorboard|pytest|pre-commit|ray|mkdocs|curl"
COMMAND = re.compile(rf"(?:\.venv/bin/)?(?:{PROGRAMS})\s")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)

Step = tuple[str, str, str]  # "write", "python" or "command"; its name, or the command itself; the code


def unfenced(text: str) -> list[str]:
    """Commands that stand outside of fences, where nothing runs them."""
    return [line for line in FENCE.sub("", text).splitlines() if re.match(rf" {{4,}}{COMMAND.pattern}", line)]


def steps(text: str) -> list[Step]:
    """What a reader would do: save what has a name (`# mine.yaml`), run Python, type commands.

    In bash every line is a command; elsewhere a line that begins with a program's name.
    """
    found: list[Step] = []
    typed = {name for _, code in FENCE.findall(text) for name in re.findall(r"^python (\S+\.py)$", code, re.MULTILINE)}
    for number, (language, code) in enumerate(FENCE.findall(text)):
        name = re.match(r"# ([\w-]+\.\w+)", code)
        if language == "python" and not (name and name[1] in typed):  # else a command runs it, and once is enough
            found.append(("python", name[1] if name else f"block_{number}.py", code))
        elif name:
            found.append(("write", name[1], code))
        for line in code.replace("\\\n", " ").splitlines() if language not in ("python", "console") else ():
            command = re.sub(r"(^|\s+)#.*", "", line).strip()
            if command and (language in ("bash", "sh") or COMMAND.match(line)):
                found.append(("command", " ".join(command.split()), ""))
    return found


def run(todo: list[Step], directory: Path) -> dict[str, str]:
    """What each step prints, by its name; one that fails is an error. A process for all: torch is loaded once."""
    file = directory / "steps.json"
    file.write_text(json.dumps(todo), encoding="utf-8")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "BCL_DATA": str(directory / "cache"), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
    words = [sys.executable, __file__, file.name]
    done = subprocess.run(
        words, cwd=directory, env={**os.environ, **own}, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return dict(json.loads(file.read_text(encoding="utf-8")))


def _do(kind: str, name: str, code: str) -> str:
    if kind != "command":
        Path(name).write_text(code, encoding="utf-8")
    if kind == "write":
        return ""
    typed = re.fullmatch(r"python (\S+\.py)", name)
    if kind == "command" and typed:
        kind, name = "python", typed[1]
    if kind == "command" and (not name.startswith("bcl ") or re.search(r"[|&;<>$]", name)):
        words = ["bash", "-e", "-o", "pipefail", "-c", name]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
        said, code_ = done.stdout, done.returncode
    else:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code_ = _here(kind, name)
        said = output.getvalue()
    if code_:
        sys.exit(f"{name}: ended with {code_}\n{said}")
    return said


def _here(kind: str, name: str) -> int:
    if kind == "python":
        runpy.run_path(name, run_name="__main__")
        return 0
    from bcl.cli import main

    return main(shlex.split(name)[1:])


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    if hasattr(os, "sched_setaffinity"):  # with one core, runs share this process and need none of their own
        free = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {free[os.getpid() % len(free)]})
    steps_file = Path(sys.argv[1])
    results = [(step[1], _do(*step)) for step in json.loads(steps_file.read_text(encoding="utf-8"))]
    steps_file.write_text(json.dumps(results), encoding="utf-8")
