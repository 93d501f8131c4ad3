"""The connection to a Ray cluster: made within seconds or refused, and given up when the cluster has died."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

from bcl.errors import InputError, UserError, first_line
from bcl.processes import STOP_SIGNALS, cores

REACHING = 5.0  # seconds in which something must answer at an address
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # of HTTP/2, with no settings
SETTINGS = 4  # the kind of frame with which a server of HTTP/2 begins
BEAT = 2.0  # seconds between two looks at whether the cluster is there
AGAIN = "what is done is kept, and the same command goes on"


class ClusterGone(UserError):
    """The head of the cluster, or our own node of it, has died."""

    unclean = True


@contextlib.contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[Any]:
    """Ray, connected; a cluster of our own ends with us, one that was there stays."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        import ray.exceptions
        import ray.util.scheduling_strategies
    except ImportError:
        raise InputError("--engine ray needs Ray: pip install 'bcl[ray]'") from None
    own = not ray.is_initialized()
    if own:
        if address not in (None, "auto", "local"):
            reach(str(address))
        how = {"address": address} if address else {"num_cpus": workers or cores(), "include_dashboard": False}
        try:
            with _signals_kept():
                ray.init(log_to_driver=False, logging_level="ERROR", **how)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(f"cannot connect to Ray at {address or 'this machine'}: {first_line(error)}") from error
    try:
        yield ray
    except ClusterGone:
        atexit.unregister(ray.shutdown)  # it would wait for what is gone, and end the process without a word
        raise
    except BaseException:
        _end(ray, own)
        raise
    _end(ray, own)


def _end(ray: Any, own: bool) -> None:
    if own:
        ray.shutdown()


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Within, Ray may put its own handlers of signals in the place of ours; after it ours are there again."""
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    yield
    if threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, handler)


class Pulse:
    """Whether the processes that a driver cannot do without still listen. Ray itself waits a minute for a head that has
    died, and then ends the driver without a word to Python."""

    def __init__(self, ray: Any):
        here = ray.get_runtime_context()
        host, _, port = str(here.gcs_address).rpartition(":")
        self.addresses = [(host, int(port))]
        for node in ray.nodes():
            if node["NodeID"] == here.get_node_id():
                self.addresses.append((node["NodeManagerAddress"], node["NodeManagerPort"]))
        self.felt = time.monotonic()

    def feel(self) -> None:
        """Raise ClusterGone where one of them does not answer; looked at now and then."""
        if time.monotonic() - self.felt >= BEAT:
            for host, port in self.addresses:
                if not _listens(host, port):
                    raise ClusterGone(f"the Ray cluster is gone: nothing answers at {host}:{port}; {AGAIN}")
            self.felt = time.monotonic()


def _listens(host: str, port: int) -> bool:
    for _ in range(3):
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), timeout=REACHING).close()
            return True
        time.sleep(BEAT / 4)
    return False


def reach(address: str) -> None:
    """Refuse within seconds an address at which nothing listens, or something that is not Ray: Ray would try for
    minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"--address is HOST:PORT of a Ray cluster, or auto, not '{address}'")
    hint = "`ray start --head` prints the address"
    try:
        connection = socket.create_connection((host.strip("[]"), int(port)), timeout=REACHING)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise InputError(f"nothing answers at {address}: {reason}; {hint}") from error
    with connection:
        if not _encrypted() and not _speaks_http2(connection):
            raise InputError(f"what listens at {address} is not Ray; {hint}")


def _speaks_http2(connection: socket.socket) -> bool:
    """Whether a server answers as Ray's do: a frame has nine bytes ahead, the fourth says of what kind it is."""
    answer, end = b"", time.monotonic() + REACHING
    with contextlib.suppress(OSError):
        connection.sendall(GREETING)
        while len(answer) < 9 and time.monotonic() < end:
            more = connection.recv(9 - len(answer))
            if not more:
                break
            answer += more
    return len(answer) == 9 and answer[3] == SETTINGS and answer[5:] == bytes(4)


def _encrypted() -> bool:
    """Whether Ray is told to use TLS: nobody answers a greeting in plain text there."""
    return os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")
