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

from .cluster import Cluster


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="tidemill.emulator", description=__doc__)
    parser.add_argument("--stores", type=int, default=3, help="number of TiKV stores (default: %(default)s)")
    parser.add_argument(
        "--pd-members", type=int, default=1, help="number of PD servers (default: %(default)s)"
    )
    parser.add_argument(
        "--port", type=int, default=0, help="port of the first PD server; 0 (default): any free port"
    )
    parser.add_argument(
        "--tick-seconds",
        type=float,
        default=0.2,
        help="interval between resolved ts, in seconds (default: %(default)s)",
    )
    chosen = parser.parse_args(arguments)
    with (
        _told_to_end() as told,
        Cluster(
            chosen.stores,
            pd_members=chosen.pd_members,
            pd_port=chosen.port,
            tick_seconds=chosen.tick_seconds,
        ) as cluster,
    ):
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
