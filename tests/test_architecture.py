"""The rooms of the house: who may import whom, who may print, how long a file may be."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
import torch

from bcl.engine.position import Interrupted

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bcl"
# A room imports only rooms that stand before it.
ORDER: list[str] = runpy.run_path(str(ROOT / "bench" / "house.py"))["ORDER"]
PLACE = {room: place for place, room in enumerate(ORDER)}
LINES = 350

FILES = sorted(PACKAGE.rglob("*.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def dotted(path: Path, root: Path = ROOT) -> tuple[str, ...]:
    """bcl/data/cache.py is ("bcl", "data", "cache"); a package is its directory."""
    parts = path.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imported(path: Path, root: Path = ROOT) -> Iterator[tuple[str, ...]]:
    """Every module of bcl that a file imports, anywhere in it: in functions and under TYPE_CHECKING too."""
    here = dotted(path, root)
    package = here if path.name == "__init__.py" else here[:-1]
    names = {"import_module", "find_spec"}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else ()
            base = (*base, *(node.module or "").split(".")) if node.module else base
            found = [(*base, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in names:
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found = [tuple(text.split(".")) for text in texts]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "bcl":
            found = [("bcl", node.attr)]
        else:
            continue
        yield from (name for name in found if name[0] == "bcl")


def room(name: tuple[str, ...], homes: dict[str, str]) -> str:
    """The room of a module; `from bcl import X` counts as the room that X lives in, the bare package as none."""
    if len(name) == 1 or name[1].startswith("__"):  # such as bcl.__version__
        return ""
    return homes[name[1]].split(".")[1] if name[1] in homes else name[1]


def lazy_names() -> dict[str, str]:
    """What `bcl/__init__.py` hands on, and from where."""
    import bcl

    return bcl._HOMES


def wrong_imports(root: Path = ROOT) -> set[tuple[str, str]]:
    homes, found = lazy_names(), set()
    for path in sorted((root / "bcl").rglob("*.py")):
        here = dotted(path, root)
        if len(here) == 1 or here[1] == "__main__":
            continue
        for name in imported(path, root):
            there = room(name, homes)
            if there and there != here[1] and PLACE[there] >= PLACE[here[1]]:
                found.add((".".join(here), ".".join(name)))
    return found


def test_every_room_has_a_place_in_the_order() -> None:
    rooms = {
        path.stem if path.is_file() else path.name
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or any(path.glob("*.py"))
    }
    assert rooms - {"__init__", "__main__"} == set(PLACE)


def test_the_documentation_lists_the_rooms_in_their_order() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, re.MULTILINE) == ORDER
    picture = text.split("```")[1]
    assert [word for word in re.findall(r"\w+", picture) if word in ORDER] == ORDER


def test_imports_go_one_way() -> None:
    assert wrong_imports() == set()


@pytest.mark.parametrize(
    "line",
    [
        "from bcl.cli import main",
        "from bcl import cli",
        "import bcl.cli.main",
        "from ..cli import main",
        "def f():\n    from bcl.streams import Setting",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bcl.streams import Setting",
        "from bcl import Setting",
        "import bcl\nbcl.Setting",
        "import importlib\nimportlib.import_module('bcl.streams')",
    ],
)
def test_an_import_against_the_order_is_seen(tmp_path: Path, line: str) -> None:
    (tmp_path / "bcl" / "data").mkdir(parents=True)
    (tmp_path / "bcl" / "data" / "bad.py").write_text(line)
    assert len(wrong_imports(tmp_path)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "from bcl import __version__",
        "import bcl\nbcl.__version__",
        "from bcl.errors import UserError",
        "from . import cache",
    ],
)
def test_an_import_along_the_order_is_allowed(tmp_path: Path, line: str) -> None:
    (tmp_path / "bcl" / "data").mkdir(parents=True)
    (tmp_path / "bcl" / "data" / "good.py").write_text(line)
    assert wrong_imports(tmp_path) == set()


def prints(path: Path) -> bool:
    """A call of print, or of the method print of some console."""
    calls = (node.func for node in ast.walk(tree(path)) if isinstance(node, ast.Call))
    return any(getattr(call, "id", getattr(call, "attr", "")) == "print" for call in calls)


def test_only_the_command_line_prints() -> None:
    found = {".".join(dotted(path)) for path in FILES if prints(path)}
    assert {name for name in found if name.split(".")[1] not in ("cli", "__main__")} == set()


def test_files_are_short() -> None:
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: length for name, length in lengths.items() if length > LINES} == {}


def test_no_test_module_imports_another() -> None:
    """What tests share is in tests/helpers."""
    pattern = re.compile(r"^\s*(?:from|import) test_\w+", re.MULTILINE)
    tests = [path for path in (ROOT / "tests").rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))]
    assert tests == []


def test_a_training_step_passes_the_files_that_the_page_lists() -> None:
    import bcl
    from bcl.engine import Loop, Member

    stream = bcl.benchmark("split-digits").stream(0, tasks=2, samples=30)
    member = Member(bcl.method("er")(bcl.build("mlp", stream.setting), stream.setting), stream)
    seen: set[str] = set()
    steps = iter(range(100))

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            seen.add(Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix())

    def stop() -> bool:  # asked between two steps, and after the third, a task's last: the fifth one is looked at
        asked = next(steps)
        sys.setprofile(look if asked == 5 else None)
        return asked == 6

    try:
        with pytest.raises(Interrupted):
            Loop([member], torch.device("cpu"), stop=stop).run()
    finally:
        sys.setprofile(None)
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## One training step")[2]
    listed = re.findall(r"^\| `(\w+/\w+\.py)` \|", page, re.MULTILINE)
    assert len(listed) == 10
    assert seen == {*listed, "nets/mlp.py", "ops/layers.py", "learners/base.py", "ops/dispatch.py"}


def test_a_prompt_can_complete_the_names_of_the_package() -> None:
    import bcl

    assert {"OnlineClassifier", "ER", "load", "__version__"} <= {*dir(bcl)}
