"""A capture in a process of its own that is killed and started again, always at the same address."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from tidemill.errors import Retryable
from tidemill.spark.capture import client

from ..capture.beds import Running

WAIT_SECONDS: Final = 20


class Captured:
    def __init__(self, directory: Path, source: str) -> None:
        self.directory = directory
        self.config = directory / "feed.toml"
        self.config.write_text(
            f'name = "backlog"\ndata_dir = "{directory / "state"}"\n'
            f'[source]\nurl = "{source}"\ntables = ["shop.*"]\n'
        )
        self.running = Running(self, wait_seconds=WAIT_SECONDS).begun()
        self.kills = self.answered = 0
        """Number of kills, and of requests answered, as far as it was known before them."""

    def note(self) -> None:
        """Add the requests that the running capture has answered."""
        self.answered += client.status(self.running.address).answered

    def kill(self) -> None:
        """Kill it (-9) if it runs."""
        if self.running.process.poll() is None:
            with suppress(Retryable):  # it starts
                self.note()
            self.running.kill()
            self.kills += 1

    def restart(self) -> None:
        """Start it if it was killed."""
        if self.running.process.poll() is not None:
            self.running.__exit__()
            self.running = Running(self, listen=self.running.address, wait_seconds=WAIT_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.running.__exit__()
