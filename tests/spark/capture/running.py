"""A capture in a process of its own: takes a feed.toml and flags as JSON, prints its port.

Each answer gives `hold_after` rows, one a message, and then waits for ever, if that flag is there.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

from tidemill import config
from tidemill.errors import TidemillError
from tidemill.spark.capture import answer
from tidemill.spark.capture.capture import serve
from tidemill.spark.sections import capture_feed


def main() -> None:
    flags = {"listen": "127.0.0.1:0", "wait_seconds": 120, **json.loads(sys.argv[2])}
    hold(flags.pop("hold_after", None))
    stopping = Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    try:
        options = capture_feed(config.read(Path(sys.argv[1])), flags)
        serve(options, options.capture, stopping, listening=lambda port: print(port, flush=True))
    except TidemillError as error:
        sys.exit(f"tidemill: {error}")


def hold(rows: int | None) -> None:
    if rows is None:
        return
    whole = answer.Answers.stream
    answer.MESSAGE_BYTES = 1

    def held(*arguments: Any) -> Iterator[answer.Message]:
        for number, message in enumerate(whole(*arguments)):
            if number == rows:
                Event().wait()
            yield message

    answer.Answers.stream = held


if __name__ == "__main__":
    main()
