"""A run is named after the code that computes it, too: the code, not what is written about it."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from bcl.runs import identity
from bcl.runs.config import RunConfig


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A copy of the package, to be edited."""
    place = tmp_path / "bcl"
    shutil.copytree(identity.HOME, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def digests(home: Path, learner: str = "learners/er.py") -> tuple[str, str]:
    """Of runs on a CPU and on a GPU."""
    identity._file_digest.cache_clear()
    cpu, gpu = (identity.code_digest.__wrapped__(home / learner, on_gpu, home) for on_gpu in (False, True))
    return cpu, gpu


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("name", ["streams/stream.py", "engine/loop.py", "metrics.py", "learners/er.py"])
def test_comments_and_docstrings_make_no_difference(home: Path, name: str) -> None:
    before = digests(home)
    path = home / name
    edit(path, '"""', '"""In other words: ')
    path.write_text("# a comment\n" + path.read_text().replace("\n    return ", "\n\n    # why\n    return ") + "\n\n")
    assert digests(home) == before


def test_a_docstring_of_a_function_and_of_a_class_make_no_difference(home: Path) -> None:
    before = digests(home)
    path = home / "memory" / "own.py"
    path.write_text("class A:\n    def f(self):\n        return 1\n")
    bare = digests(home)
    assert bare != before
    path.write_text(
        "class A:\n    '''What it is.'''\n\n    def f(self):\n        'What it does.'\n        return 1  # one\n"
    )
    assert digests(home) == bare


@pytest.mark.parametrize("room", ["streams", "ops", "nets", "memory", "engine"])
def test_an_edit_in_any_room_that_a_result_depends_on_makes_another_run(home: Path, room: str) -> None:
    before = digests(home)
    with (home / room / "__init__.py").open("a") as file:
        file.write("\nTHE_ORDER_OF_CLASSES = (3, 1, 2)\n")
    assert all(new != old for new, old in zip(digests(home), before, strict=True))


def test_an_edit_of_a_class_order_or_of_a_metric_makes_another_run(home: Path) -> None:
    before = digests(home)
    edit(home / "metrics.py", "np.mean(_matrix(a)[-1])", "np.median(_matrix(a)[-1])")
    between = digests(home)
    assert between[0] != before[0]
    edit(home / "streams" / "benchmark.py", "permutation(", "choice(")
    assert digests(home)[0] != between[0]


def test_an_edit_of_a_kernel_makes_other_runs_on_a_gpu_alone(home: Path) -> None:
    cpu, gpu = digests(home)
    with (home / "ops" / "triton" / "losses.py").open("a") as file:
        file.write("\nBLOCK = 7\n")
    edited = digests(home)
    assert edited[0] == cpu
    assert edited[1] != gpu


def test_other_methods_make_no_difference_and_what_a_method_imports_does(home: Path) -> None:
    er, dual = digests(home), digests(home, "learners/bcl.py")
    (home / "learners" / "gem.py").write_text("A = 1\n")
    assert (digests(home), digests(home, "learners/bcl.py")) == (er, dual)
    (home / "learners" / "hypergradient.py").write_text("A = 1\n")
    assert digests(home) == er
    assert digests(home, "learners/bcl.py") != dual
    (home / "learners" / "base.py").write_text("A = 1\n")
    assert digests(home) != er


def test_a_method_of_ones_own_is_its_file(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("from bcl.learners.base import Learner\nA = 1\n")
    before = digests(home, str(own))
    own.write_text("from bcl.learners.base import Learner\nA = 2\n")
    assert digests(home, str(own)) != before
    own.write_text("from bcl.learners.base import Learner\nA = 1  # one\n")
    assert digests(home, str(own)) == before
    (home / "learners" / "base.py").write_text("A = 1\n")
    assert digests(home, str(own)) != before


def test_the_id_holds_the_code_and_is_the_name_of_a_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    config = RunConfig.resolve("split-digits", "er", 0)
    before = config.id
    monkeypatch.setattr("bcl.runs.config.code_digest", lambda *_: "0" * 64)
    assert config.id != before
    assert config.code == "0" * 12
    monkeypatch.setattr("bcl.learners.method", lambda _: RunConfig)
    strange = RunConfig.from_json({**config.to_json(), "method": "../own.module:Class"})
    assert strange.id.startswith("..-own.module-Class-seed0-")


def test_python_versions_that_read_a_format_otherwise_name_the_same_code() -> None:
    """Python 3.12 ends the format `0{y}` with an empty text that 3.11 does not have."""
    old, new = (ast.parse('f"{x:0{y}} {x}"') for _ in range(2))
    spec = new.body[0].value.values[0].format_spec
    spec.values = [part for part in spec.values if getattr(part, "value", None) != ""] + [ast.Constant("")]
    assert identity._text(new) == identity._text(old)
    assert identity._text(ast.parse('f"{x:1{y}} {x}"')) != identity._text(old)


def test_what_is_the_same_run_has_one_name() -> None:
    """Options of a stream in another order or with other zeros, none of them; a precision that is of GPUs alone."""
    one, *others = (
        RunConfig.resolve(f"split-digits?{options}", "er", 0, precision=precision)
        for options, precision in (
            ("blurry=0.1&drift=90", "fp32"), ("drift=90&blurry=0.10", "fp32"), ("drift=90&blurry=0.1", "tf32"),
        )
    )  # fmt: skip
    assert {other.id for other in others} == {one.id}
    plain = RunConfig.resolve("split-digits", "er", 0).id
    assert RunConfig.resolve("split-digits?", "er", 0).id == plain
    assert RunConfig.resolve("split-digits", "er", 0, precision="bf16").id != plain
