"""Downloads: checked, resumed, and one line where there is no network. The public home is a server of this test."""

import builtins
import hashlib
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from data_makers import cifar_files, snapshot, truth, write

from bcl.cli import main
from bcl.data import cache, fetch
from bcl.data.sets import SETS, Origin

pytest.importorskip("pooch", reason="downloads need pooch")


class Home(ThreadingHTTPServer):
    """Serves one file; `breaks` connections end halfway."""

    def __init__(self, content):
        self.content, self.breaks, self.ranges, self.answer, self.resumes = content, 0, [], 200, True
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        home = self.server
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1]) if home.resumes else 0
        home.ranges.append(start)
        if home.answer != 200:
            self.send_error(home.answer)
            return
        rest = home.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if home.breaks:
            home.breaks -= 1
            rest = rest[: len(rest) // 2]
        self.wfile.write(rest)

    def log_message(self, *_):
        pass


@pytest.fixture
def home(cache_root, tmp_path, monkeypatch):
    files = cifar_files("cifar10", "binary", truth((3, 32, 32)))
    content = write(files, tmp_path / "cifar-10-binary", "tar").read_bytes()
    server = Home(content)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    origin = Origin(f"http://127.0.0.1:{server.server_port}/cifar.tar.gz", "md5:" + hashlib.md5(content).hexdigest())
    monkeypatch.setitem(SETS, "cifar10", replace(SETS["cifar10"], origins=(origin,)))
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    return error


def test_a_download_is_imported_and_removed(home, cache_root, capsys):
    assert main(["data", "fetch", "cifar10"]) == 0
    assert cache.need("cifar10")["source"].startswith("http://127.0.0.1")
    assert cache.verify("cifar10") == 4
    assert [p.name for p in cache_root.iterdir()] == ["cifar10"]


@pytest.mark.parametrize("resumes", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(home, cache_root, capsys, monkeypatch, resumes):
    monkeypatch.setattr(fetch, "CHUNK", 1)
    home.breaks, home.resumes = 1, resumes
    assert main(["data", "fetch", "cifar10"]) == 2
    assert "goes on where it stopped" in one_line(capsys)
    assert cache.manifest("cifar10") is None
    assert main(["data", "fetch", "cifar10"]) == 0
    assert home.ranges == [0, len(home.content) // 2 if resumes else 0]
    assert cache.verify("cifar10") == 4


def test_a_wrong_checksum_is_refused(home, cache_root, capsys):
    home.content = home.content[:-1] + b"x"
    assert main(["data", "fetch", "cifar10"]) == 2
    assert "does not match its checksum" in one_line(capsys)
    assert snapshot(cache_root) == {}


def test_a_file_that_has_moved(home, cache_root, capsys):
    home.answer = 404
    assert main(["data", "fetch", "cifar10"]) == 2
    error = one_line(capsys)
    assert "answered 404" in error
    assert "bcl data import cifar10 PATH" in error
    assert snapshot(cache_root) == {}


def test_without_a_network(home, cache_root, capsys):
    home.shutdown()
    home.server_close()
    assert main(["data", "fetch", "cifar10"]) == 2
    error = one_line(capsys)
    assert "cannot reach 127.0.0.1 (no network?)" in error
    assert "bcl data import cifar10 PATH" in error
    assert snapshot(cache_root) == {}


def test_what_has_no_public_home(cache_root, capsys):
    assert main(["data", "fetch", "miniimagenet"]) == 2
    assert "bcl data import miniimagenet PATH" in one_line(capsys)


def test_without_pooch(home, monkeypatch, capsys):
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name == "pooch":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["data", "fetch", "cifar10"]) == 2
    assert "pip install 'bcl[fetch]'" in one_line(capsys)


def test_the_known_checksums_are_whole():
    lengths = {"md5": 32, "sha256": 64}
    for origin in [origin for spec in SETS.values() for origin in spec.origins] + [fetch.RESNET18_ORIGIN]:
        algorithm, _, digest = origin.checksum.partition(":")
        assert len(digest) == lengths[algorithm]
        assert set(digest) <= set("0123456789abcdef")
        assert origin.url.startswith("https://")
