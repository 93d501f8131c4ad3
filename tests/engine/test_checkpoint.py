"""Saving is whole or not at all; what is damaged is refused, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import bcl
from bcl.engine import digest, read, write_atomically
from bcl.errors import DamagedFileError, InputError, MissingDataError, StorageError


def learner(tasks: int = 3, **hyper: float) -> bcl.Learner:
    setting = bcl.Setting.domain(tasks, 4, (6,), memory=5)
    torch.manual_seed(0)
    return bcl.ER(torch.nn.Linear(6, 4), setting, **hyper)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "learner.safetensors"
    bcl.save(learner(), path, {"note": "a"})
    return path


def test_round_trip(saved: Path) -> None:
    other = learner()
    with torch.no_grad():
        other.net.weight.zero_()
    assert bcl.load(other, saved) == {"note": "a"}
    assert digest(other.state_dict()) == digest(learner().state_dict())


@pytest.mark.parametrize("where", [0, 9, 200, -1])
def test_a_flipped_byte_is_noticed(saved: Path, where: int) -> None:
    data = bytearray(saved.read_bytes())
    data[where] ^= 0xFF
    saved.write_bytes(bytes(data))
    with pytest.raises(DamagedFileError, match="damaged"):
        read(saved)


@pytest.mark.parametrize("length", [0, 4, 100, -1])
def test_a_truncated_file_is_noticed_and_the_learner_is_untouched(saved: Path, length: int) -> None:
    saved.write_bytes(saved.read_bytes()[:length])
    other = learner()
    before = digest(other.state_dict())
    with pytest.raises(DamagedFileError):
        bcl.load(other, saved)
    assert digest(other.state_dict()) == before


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="does not exist"):
        read(tmp_path / "nothing")


def test_another_learner_is_refused(saved: Path) -> None:
    other = learner(tasks=2)
    before = digest(other.state_dict())
    with pytest.raises(InputError, match="another learner"):
        bcl.load(other, saved)
    assert digest(other.state_dict()) == before


def test_a_full_disk_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = saved.read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        write_atomically(saved, b"new")
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == [saved.name], "no temporary file is left"


SPLIT = bcl.Setting.split([[0, 1], [2, 3]], (6,), scenario="class", memory=5)


class Other(torch.nn.Linear):
    pass


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda: bcl.ERACE(torch.nn.Linear(6, 4), SPLIT), "method is ER there and ERACE here"),
        (lambda: bcl.ER(Other(6, 4), SPLIT), "network is Linear there and Other here"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4), replace(SPLIT, scenario="task")), "setting.scenario is class there"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4), replace(SPLIT, classes=((0, 2), (1, 3)))), "setting.classes is"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4), replace(SPLIT, seed=7)), "setting.seed is 0 there and 7 here"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4), SPLIT, lr=0.5), "hyper.lr is 0.1 there and 0.5 here"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4, bias=False), SPLIT), "'net.bias' is in only one"),
        (lambda: bcl.ER(torch.nn.Linear(6, 4).double(), SPLIT), "float32 there and .* float64 here"),
    ],
)
def test_a_file_of_another_learner_is_refused_with_the_difference(
    tmp_path: Path, other: Callable[[], bcl.Learner], difference: str
) -> None:
    path = tmp_path / "learner.safetensors"
    bcl.save(bcl.ER(torch.nn.Linear(6, 4), SPLIT, lr=0.1), path)
    here = other()
    before = digest(here.state_dict())
    with pytest.raises(InputError, match=difference):
        bcl.load(here, path)
    assert digest(here.state_dict()) == before


def test_a_file_of_another_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    bcl.save(learner(), path, {"task": 1}, run="er-seed1")
    with pytest.raises(InputError, match="run is er-seed1 there and er-seed0 here"):
        bcl.load(learner(), path, run="er-seed0")
    assert bcl.load(learner(), path, run="er-seed1") == {"task": 1}


@pytest.mark.parametrize("key", ["about", "kind"])
def test_what_is_said_about_the_state_is_part_of_the_checksum(saved: Path, key: str) -> None:
    with safe_open(saved, "pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    changed = json.dumps({**json.loads(metadata[key]), "task": 3})
    save_file(tensors, saved, {**metadata, key: changed})
    with pytest.raises(DamagedFileError, match="checksum"):
        bcl.load(learner(), saved)


@pytest.mark.parametrize(
    "state", [torch.tensor([3, 0]), torch.tensor([-1, 3]), torch.tensor([0, 0, 0]), torch.tensor([0.0]),
              torch.tensor(0), torch.tensor([], dtype=torch.int64), torch.tensor([1, 0])],
)  # fmt: skip
def test_a_place_that_cannot_be_is_refused_before_anything_changes(saved: Path, state: torch.Tensor) -> None:
    bad = learner()
    bad.get_extra_state = lambda: state  # type: ignore[method-assign]
    bcl.save(bad, saved)
    here = learner()
    with torch.no_grad():
        here.net.weight.zero_()
    before = digest(here.state_dict())
    with pytest.raises(DamagedFileError, match="which of 3 tasks"):
        bcl.load(here, saved)
    assert digest(here.state_dict()) == before


class Fastidious(torch.nn.Linear):
    """Its extra state is set after its weights, and may be refused."""

    version = 1

    def get_extra_state(self) -> torch.Tensor:
        return torch.tensor(self.version)

    def set_extra_state(self, state: torch.Tensor) -> None:
        if state != self.version:
            raise RuntimeError("no")


def test_a_network_that_refuses_in_the_middle_is_as_it_was(tmp_path: Path) -> None:
    there, here = Fastidious(6, 4), Fastidious(6, 4)
    there.version = 2
    bcl.save(bcl.ER(there, SPLIT), tmp_path / "file")
    learner = bcl.ER(here, SPLIT)
    before = digest(learner.state_dict())
    with pytest.raises(InputError, match="cannot be loaded into this learner: no"):
        bcl.load(learner, tmp_path / "file")
    assert digest(learner.state_dict()) == before


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="it is not a file"):
        bcl.save(learner(), tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("name", ["a" * 300, "\0"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    with pytest.raises(StorageError):
        bcl.save(learner(), name)
    with pytest.raises(MissingDataError):
        bcl.load(learner(), name)


def test_a_file_of_a_stream_is_loaded_where_there_are_more_columns(tmp_path: Path) -> None:
    """With the classes of the one and the columns of the other."""
    x, y = torch.randn(60, 6), torch.arange(60) % 3
    learner = bcl.ER(torch.nn.Linear(6, 8), bcl.Setting.stream(0, 6))
    learner.observe(x, y)
    bcl.save(learner, tmp_path / "one")
    again = bcl.ER(torch.nn.Linear(6, 16), bcl.Setting.stream(16, 6))
    bcl.load(again, tmp_path / "one")
    assert (again.setting.classes, again.setting.n_classes) == (((0, 1, 2),), 16)
    torch.testing.assert_close(again.predict(x)[:, :8], learner.predict(x))
    again.observe(x, y + 10)


class Remembers(torch.nn.Linear):
    """Its further state is no tensor."""

    def get_extra_state(self) -> dict[str, int]:
        return {"steps": 3}


def test_what_cannot_be_saved_or_restored_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "one"
    for save, said in (
        (lambda: bcl.save(None, path), "takes a learner or a network first, not NoneType"),
        (lambda: bcl.save(learner(), path, {"a": {1, 2}}), "must be JSON"),
        (lambda: bcl.save(Remembers(2, 2), path), "'_extra_state' is dict"),
    ):
        with pytest.raises(InputError, match=said):
            save()
    assert not path.exists()
    bcl.save(learner(), path, {"a": np.int64(3)})
    assert read(path)[1] == {"a": 3}
    with pytest.raises(InputError, match="a function that makes it, not None"):
        bcl.restore(path, None)
