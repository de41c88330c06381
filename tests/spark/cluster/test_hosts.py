"""Executors and hosts that die in the middle of a batch: their tasks move, and every row is changed once."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from ...services.feeds import eventually
from .copied import Copied
from .standalone import EXECUTOR, Cluster, Daemon, Session


def configure(directory: Path, copied: Copied) -> Path:
    url = copied.sql.server.url()
    config = directory / "feed.toml"
    config.write_text(
        f"""\
name = "copy"
data_dir = "{directory / "state"}"
[source]
url = "{url}"
tables = {json.dumps(copied.patterns.split(","))}
[[sink]]
name = "copy"
url = "{url}"
schema = "{copied.copy}"
"""
    )
    return config


def run(cluster: Cluster, python: Path, config: Path, *more: str) -> Session:
    """`tidemill run` with the cluster as master."""
    command = [python, "-m", "tidemill.cli", "run", config, "--engine", "spark", "--master", cluster.url]
    log = config.with_name("log")
    return Session([*command, *more], log, env=cluster.environment(python), cwd=config.parent)


def test_rows_are_changed_once_while_executors_and_hosts_are_killed(
    cluster: Cluster, python: Path, copied: Copied, tmp_path: Path
) -> None:
    config = configure(tmp_path, copied)
    with run(cluster, python, config, "--partitions", "2") as driver:
        driver.until(lambda: copied.is_done() and all(host.executors() for host in cluster.hosts))
        first, second = cluster.hosts
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
        assert driver.process.wait(60) == 0, driver.log()
    copied.check()
    assert "Traceback" not in driver.log()
    eventually(lambda: not first.executors())


def _others(host: Daemon, before: int) -> bool:
    return bool([pid for pid in host.executors() if pid != before])
