"""Settings of Spark's Python workers, made when they get a copy of a reader, a writer or the data source."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Final

_DESCRIPTORS: Final = Path("/proc/self/fd")
_REUSED: Final = "SPARK_REUSE_WORKER"
"""Environment variable of workers that serve further requests."""

_uses: Final[Counter[str]] = Counter()
"""Number of copies by class, and of data sources that were created here."""


class CopiedToWorkers:
    """Base of objects that Spark pickles in one process and unpickles in workers."""

    def __setstate__(self, state: dict[str, object]) -> None:
        acknowledge()
        self.__dict__.update(state)
        freeze_at_second_use(type(self))


def acknowledge() -> None:
    """Acknowledge received TCP data at once, and further data until the process sends some. Never raises.

    Spark's JVM writes a task's command and then its input. Nagle's algorithm (RFC 896) holds the input until
    the command is acknowledged, which Linux delays by 40 ms if the worker answered its last request quickly
    (tcp(7), TCP_QUICKACK). The reader or writer is unpickled between the two writes. Spark doesn't pass its
    socket on, so this sets the option on all TCP sockets of the process; others reject it.
    """
    if sys.platform != "linux":
        return
    with suppress(ImportError, OSError):
        # A socket object would make its descriptor non-blocking if the process has a default timeout.
        from ctypes import CDLL, byref, c_int, sizeof

        libc, on = CDLL(None), c_int(1)
        for path in _DESCRIPTORS.iterdir():
            libc.setsockopt(int(path.name), socket.IPPROTO_TCP, socket.TCP_QUICKACK, byref(on), sizeof(on))


def freeze_at_second_use(kind: type) -> None:
    """Exclude the worker's objects from garbage collection at the second use of a class.

    A reused worker collects garbage after each request, which takes 15 to 60 ms of CPU time with Arrow
    imported. At the second use of a class its modules are imported, and there is no garbage, as it was just
    collected. Only once for each class: a frozen object is kept if it later becomes garbage in a cycle.
    """
    if _REUSED not in os.environ:
        return
    _uses[kind.__qualname__] += 1
    if _uses[kind.__qualname__] == 2:
        gc.freeze()
