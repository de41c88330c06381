"""Promises of a single machine hold on several."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tidemill.testing.progress import ended, eventually

from .copied import Copied
from .pythons import make_python
from .runs import configure, refused, started
from .standalone import EXECUTOR, Cluster, Daemon


@pytest.mark.soak
def test_rows_are_changed_once_while_executors_and_hosts_are_killed(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    config = configure(tmp_path, copied)
    first, second = cluster.hosts
    with started(cluster, python, config, "--partitions", "2") as driver:
        driver.until(lambda: copied.is_done() and all(host.executors() for host in cluster.hosts))
        with copied.half_done(1):
            (before,) = second.executors()
            second.signal(signal.SIGKILL, EXECUTOR)
            driver.until(lambda: _others(second, before))
        driver.until(copied.is_done)
        copied.check()
        with copied.half_done(2):
            second.kill()
        driver.until(copied.is_done)
        assert len(first.executors()) == 1
        driver.process.send_signal(signal.SIGTERM)
        assert ended(driver.process) == 0, driver.log()
    cluster.start(1)
    copied.check()
    assert "Traceback" not in driver.log()
    eventually(lambda: not first.executors())


@pytest.mark.soak
def test_a_host_that_wakes_up_when_its_task_has_moved_changes_nothing_twice(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    """Its Python process, stopped in the middle of a transaction, goes on with it."""
    soon = ("network.timeout=10s", "network.timeoutInterval=1s", "executor.heartbeatInterval=1s")
    config = configure(tmp_path, copied)
    settings = [f"--config=spark.{setting}" for setting in soon]
    with started(cluster, python, config, "--partitions", "2", *settings) as driver:
        driver.until(lambda: copied.is_done() and all(host.executors() for host in cluster.hosts))
        with copied.half_done(1):
            cluster.hosts[1].signal(signal.SIGSTOP)
        try:
            driver.until(copied.waits_for_its_turn)
        finally:
            cluster.hosts[1].signal(signal.SIGCONT)
        driver.until(copied.is_done)
        with copied.half_done(2):
            pass
        driver.until(copied.is_done)
    copied.check()


def _others(host: Daemon, before: int) -> bool:
    return bool([pid for pid in host.executors() if pid != before])


@pytest.mark.soak
def test_workers_without_tidemill_are_told_of(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    assert refused(cluster, python, make_python(tmp_path / "python"), copied, tmp_path) == (
        "the workers' Python has no tidemill: pip install 'tidemill[spark]' on each of them"
    )
