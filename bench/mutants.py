"""Changes one operator, constant or comparison of the code at a time, and runs the tests that should notice.

python bench/mutants.py --count 150 --seed 0            # a sample of all rooms below
python bench/mutants.py --files bcl/memory/ring.py      # all mutants of one file

Prints every mutant and whether it survives: a line that can change without a test failing. The work is done in a copy
of the repository; nothing here is edited. A mutant counts as noticed when a test fails, or when the tests take far
longer than they do on the unchanged code.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("learners", "memory", "streams", "engine", "metrics.py")
SLOW = ("test_captured", "test_time", "test_resume")  # left out: they run for many seconds, on what others cover
EQUATIONS = " ".join(f"tests/learners/test_learner_{name}.py" for name in ("equations", "rivals", "state"))
OWN = " ".join(f"tests/streams/test_{name}.py" for name in ("own_arrays", "own_data", "kinds", "sources"))
TESTS = {  # of a file or a room; the first that fits
    "bcl/learners/": f"{EQUATIONS} tests/learners tests/test_properties.py",
    "bcl/memory/": "tests/memory tests/test_properties_memory.py tests/learners/test_learner_equations.py",
    "bcl/streams/own": OWN,
    "bcl/streams/": "tests/streams tests/test_properties.py",
    "bcl/engine/": "tests/engine",
    "bcl/metrics.py": "tests/test_metrics.py tests/test_properties.py",
}
ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
ARITHMETIC |= {ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
COMPARISONS |= {ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is}


@dataclass(frozen=True)
class Mutant:
    path: Path
    line: int
    what: str
    text: str  # of the whole changed file

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.what}"


def mutants(path: Path) -> Iterator[Mutant]:
    """Every change of one place in a file. Annotations, docstrings and error messages are left alone."""
    source = path.read_text(encoding="utf-8")
    places = len(list(_places(ast.parse(source))))
    for number in range(places):
        tree = ast.parse(source)
        node = list(_places(tree))[number]
        before = ast.unparse(node)
        _change(node)
        yield Mutant(path, node.lineno, f"{before}  ->  {ast.unparse(node)}", ast.unparse(tree))


def _places(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr):
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: it says what holds anyway
            continue
        if isinstance(node, ast.AnnAssign | ast.FunctionDef | ast.arg):
            _forget_types(node)
        if isinstance(node, ast.expr) and _can_change(node):
            yield node
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield from _places(ast.Expression(node.value))
            continue
        yield from _places(node)


def _forget_types(node: ast.AnnAssign | ast.FunctionDef | ast.arg) -> None:
    if isinstance(node, ast.FunctionDef):
        node.returns = None
    elif isinstance(node, ast.arg):
        node.annotation = None


def _can_change(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        text = any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right))
        return type(node.op) in ARITHMETIC and not text
    if isinstance(node, ast.Compare):
        return type(node.ops[0]) in COMPARISONS
    if isinstance(node, ast.Constant):
        return isinstance(node.value, bool) or type(node.value) in (int, float)
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not))


def _change(node: ast.expr) -> None:
    if isinstance(node, ast.BinOp):
        node.op = ARITHMETIC[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()  # the sign, or the negation, is gone


def tests_of(path: Path) -> list[str]:
    """The files of tests that should notice, those that speak of the module first: most mutants end there. Of the many
    tests of learners, no others but those of the equations."""
    name = path.relative_to(ROOT).as_posix()
    places = next(tests for start, tests in TESTS.items() if name.startswith(start)).split()
    files = [file for place in places for file in (sorted((ROOT / place).rglob("test_*.py")) or [ROOT / place])]
    wanted = dict.fromkeys(file for file in files if not file.stem.startswith(SLOW))
    words = {path.stem, path.stem.replace("_", "-"), path.stem.title().replace("_", "")}
    near = [file for file in wanted if any(word in file.read_text(encoding="utf-8") for word in words)]
    far = [ROOT / place for place in EQUATIONS.split()] if name.startswith("bcl/learners/") else list(wanted)
    return [str(file.relative_to(ROOT)) for file in dict.fromkeys([*near, *far])]


def passes(copy: Path, tests: list[str], limit: float) -> tuple[bool, float]:
    """Whether all tests pass within so many seconds, and how many they took."""
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command, cwd=copy, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 1
    return code == 0, time.monotonic() - began


def _not_copied(folder: str, names: list[str]) -> set[str]:
    """Of the repository itself what is not code; the package has a room `runs` of its own."""
    return {"__pycache__", *({".git", ".venv", "runs", "results"} if Path(folder) == ROOT else ())} & set(names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    chosen = [path.resolve() for path in arguments.files] or sorted(
        path
        for room in ROOMS
        for path in ((ROOT / "bcl" / room).rglob("*.py") if "." not in room else [ROOT / "bcl" / room])
    )
    every = [mutant for path in chosen for mutant in mutants(path)]
    sample = every if arguments.files else random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    print(f"{len(sample)} of {len(every)} mutants of {len(chosen)} files", flush=True)
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="bcl-mutants-") as where:
        copy = Path(where) / "bcl"
        shutil.copytree(ROOT, copy, ignore=_not_copied)
        usual: dict[frozenset[str], float] = {}
        for mutant in sorted(sample, key=str):
            tests = tests_of(mutant.path)
            known = frozenset(tests)
            if known not in usual:
                fine, usual[known] = passes(copy, tests, 900)
                if not fine:
                    raise SystemExit(f"the tests of {mutant.path} fail on the unchanged code")
            place = copy / mutant.path.relative_to(ROOT)
            place.write_text(mutant.text, encoding="utf-8")
            survived, _ = passes(copy, tests, 3 * usual[known] + 30)
            shutil.copyfile(mutant.path, place)
            survivors += survived
            print(f"{'survived' if survived else 'noticed'}: {mutant}", flush=True)
    print(f"{len(sample) - survivors} of {len(sample)} mutants were noticed", flush=True)


if __name__ == "__main__":
    main()
