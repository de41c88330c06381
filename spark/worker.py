"""Settings of Spark's Python workers, made when they get a copy of a reader or a writer."""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_DESCRIPTORS: Final = Path("/proc/self/fd")


class CopiedToWorkers:
    """Base of objects that Spark pickles in one process and unpickles in workers."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        acknowledge()
        self.__dict__.update(state)


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
