"""`python -m tidemill.emulator`: a cluster for other processes. It runs until stdin closes or SIGTERM is
received.

Prints one JSON line: {"pd": "127.0.0.1:…", "cluster_id": …}.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..config.schema import docstrings
from ..errors import ConfigError
from .cluster import Cluster
from .options import Options

_FLAGS = ("stores", "pd_members", "pd_port", "tick_seconds")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tidemill.emulator", description=__doc__)
    texts = docstrings(Options)
    for field in _FLAGS:
        default = getattr(Options(), field)
        flag = f"--{field.replace('_', '-')}"
        parser.add_argument(
            flag, type=type(default), default=default, help=f"{texts[field]} Default: %(default)s."
        )
    try:
        started = Cluster(**vars(parser.parse_args(arguments)))
    except ConfigError as error:
        parser.error(str(error))
    with _told_to_end() as told, started as cluster:
        said = {"pd": cluster.pd_address, "cluster_id": cluster.options.cluster_id}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        stdin = sys.stdin.fileno()
        while told not in select.select([told, stdin], [], [])[0] and os.read(stdin, 1 << 16):
            pass


@contextmanager
def _told_to_end() -> Iterator[socket.socket]:
    """A socket that SIGTERM makes readable.

    An exception raised by a handler would be lost when it arrives just before the wait begins.
    """
    told, wake = socket.socketpair()
    wake.setblocking(False)
    with told, wake:
        handler = signal.signal(signal.SIGTERM, lambda *_: None)
        former = signal.set_wakeup_fd(wake.fileno())
        try:
            yield told
        finally:
            signal.set_wakeup_fd(former)
            signal.signal(signal.SIGTERM, handler)


if __name__ == "__main__":
    main()
