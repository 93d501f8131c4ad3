"""Hostile and broken input: one clear line, exit code 2, and a cache that is as it was."""

import pickle
import struct
import tracemalloc
import zipfile

import hostile_archives
import hostile_contents
import pytest
from data_makers import snapshot, truth, write, write_idx
from hostile_archives import FIRST, FOLDER, tar_with_a_bomb_for_a_name
from hostile_contents import Calls

from bcl.cli import main
from bcl.data.importing import import_set

CASES = [*hostile_archives.CASES, *hostile_contents.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_hostile_input_is_one_line_and_leaves_the_cache_alone(cache_root, tmp_path, monkeypatch, capsys, case):
    write_idx(tmp_path / "good", truth((1, 28, 28)))
    import_set("mnist", tmp_path / "good")  # something that must not be harmed
    before = snapshot(cache_root)
    monkeypatch.chdir(tmp_path)
    name, path, says = case(tmp_path)
    assert main(["data", "import", name, str(path)]) == 2
    output = capsys.readouterr()
    assert output.err.startswith("bcl: ")
    assert output.err.count("\n") == 1, output.err
    assert says in output.err
    assert output.err.rstrip("\n").isprintable()
    assert output.out == ""
    assert snapshot(cache_root) == before
    assert not (tmp_path / "called").exists()


def test_the_pickle_does_call_when_it_is_let(tmp_path, monkeypatch):
    """So that the test above would see it."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Calls()))
    assert (tmp_path / "called").exists()


def test_a_member_that_lies_is_not_unpacked_whole(cache_root, tmp_path, capsys):
    path = tmp_path / "a.zip"
    size = 123456789
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(FIRST, bytes(size))
        for name, data in list(FOLDER.items())[1:]:
            archive.writestr(name, data)
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", size), struct.pack("<I", 100)))
    tracemalloc.start()
    assert main(["data", "import", "cifar100", str(path)]) == 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert FIRST in capsys.readouterr().err
    assert peak < 30 << 20


def test_what_tar_reads_at_once_is_bounded(cache_root, tmp_path, monkeypatch, capsys):
    """Even in an archive so large that its total would allow it."""
    monkeypatch.setattr("bcl.data.archive.RATIO_LIMIT", 10**9)
    name, path, says = tar_with_a_bomb_for_a_name(tmp_path)
    assert main(["data", "import", name, str(path)]) == 2
    assert says in capsys.readouterr().err


def test_every_member_is_bounded(cache_root, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("bcl.data.archive.MEMBER_LIMIT", 100)
    assert main(["data", "import", "cifar100", str(write(FOLDER, tmp_path / "a", "directory"))]) == 2
    assert "larger than any file of a data set" in capsys.readouterr().err
