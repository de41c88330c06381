"""Processes of tidemill's commands that start at once: forks of one that has imported everything.

The imports take a second of CPU, and a run of the tests starts hundreds of processes. In every other way a
fork is a process like any: signals, exit status, standard streams, kill -9.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeAlias

CLI: Final = (sys.executable, "-m", "tidemill.cli")
"""The command line of this interpreter's tidemill."""
FAILPOINT: Final = "TIDEMILL_FAILPOINT"
STATUS_BYTES: Final = 64
"""Limit for a message about a process: first its id, then its exit status."""

_QUIET: Final = {"GRPC_VERBOSITY": "ERROR"}
"""Read by gRPC when it is imported."""
_STREAMS: Final = ("stdin", "stdout", "stderr")
_lock: Final = Lock()
_servers: Final[dict[int, socket.socket]] = {}  # by who asks


class Prepared:
    """A fork; has the part of Popen that tests use."""

    def __init__(
        self, module: str, arguments: list[str], env: Mapping[str, str], cwd: str, streams: Sequence[int]
    ) -> None:
        self._status, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.returncode: int | None = None
        wanted = {"module": module, "arguments": arguments, "env": {**_QUIET, **env}, "cwd": cwd}
        request = json.dumps(wanted).encode()
        with theirs, _lock:
            socket.send_fds(_server(), [request], [*streams, theirs.fileno()])
        self.pid = self._receive()

    def _receive(self) -> int:
        received = self._status.recv(STATUS_BYTES)
        if not received:
            raise RuntimeError("the process that commands are forked from is gone")
        return int(received)

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Raises TimeoutExpired."""
        status = self._ended(timeout)
        if status is None:
            raise subprocess.TimeoutExpired("tidemill", timeout or 0)
        return status

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], timeout)[0]:
            self.returncode = self._receive()
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process: TypeAlias = subprocess.Popen[bytes] | Prepared


def start(command: Sequence[str | Path], **options: Any) -> Process:
    """Start a command with Popen's options; `python -m tidemill.…` is forked where they allow it."""
    env: Mapping[str, str] = options.get("env") or os.environ
    alike = all(env.get(name) == os.environ.get(name) for name in {*env, *os.environ} - {FAILPOINT})
    known = options.keys() <= {*_STREAMS, "env", "cwd"} and subprocess.PIPE not in options.values()
    words = [str(word) for word in command]
    is_own = tuple(words[:2]) == CLI[:2] and "".join(words[2:3]).startswith("tidemill.")
    if not is_own or not alike or not known:
        return subprocess.Popen(command, **options)
    with _descriptors(options) as streams:
        cwd = str(options.get("cwd") or Path.cwd())
        return Prepared(words[2], words[3:], env, cwd, streams)


@contextmanager
def _descriptors(options: Mapping[str, Any]) -> Iterator[list[int]]:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        descriptors: list[int] = []
        for own, name in enumerate(_STREAMS):
            target = options.get(name)
            if target is None:
                descriptors.append(own)
            elif target == subprocess.DEVNULL:
                descriptors.append(null)
            elif target == subprocess.STDOUT:
                descriptors.append(descriptors[1])
            else:
                descriptors.append(target if isinstance(target, int) else target.fileno())
        yield descriptors
    finally:
        os.close(null)


def _server() -> socket.socket:
    """Return the way to the process that this one's commands are forked from; it ends with this one."""
    if os.getpid() not in _servers:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        with theirs:
            null = subprocess.DEVNULL
            server = [sys.executable, "-m", "tidemill.testing.prepared_server", str(theirs.fileno())]
            env = {**_QUIET, **os.environ}
            process = subprocess.Popen(server, pass_fds=[theirs.fileno()], stdin=null, stdout=null, env=env)
        atexit.register(_end, process, ours)
        _servers[os.getpid()] = ours
    return _servers[os.getpid()]


def _end(process: subprocess.Popen[bytes], requests: socket.socket) -> None:
    """End the process, which has nobody left to ask it."""
    requests.close()
    process.wait()
