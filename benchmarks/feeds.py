"""The cost of idle feeds in one server, compared with a process for each feed.

Each feed copies the tables of one source into its own SQLite file. A MariaDB sends nothing meanwhile; an
emulated TiDB, in a process of its own, sends resolved timestamps five times a second. CPU time and memory are
the server's while nothing changes. The yardstick is one `tidemill run` of the same feed, times the number of
feeds.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event
from typing import NamedTuple

from ..actors import SystemClock
from ..client import Client as ApiClient
from ..emulator.sql.sql import Tidb
from ..engine.status import StatusFile
from ..errors import CheckpointError, ConfigError, Retryable
from ..testing.child import Child
from ..testing.mariadb import MariaDb
from ..testing.mariadb_client import Client
from ..testing.progress import eventually
from .process_times import tree_seconds
from .turns import serve_until_ended, serving

_CLOCK = SystemClock()
_LOOK_SECONDS = 1.0
"""Pause between requests for the states of all feeds."""


class Cost(NamedTuple):
    """Cost of a process while its feeds are idle."""

    cpu_percent: float
    """Percent of one core."""
    memory_mb: float
    threads: int
    files: int


def run(source: str = "tikv", feeds: int = 200, tables: int = 10, seconds: float = 20.0) -> dict[str, object]:
    """Measure idle feeds for `seconds`, once all of them follow their tables. Raises ConfigError."""
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as folder,
        _source(source, Path(folder), tables, feeds) as url,
    ):
        directory = Path(folder)
        alone = _alone(directory, url, seconds)
        empty = _together(directory / "none", url, 0, 1.0)[0]
        together, started = _together(directory / "feeds", url, feeds, seconds)
    figures = {
        "cpu_percent": round(together.cpu_percent, 1),
        "feed_mb": round((together.memory_mb - empty.memory_mb) / feeds, 2),
    }
    yardstick = {
        "cpu_percent": round(alone.cpu_percent * feeds, 1),
        "feed_mb": round(alone.memory_mb, 2),
    }
    return {
        "bench": "feeds",
        "settings": {"source": source, "feeds": feeds, "tables": tables, "seconds": seconds},
        "figures": {
            **figures,
            "feed_threads": round((together.threads - empty.threads) / feeds, 1),
            "feed_files": round((together.files - empty.files) / feeds, 1),
            "start_seconds": round(started, 1),
        },
        "yardstick": yardstick,
        "ratio": {name: round(yardstick[name] / figures[name], 2) for name in figures if figures[name]},
    }


def _source(source: str, directory: Path, tables: int, feeds: int) -> AbstractContextManager[str]:
    """Return the running source, which is entered for its URL."""
    match source:
        case "tikv":
            return _tidb(tables)
        case "mysql":
            return _mariadb(directory, tables, 8 * feeds + 100)
    raise ConfigError(f"--source: {source!r} is none; accepted: tikv, mysql")


@contextmanager
def _mariadb(directory: Path, tables: int, connections: int) -> Iterator[str]:
    with MariaDb(directory / "mariadb", f"--max-connections={connections}") as server:
        with closing(Client(server, "")) as sql:
            sql(*_statements(tables))
        yield server.url()


@contextmanager
def _tidb(tables: int) -> Iterator[str]:
    with serving(_serve, tables) as cluster:
        yield f"tikv://{cluster['pd']}"


def _serve(pipe: Connection, tables: int) -> None:
    with Tidb(stores=2) as tidb:
        for statement in _statements(tables):
            tidb.execute(statement)
        serve_until_ended(pipe, {"pd": tidb.pd_address})


def _statements(tables: int) -> list[str]:
    return ["create database shop"] + [
        f"create table shop.t{number} (id int primary key, name varchar(40))" for number in range(tables)
    ]


def _alone(directory: Path, url: str, seconds: float) -> Cost:
    """Return the cost of one feed in a process of its own."""
    file = directory / "alone.toml"
    file.write_text(f'data_dir = "{directory}/alone"\n{_document(url, directory / "alone.db")}')
    status = StatusFile(directory / "alone")

    def is_idle() -> bool:
        try:
            return status.load().table_states.keys() == {"following"}
        except CheckpointError:
            return False

    with Child([sys.executable, "-m", "tidemill.cli", "run", str(file)], directory / "alone.log") as child:
        child.wait_until(is_idle)
        return _cost(child.process.pid, seconds)


def _together(directory: Path, source_url: str, feeds: int, seconds: float) -> tuple[Cost, float]:
    """Return the cost of one server with all feeds, and the time until all of them were idle."""
    directory.mkdir()
    for number in range(feeds):
        name = f"feed-{number:04}"
        (directory / f"{name}.toml").write_text(_document(source_url, directory / f"{name}.db"))
    log, began = directory / "log", _CLOCK.now()
    command = [sys.executable, "-m", "tidemill.cli", "serve", str(directory), "--http", "127.0.0.1:0"]
    with Child(command, log) as child:
        url = child.wait_until(lambda: next(iter(_addresses(log)), ""))
        client = ApiClient(url)
        moved = 0

        def are_idle() -> bool:
            nonlocal moved
            Event().wait(_LOOK_SECONDS)
            try:
                all_of_them = client.feeds()
            except Retryable:
                return False
            moved = sum(one.table_states.keys() == {"following"} for one in all_of_them)
            return moved == feeds

        child.wait_until(are_idle, sign=lambda: moved)
        started = _CLOCK.now() - began
        return _cost(child.process.pid, seconds), started


def _document(url: str, copy: Path) -> str:
    return f'[source]\nurl = "{url}"\ntables = ["shop.*"]\n\n[[sink]]\nurl = "sqlite:///{copy}"\n'


def _addresses(log: Path) -> list[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(": ")[2] for line in lines if line.startswith("tidemill: http")]


def _cost(pid: int, seconds: float) -> Cost:
    """Return the cost of a process over a time."""
    before, began = tree_seconds(pid), _CLOCK.now()
    eventually(lambda: _CLOCK.now() - began >= seconds, sign=_CLOCK.now)
    took = _CLOCK.now() - began
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return Cost(
        100 * (tree_seconds(pid) - before) / took,
        int(status["VmRSS"].split()[0]) / 1024,
        int(status["Threads"]),
        len(list((proc / "fd").iterdir())),
    )
