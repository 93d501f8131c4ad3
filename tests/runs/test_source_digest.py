"""A run is named after the code that computes it, too."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import bcl
from bcl.learners import method
from bcl.runs import config


def files(name: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the digest of a method's code is taken of."""
    read: set[Path] = set()
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.add(path) or original(path))
    config._imports.cache_clear()
    config.source_digest.__wrapped__(inspect.getfile(method(name)))
    return {path.relative_to(Path(bcl.__file__).parent).as_posix() for path in read}


def test_it_is_all_that_a_result_depends_on_and_no_other_method(monkeypatch: pytest.MonkeyPatch) -> None:
    found = files("bcl-dual", monkeypatch)
    for needed in (
        "learners/bcl.py", "learners/hypergradient.py", "learners/adaptation.py", "learners/released.py",
        "ops/losses.py", "memory/ring.py", "nets/resnet.py", "engine/loop.py",
        "ops/triton/losses.py", "ops/triton/conv.py",
    ):  # fmt: skip
        assert needed in found
    assert not found & {"learners/er.py", "learners/gem.py", "learners/ftml.py"}
    assert "learners/hypergradient.py" not in files("er", monkeypatch)


def test_an_edit_makes_another_digest(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("from bcl.learners.base import Learner\nA = 1\n")
    before = config.source_digest.__wrapped__(str(own))
    own.write_text("from bcl.learners.base import Learner\nA = 2\n")
    assert config.source_digest.__wrapped__(str(own)) != before
