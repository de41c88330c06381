"""Child processes: how they end, and that they do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidemill.testing.child import Child

ENDLESS = [sys.executable, "-c", "import time; time.sleep(3600)"]
REACHING = (
    "from tidemill.failpoint import reach; reach('sink.committed'); print('once'); reach('sink.committed')"
)


def test_a_failpoint_kills_it_at_the_pass_that_is_named(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Child([sys.executable, "-u", "-c", REACHING], log, failpoint="sink.committed:2") as child:
        child.dies()
    assert log.read_text() == "once\n"
    with Child([sys.executable, "-c", REACHING], log) as child, pytest.raises(AssertionError, match="once"):
        child.dies()


def test_it_ends_with_its_context(tmp_path: Path) -> None:
    with Child(ENDLESS) as child:
        assert child.wait_until(lambda: child.process.pid) == child.process.pid
    assert child.process.returncode == -9


def test_waiting_for_what_it_does_ends_with_it(tmp_path: Path) -> None:
    with (
        Child([sys.executable, "-c", "print('gone')"], tmp_path / "log") as child,
        pytest.raises(AssertionError, match="gone"),
    ):
        child.wait_until(lambda: False)
