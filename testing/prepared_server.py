"""The process that tidemill's commands are forked from: `python -m … DESCRIPTOR` of its requests."""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from typing import Final

from .. import failpoint

_CLI: Final = "tidemill.cli"
_PRELOADED: Final = (
    _CLI, "tidemill.engine.feed", "tidemill.engine.options", "tidemill.sources.mysql",
    "tidemill.sources.pump", "tidemill.sources.tikv", "tidemill.dialects.mysql.mysql",
    "tidemill.dialects.sqlite.sqlite", "tidemill.sink.sql.opening", "tidemill.sink.sql.parallel.sink",
    "tidemill.sorter.db.sorter",
    "typer._adapters",
)  # fmt: skip
_REQUEST_BYTES: Final = 1 << 17
_DESCRIPTORS: Final = 4


def serve(requests: socket.socket) -> str:
    """Fork for each request, and report ids and ends; return, in a fork, the module to run.

    Ends when there is nobody to ask.
    """
    awake, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's: the tests' process ends this one
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, awake], [], [])
        if awake in ready:
            awake.recv(1024)
            _report_ends(running)
            continue
        request, descriptors, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, _DESCRIPTORS)
        if not request:
            sys.exit()
        *streams, status = descriptors
        pid = os.fork()
        if not pid:
            for one in (requests, awake, wake, *running.values()):
                one.close()
            os.close(status)
            return _become(request, streams)
        for stream in streams:
            os.close(stream)
        running[pid] = socket.socket(fileno=status)
        _report(running[pid], pid)


def _report_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as asked:
            _report(asked, os.waitstatus_to_exitcode(status))


def _report(asked: socket.socket, number: int) -> None:
    with suppress(OSError):  # nobody waits for it any more
        asked.send(str(number).encode())


def _become(request: bytes, streams: list[int]) -> str:
    """Take over what a new process would have been given; return the module that it is to run."""
    wanted = json.loads(request)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    importlib.reload(failpoint)
    sys.argv[1:] = wanted["arguments"]
    return str(wanted["module"])


if __name__ == "__main__":
    for name in _PRELOADED:
        with suppress(ModuleNotFoundError):  # of an extra that isn't installed: `tidemill demo` needs none
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # else the collector of each fork writes to all these pages: 0.3 s of CPU at its end
    wanted = serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(wanted, run_name="__main__", alter_sys=True)
