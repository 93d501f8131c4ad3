"""The run store: a directory per run, written whole or not at all, readable by people."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from torch import Tensor

from bcl.engine.checkpoint import digest, read, write_atomically
from bcl.engine.position import LogEntry
from bcl.errors import DamagedFileError, StorageError
from bcl.runs.config import RunConfig
from bcl.runs.locks import NAME as LOCK
from bcl.runs.locks import Busy, Lock, is_held
from bcl.runs.result import Result, evaluations_table, log_lines, matrix_table, read_result, sealed

FILES = ("config.yaml", "accuracy.csv", "log.jsonl", "weights.safetensors", "result.json")
WITHIN_TASKS = "evaluations.csv"  # of a run that was evaluated there


class RunStore:
    """`<root>/<run id>/` with config.yaml, result.json, accuracy.csv, log.jsonl and, while it runs, a checkpoint;
    evaluations.csv where the run was evaluated within tasks, too.

    error.json says why a run failed; `<root>/journal.jsonl` has a line for every start and end of a run.
    """

    def __init__(self, root: str | os.PathLike[str]):
        self.root = Path(root)

    def prepare(self) -> None:
        """Make sure that the store can be written to, before any work is done."""
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            probe = self.root / f".probe-{os.getpid()}"
            probe.write_bytes(b"bcl")
            probe.unlink()
        except OSError as error:
            reason = error.strerror or str(error)
            raise StorageError(f"cannot write to {self.root}: {reason}; choose another --out DIR") from error

    def directory(self, config: RunConfig) -> Path:
        return self.root / config.id

    def create(self, config: RunConfig) -> Path:
        where = self.directory(config)
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot write to {self.root}: {error.strerror}; choose another --out DIR") from error
        path, text = where / "config.yaml", _config_text(config)
        if not path.is_file() or path.read_bytes() != text:
            write_atomically(path, text)
        return where

    def result(self, config: RunConfig) -> Result | None:
        """The run's result, or None if it is not complete. DamagedFileError where it cannot be trusted."""
        path = self.directory(config) / "result.json"
        return read_result(path) if path.exists() else None

    def weights(self, config: RunConfig) -> dict[str, Tensor]:
        """The network's weights at the end of a complete run, checked against its result."""
        path = self.directory(config) / "weights.safetensors"
        tensors, _ = read(path)
        if digest(tensors) != read_result(path.with_name("result.json"))["weights_sha256"]:
            raise DamagedFileError(f"{path} is not of this result; delete {path.parent} and run again")
        return tensors

    def finish(self, config: RunConfig, content: Mapping[str, Any], log: Sequence[LogEntry]) -> Result:
        """Write the result last: a run is complete when it is there. The checkpoint has then done its work."""
        where = self.create(config)
        table = matrix_table(content["accuracy_matrix"], [entry["after_task"] for entry in log])
        beside = {"accuracy.csv": table, "log.jsonl": log_lines(log)}
        if "evaluations" in content:
            beside[WITHIN_TASKS] = evaluations_table(content["evaluations"], len(content["before"]))
        for name, data in beside.items():
            write_atomically(where / name, data)
        beside["config.yaml"] = _config_text(config)
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in beside.items()}
        result = sealed({**content, "files": digests})
        write_atomically(where / "result.json", json.dumps(result, indent=1).encode())
        (where / "checkpoint.safetensors").unlink(missing_ok=True)
        return result

    def adopt(self, config: RunConfig, files: Mapping[str, bytes]) -> None:
        """Take over a run that was computed elsewhere; its result last, as in `finish`."""
        where = self.create(config)
        for name in sorted(files, key=lambda name: name == "result.json"):
            if name in (*FILES, WITHIN_TASKS):
                write_atomically(where / name, files[name])
        self.note(config, "adopted")

    def state(self, config: RunConfig) -> str:
        """done, running (by a living process), failed, stopped (a checkpoint waits) or missing."""
        where = self.directory(config)
        try:
            if self.result(config) is not None:
                return "done"
        except DamagedFileError:
            return "failed"
        if is_held(where):
            return "running"
        if (where / "error.json").exists():
            return "failed"
        return "stopped" if (where / "checkpoint.safetensors").exists() else "missing"

    def tidy(self, config: RunConfig) -> None:
        """Before a run is tried again: remove its old error, and what a killed process left half written."""
        where = self.directory(config)
        for path in (where / "error.json", *where.glob(".*.*")):
            path.unlink(missing_ok=True)

    def settle(self, config: RunConfig) -> None:
        """Of a complete run: remove what is left where its process was killed just after it wrote the result."""
        where = self.directory(config)
        if (where / "checkpoint.safetensors").exists() or (where / LOCK).exists():
            with contextlib.suppress(Busy, OSError), Lock.acquire(where):
                self.tidy(config)
                (where / "checkpoint.safetensors").unlink(missing_ok=True)

    def fail(self, config: RunConfig, error: BaseException) -> None:
        """Record why a run failed. Its checkpoint stays."""
        where = self.directory(config)
        text = " ".join(str(error).split()) or type(error).__name__
        about = {
            "error": text,
            "kind": type(error).__name__,
            "host": socket.gethostname(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "traceback": "".join(traceback.format_exception(error)).splitlines(),
        }
        with contextlib.suppress(StorageError):  # a full disk may be why it failed
            write_atomically(where / "error.json", json.dumps(about, indent=1).encode())
        self.note(config, "failed", error=text)

    def failure(self, config: RunConfig) -> str | None:
        """The error of a run that failed, as one line."""
        try:
            self.result(config)
            content = json.loads((self.directory(config) / "error.json").read_text(encoding="utf-8"))
            return f"{content['kind']}: {content['error']}"
        except DamagedFileError as error:
            return str(error)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return "its error.json is unreadable"

    def note(self, config: RunConfig, event: str, **more: Any) -> None:
        """One line in the journal, appended in one write: processes that append at once do not mix their lines."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event": event,
            "run": config.id,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            **more,
        }
        with contextlib.suppress(OSError), open(self.root / "journal.jsonl", "ab", buffering=0) as file:
            file.write((json.dumps(line) + "\n").encode())


def _config_text(config: RunConfig) -> bytes:
    return yaml.safe_dump(config.to_json(), sort_keys=False, allow_unicode=True).encode()
