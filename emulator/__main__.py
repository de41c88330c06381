"""`python -m tidemill.emulator`: a cluster for other processes. It runs until stdin closes or SIGTERM is
received.

Prints one JSON line: {"pd": "127.0.0.1:…", "cluster_id": …}.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys

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
    signal.signal(signal.SIGTERM, _leave)
    with Cluster(
        chosen.stores,
        pd_members=chosen.pd_members,
        pd_port=chosen.port,
        tick_seconds=chosen.tick_seconds,
    ) as cluster:
        said = {"pd": cluster.pd_address, "cluster_id": cluster.options.cluster_id}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        while sys.stdin.read(1 << 16):
            pass


def _leave(_signal: int, _frame: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    main()
