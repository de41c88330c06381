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
from .standalone import PATIENCE_SECONDS, Cluster, Session, clean_environment

pytestmark = pytest.mark.soak


class Capture(Session):
    """`tidemill capture` on an address of its own."""

    def __init__(self, python: Path, directory: Path, host: str, copied: Copied) -> None:
        directory.mkdir()
        config = configure(directory, copied, "[capture]", f"wait_seconds = {PATIENCE_SECONDS}.0")
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

    def answered(self) -> int:
        return client.status(self.address).answered


def test_they_are_killed_one_after_the_other(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Capture(python, tmp_path / host, host, copied))
            for host in ("127.0.0.2", "127.0.0.3")
        )
        addresses = json.dumps([first.address, second.address])
        waits = f"capture_wait_seconds = {PATIENCE_SECONDS}.0"
        config = configure(tmp_path, copied, "[spark]", f"capture = {addresses}", waits)
        driver = stack.enter_context(started(cluster, python, config, "--partitions", "2"))
        driver.until(copied.is_done)
        with copied.half_done(1):
            assert first.answered() > 0
            before = second.answered()
            first.kill()
        driver.until(copied.is_done)
        copied.check()
        with copied.half_done(2):
            assert second.answered() >= before + 4, "both parts, of two batches"
            second.kill()
        driver.until(copied.is_done)
        with copied.half_done(3):
            pass
        driver.until(copied.is_done)
        copied.check()
