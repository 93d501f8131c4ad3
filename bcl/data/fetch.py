"""Downloads from a data set's public home: with checksum, resumable."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bcl.data import cache
from bcl.data.new_entry import storage_errors
from bcl.data.reporting import Report
from bcl.data.sets import RESNET18, RESNET18_ORIGIN, Origin, set_spec
from bcl.errors import DamagedFileError, InputError, MissingDataError

TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16


@contextlib.contextmanager
def downloaded(name: str, report: Report) -> Iterator[Path]:
    """The files of a data set, in a directory that is removed when they have been used."""
    origins = (RESNET18_ORIGIN,) if name == RESNET18 else set_spec(name).origins
    if not origins:
        home = set_spec(name).home
        raise MissingDataError(f"{name} has no public home to download from ({home}); bcl data import {name} PATH")
    place = cache.root() / "downloads" / name
    with storage_errors():
        place.mkdir(parents=True, exist_ok=True)
    try:
        for origin in origins:
            download(name, origin, place, report)
    finally:
        with contextlib.suppress(OSError):  # leave no directory behind in which nothing arrived
            place.rmdir()
            place.parent.rmdir()
    yield place / origins[0].url.rsplit("/", 1)[-1] if len(origins) == 1 else place
    shutil.rmtree(place, ignore_errors=True)  # not reached, and kept, where the import failed
    with contextlib.suppress(OSError):
        place.parent.rmdir()


def download(name: str, origin: Origin, place: Path, report: Report) -> Path:
    """One file, whole and checked."""
    instead = f"with a copy at hand: bcl data import {name} PATH"
    try:
        import pooch
        import requests
    except ImportError as error:
        raise InputError(f"downloads need pooch: pip install 'bcl[fetch]'; or, {instead}") from error
    pooch.get_logger().setLevel("ERROR")
    file, host = origin.url.rsplit("/", 1)[-1], urlsplit(origin.url).hostname
    part = place / f"{file}.part"
    try:
        pooch.retrieve(origin.url, origin.checksum, file, place, downloader=Resuming(part, report))
    except requests.exceptions.HTTPError as error:
        answer = error.response.status_code if error.response is not None else "an error"
        raise MissingDataError(f"{host} answered {answer} for {origin.url}; {instead}") from error
    except requests.exceptions.RequestException as error:
        if part.exists() and part.stat().st_size:
            again = "the same command goes on where it stopped"
            raise MissingDataError(f"the connection to {host} broke; {again}, or, {instead}") from error
        raise MissingDataError(f"cannot reach {host} (no network?); {instead}") from error
    except ValueError as error:  # what pooch raises for a wrong checksum
        raise DamagedFileError(
            f"what {host} sent as {file} does not match its checksum; try again, or, {instead}"
        ) from error
    except OSError as error:
        with storage_errors():
            raise error
    return place / file


class Resuming:
    """What pooch downloads with: keeps what has arrived, and asks for the rest the next time."""

    def __init__(self, part: Path, report: Report):
        self.part, self.report = part, report

    def __call__(self, url: str, output_file: Any, pooch: Any, check_only: bool = False) -> None:
        import requests

        del pooch, check_only
        have = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Range": f"bytes={have}-", "Accept-Encoding": "identity"}
        with requests.get(url, headers=headers if have else None, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code != 416:  # 416: all of it is here already
                answer.raise_for_status()
                self._receive(answer, have if answer.status_code == 206 else 0)
        os.replace(self.part, output_file)

    def _receive(self, answer: Any, have: int) -> None:
        total = have + int(answer.headers.get("Content-Length") or 0)
        with open(self.part, "ab" if have else "wb") as file:
            for chunk in answer.iter_content(CHUNK):
                file.write(chunk)
                have += len(chunk)
                self.report(have, max(total, have))
