"""The waits of the tests: what ends them and what doesn't."""

from __future__ import annotations

import subprocess
import sys
from threading import Condition, Event, Thread

import pytest

from tidemill.testing.progress import (
    RetryDelay,
    Stalled,
    changed_to,
    completed,
    ended,
    eventually,
    happened,
    joined,
)

ENDLESS = [sys.executable, "-c", "import time; time.sleep(3600)"]


class Machine:
    def __init__(self) -> None:
        self.now = 0.0
        self.slowness = 1.0
        self.rows = 0

    def patience(self, seconds: float) -> RetryDelay:
        return RetryDelay(lambda: self.rows, seconds, now=lambda: self.now, slowness=lambda: self.slowness)


def test_a_wait_goes_on_while_something_moves_and_ends_when_nothing_does() -> None:
    machine = Machine()
    patience = machine.patience(60)
    for rows in range(1, 20):
        machine.now, machine.rows = 59.0 * rows, rows
        patience.check()
    machine.now += 59.0
    patience.check()
    machine.now += 1.0
    with pytest.raises(Stalled, match="nothing has moved for 60 s: 19"):
        patience.check()


def test_a_second_of_a_loaded_machine_counts_less() -> None:
    machine = Machine()
    patience = machine.patience(60)
    machine.slowness = 15.0
    for _ in range(14):
        machine.now += 60.0
        patience.check()
    machine.now += 60.0
    with pytest.raises(Stalled):
        patience.check()


def test_what_has_come_is_returned_at_once() -> None:
    assert eventually(lambda: "found", 0.0) == "found"
    event, changed = Event(), Condition()
    event.set()
    happened(event)
    with changed:
        changed_to(changed, event.is_set)
    thread = Thread(target=event.wait)
    thread.start()
    joined(thread)


def test_what_never_comes_is_told_and_a_command_killed() -> None:
    with pytest.raises(Stalled):
        eventually(lambda: None, 0.0)
    with pytest.raises(Stalled):
        completed(ENDLESS, 0.0)
    with subprocess.Popen(ENDLESS) as process:
        with pytest.raises(Stalled):
            ended(process, 0.0)
        process.kill()


def test_a_command_s_end_comes_with_its_output() -> None:
    done = completed([sys.executable, "-c", "print('x' * 100_000); raise SystemExit(3)"])
    assert (done.returncode, len(done.stdout), done.stderr) == (3, 100_001, "")
