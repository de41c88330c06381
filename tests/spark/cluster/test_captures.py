"""Captures on two hosts: what the one can't give any more the other one does, and then the source."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tidemill.errors import Retryable
from tidemill.spark.capture import client

from .copied import Copied
from .runs import configure, started
from .standalone import Cluster, Session, clean_environment

pytestmark = pytest.mark.soak

LARGE = "REPEAT('x', 1000000)"
"""No answer fits into what lies between a capture and a target that waits."""


class Capture(Session):
    """`tidemill capture` on an address of its own."""

    def __init__(self, python: Path, directory: Path, host: str, copied: Copied) -> None:
        directory.mkdir()
        config = configure(directory, copied)
        command = [python, "-m", "tidemill.cli", "capture", config, "--listen", f"{host}:0"]
        super().__init__(command, directory / "log", env=clean_environment(), cwd=directory)
        listens = f"listens on {host}:"
        self.until(lambda: listens in self.log())
        self.address = f"{host}:{self.log().partition(listens)[2].split()[0]}"
        self.until(self._has_begun)

    def _has_begun(self) -> bool:
        try:
            return client.status(self.address).held.base is not None
        except Retryable:
            return False

    def answers(self) -> tuple[int, int]:
        """How many were given, and how many are being given."""
        status = client.status(self.address)
        return status.answered, status.reading


def test_they_are_killed_one_after_the_other(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Capture(python, tmp_path / host, host, copied))
            for host in ("127.0.0.2", "127.0.0.3")
        )
        addresses = json.dumps([first.address, second.address])
        config = configure(tmp_path, copied, "[spark]", f"capture = {addresses}")
        driver = stack.enter_context(started(cluster, python, config, "--partitions", "2"))
        driver.until(copied.is_done)
        with copied.half_done(1, LARGE):
            before, reading = second.answers()
            assert (first.answers()[1], reading) == (1, 1)
            first.kill()
        driver.until(copied.is_done)
        copied.check()
        assert second.answers()[0] == before + 2, "its own part, and what the other one left"
        with copied.half_done(2, LARGE):
            assert second.answers()[1] == 2
            second.kill()
        driver.until(copied.is_done)
        copied.check()
