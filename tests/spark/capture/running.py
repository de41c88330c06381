"""A capture in a process of its own: takes a feed.toml and flags as JSON, prints its port."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from threading import Event

from tidemill import config
from tidemill.errors import TidemillError
from tidemill.spark.capture.capture import serve
from tidemill.spark.capture.options import capture_options


def main() -> None:
    flags = {"listen": "127.0.0.1:0", **json.loads(sys.argv[2])}
    stopping = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    try:
        options, capture = capture_options(config.read(Path(sys.argv[1])), flags)
        serve(options, capture, stopping, listening=lambda port: print(port, flush=True))
    except TidemillError as error:
        sys.exit(f"tidemill: {error}")


if __name__ == "__main__":
    main()
