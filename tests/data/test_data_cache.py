"""The cache: immediate to load, whole or not at all, verifiable."""

import errno
import json
import os
import signal

import numpy as np
import pytest
from data_makers import folder_files, snapshot, truth, write, write_idx

from bcl.cli import main
from bcl.data import cache, new_entry
from bcl.data.importing import import_set
from bcl.errors import DamagedFileError, MissingDataError, StorageError
from bcl.streams import benchmark


@pytest.fixture
def mnist(cache_root, tmp_path):
    write_idx(tmp_path / "mnist", truth((1, 28, 28)))
    import_set("mnist", tmp_path / "mnist")
    return tmp_path / "mnist"


def test_images_are_memory_mapped(mnist):
    data = cache.load("mnist")
    assert isinstance(data.train_x.base, np.memmap)
    assert data.train_x.dtype == np.uint8
    assert data.train_y.dtype == np.int64


def test_a_manifest_says_what_it_is(mnist, cache_root):
    about = json.loads((cache_root / "mnist" / "manifest.json").read_text())
    assert about["source"] == str(mnist)
    assert about["classes"] == ["0", "1", "2"]
    assert about["date"].startswith("20")
    assert set(about["files"]) == {"train_x.npy", "train_y.npy", "test_x.npy", "test_y.npy"}
    assert all(len(entry["sha256"]) == 64 for entry in about["files"].values())


def test_missing_data_says_how_to_get_it(cache_root):
    with pytest.raises(MissingDataError, match=r"bcl data fetch cifar100.*bcl data import cifar100 PATH"):
        benchmark("split-cifar100").stream(0)
    with pytest.raises(MissingDataError) as error:
        benchmark("split-miniimagenet").stream(0)
    assert "bcl data import miniimagenet PATH" in str(error.value)
    assert "fetch" not in str(error.value)


def test_verify_sees_a_changed_byte(mnist, cache_root):
    assert cache.verify("mnist") == 4
    path = cache_root / "mnist" / "test_x.npy"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFileError, match=r"test_x.npy does not match its checksum.*import mnist again"):
        cache.verify("mnist")


@pytest.mark.parametrize("damage", ["shorter array", "no array", "not json", "another format", "labels forged"])
def test_a_damaged_entry_is_one_line(mnist, cache_root, damage, capsys):
    where = cache_root / "mnist"
    if damage == "shorter array":
        path = where / "train_x.npy"
        path.write_bytes(path.read_bytes()[:-10])
    elif damage == "no array":
        (where / "train_x.npy").unlink()
    elif damage == "not json":
        (where / "manifest.json").write_text("{")
    elif damage == "another format":
        (where / "manifest.json").write_text('{"format": 99}')
    else:
        path = where / "manifest.json"
        path.write_text(path.read_text().replace('"classes": [', '"classes": ["x", '))
    command = (
        ["data", "verify", "mnist"] if damage == "labels forged" else ["run", "permuted-mnist", "er", "--seed", "0"]
    )
    assert main(command) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "delete it and import mnist again" in error


def flip(path, at=-1):
    """Change one byte. The time stays what it was: that of the file system may be too coarse to tell."""
    data, status = bytearray(path.read_bytes()), path.stat()
    data[at] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


@pytest.mark.parametrize("file", ["train_x.npy", "test_y.npy"])
@pytest.mark.parametrize("at", [-1, 7, 20])  # a value, the version in the header, the description in the header
def test_a_run_sees_a_changed_byte_at_its_start(mnist, cache_root, capsys, tmp_path, file, at):
    benchmark("permuted-mnist").stream(0)
    flip(cache_root / "mnist" / file, at)
    words = ["run", "permuted-mnist", "er", "--seed", "0", "--out", str(tmp_path / "runs"), "--device", "cpu"]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"{file} does not match its checksum); delete it and import mnist again" in error


def test_what_was_checked_is_not_read_again(mnist, cache_root, monkeypatch):
    real, read = cache.sha256, []
    monkeypatch.setattr(cache, "sha256", lambda path, *report: read.append(path.name) or real(path, *report))
    cache.load("mnist")
    assert read == []  # the import has just written the checksums
    flip(cache_root / "mnist" / "test_x.npy")
    flip(cache_root / "mnist" / "test_x.npy")  # as it was, but for its time
    cache.load("mnist")
    cache.load("mnist")
    assert read == ["test_x.npy"]
    (cache_root / "mnist" / "verified.json").write_text("[")
    cache.load("mnist")
    cache.load("mnist")
    assert sorted(read[1:]) == ["test_x.npy", "test_y.npy", "train_x.npy", "train_y.npy"]
    assert cache.verify("mnist") == 4  # which always reads
    assert len(read) == 9


def test_a_new_manifest_needs_a_new_check(mnist, cache_root):
    """What was found intact is remembered together with the checksum that it had."""
    about = json.loads((cache_root / "mnist" / "manifest.json").read_text())
    about["files"]["test_x.npy"]["sha256"] = "0" * 64
    about["digest"] = cache.content_digest(about)
    (cache_root / "mnist" / "manifest.json").write_text(json.dumps(about))
    with pytest.raises(DamagedFileError, match=r"test_x.npy does not match its checksum"):
        cache.load("mnist")


def test_a_cache_that_cannot_be_written_to_is_read_all_the_same(mnist, cache_root, monkeypatch):
    (cache_root / "mnist" / "verified.json").unlink()

    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(cache, "remember", refuse)
    assert len(cache.load("mnist").train_y) == 12


def test_a_damaged_header_is_one_line(mnist, cache_root):
    """Even where the check before has passed."""
    (cache_root / "mnist" / "train_x.npy").write_bytes(b"\x93NUMPY\x01\0\x10\0{'descr': ((((((")
    with pytest.raises(DamagedFileError, match=r"train_x.npy: .*delete it and import mnist again"):
        cache.array("mnist", "train_x")


def test_an_entry_of_own_data_that_is_missing(cache_root, capsys):
    assert main(["data", "verify", "own/npz-0"]) == 2
    assert "a run on its folder:PATH or npz:FILE reads it again" in capsys.readouterr().err


def test_another_import_replaces_the_first(mnist, cache_root, tmp_path):
    before = cache.need("mnist")["digest"]
    old = cache.load("mnist").train_x
    kept = old.copy()
    write_idx(tmp_path / "other", truth((1, 28, 28), seed=1))
    import_set("mnist", tmp_path / "other")
    assert cache.need("mnist")["digest"] != before
    assert np.array_equal(old, kept)  # who has it open goes on with what they have
    assert sorted(p.name for p in cache_root.iterdir()) == ["mnist"]


class Full:
    """A disk that is full after some bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(data)

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("where", ["write", "fsync", "rename"])
def test_a_full_disk_leaves_the_cache_as_it_was(mnist, cache_root, tmp_path, monkeypatch, capsys, where):
    before = snapshot(cache_root)

    def refuse(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "write":
        monkeypatch.setattr("builtins.open", _full_open(open))
    elif where == "fsync":
        monkeypatch.setattr(new_entry.os, "fsync", refuse)
    else:
        monkeypatch.setattr(new_entry.NewEntry, "_replace", refuse)
    assert main(["data", "import", "mnist", str(mnist)]) == 2
    monkeypatch.undo()
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "No space left on device" in error
    assert "BCL_DATA" in error
    assert snapshot(cache_root) == before


def _full_open(real):
    def opened(path, mode="r", *arguments, **options):
        file = real(path, mode, *arguments, **options)
        return Full(file, 2000) if mode == "wb" and str(path).endswith(".npy") else file

    return opened


def test_a_disk_without_room_is_noticed_at_once(cache_root, tmp_path, monkeypatch):
    write_idx(tmp_path / "mnist", truth((1, 28, 28)))
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr(new_entry.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StorageError, match="free some space or set BCL_DATA"):
        import_set("mnist", tmp_path / "mnist")
    assert snapshot(cache_root) == {}


def test_a_cache_that_cannot_be_made(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BCL_DATA", str(tmp_path / "file" / "cache"))
    (tmp_path / "weights.pth").write_bytes(b"")
    write_idx(tmp_path / "mnist", truth((1, 28, 28)))
    assert main(["data", "import", "mnist", str(tmp_path / "mnist")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_interrupted_import_leaves_nothing(mnist, cache_root, tmp_path, capsys):
    before = snapshot(cache_root)
    path = write(folder_files(truth((3, 32, 32))), tmp_path / "images", "zip")

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_set("cifar100", path, interrupt)
    assert snapshot(cache_root) == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_an_import_and_leaves_nothing(mnist, cache_root, tmp_path, monkeypatch, capsys, number, code):
    before = snapshot(cache_root)
    monkeypatch.setattr(new_entry.ArrayWriter, "write", lambda *_: os.kill(os.getpid(), number))
    try:
        assert main(["data", "import", "mnist", str(mnist)]) == code
    except SystemExit as end:
        assert end.code == code  # noqa: PT017
    assert snapshot(cache_root) == before


def test_a_damaged_entry_hides_no_other(mnist, cache_root, capsys):
    (cache_root / "mnist" / "manifest.json").write_text("{")
    assert main(["list", "benchmarks", "--json"]) == 0
    rows = {row["name"]: row["data"] for row in json.loads(capsys.readouterr().out)["benchmarks"]}
    assert (rows["permuted-mnist"], rows["split-cub"]) == ("damaged", "missing")
    assert main(["data", "status", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["data"]}
    assert "is damaged" in rows["mnist"]["problem"]
    assert "hint" in rows["cub"]


def test_a_short_line_cuts_no_number(mnist, cache_root, monkeypatch, capsys):
    """Beside an entry with a long name; the commands below the table stay whole as well."""
    monkeypatch.setenv("COLUMNS", "80")
    text = (cache_root / "mnist" / "manifest.json").read_text()
    about = {**json.loads(text), "counts": {"train": 1_234_567, "test": 60_000}, "shape": [3, 224, 224]}
    (cache_root / "own" / "folder-0123456789abcdef").mkdir(parents=True)
    (cache_root / "own" / "folder-0123456789abcdef" / "manifest.json").write_text(json.dumps(about))
    assert main(["data", "status"]) == 0
    table, hints = capsys.readouterr().out.split("cifar10 is missing: ")
    assert "…" not in table
    assert all(len(line) <= 80 for line in table.splitlines()[1:])  # the first line is the path of the cache
    for cell in ("classes", "1x28x28", "1,234,567", "60,000", "3x224x224", about["date"][:10]):
        assert cell in table
    assert hints.startswith("`bcl data fetch cifar10` downloads it, `bcl data import cifar10 PATH` takes a copy")


def test_what_a_killed_process_left_is_swept(mnist, cache_root, tmp_path):
    host = new_entry.socket.gethostname()
    dead, alive = cache_root / f".writing-{host}-999999999-ab", cache_root / f".writing-{host}-{os.getppid()}-ab"
    for path in (dead, alive):
        path.mkdir()
        (path / "train_x.npy").write_bytes(b"half")
    import_set("mnist", mnist)
    assert not dead.exists()
    assert alive.exists()


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv("BCL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache.sys, "platform", "linux")
    assert cache.root() == tmp_path / "bcl"
    monkeypatch.setenv("BCL_DATA", "~/somewhere")
    assert str(cache.root()).endswith("/somewhere")
    assert "~" not in str(cache.root())
