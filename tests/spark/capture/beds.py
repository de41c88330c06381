"""A source with two tables, read in three ways: by a task alone, by a capture in a process of its own, and by
a client of it that falls back on the first."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from tidemill.emulator.sql.sql import Tidb
from tidemill.engine.status import FeedStatus, StatusFile
from tidemill.errors import CheckpointError
from tidemill.spark.capture import client
from tidemill.spark.capture.client import CaptureUnavailable
from tidemill.spark.capture.ticket import Ticket
from tidemill.spark.offsets.offset import Limit, Offset
from tidemill.spark.offsets.offsets import open_offsets
from tidemill.spark.read.bounded import changes
from tidemill.spark.read.options import read_options
from tidemill.spark.read.parts import WHOLE, Part
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.private_server import reserve
from tidemill.testing.progress import STALL_SECONDS, ended, eventually

from .history import rows_of

LEASE = "query 1"


class Running:
    """A capture in a process of its own."""

    def __init__(self, bed: Bed, **flags: Any) -> None:
        program = str(Path(__file__).with_name("running.py"))
        self._log = bed.directory / "capture.log"
        # So that the port is still free for another capture once this one is killed.
        self._reserved = None if "listen" in flags else reserve(0)
        if self._reserved is not None:
            flags["listen"] = f"127.0.0.1:{self._reserved.getsockname()[1]}"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    program,
                    str(bed.config),
                    json.dumps({"wait_seconds": STALL_SECONDS} | flags),
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self._log.read_text()
        self.port = int(line)
        self.address = f"127.0.0.1:{self.port}"

    def begun(self) -> Self:
        """Wait until the capture buffers new changes."""
        eventually(lambda: self._status() is not None)
        return self

    def _status(self) -> Any:
        assert self.process.poll() is None, self._log.read_text()
        return client.status(self.address).held.base

    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> int:
        """In order."""
        self.process.terminate()
        return ended(self.process)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self._reserved is not None:
            self._reserved.close()


class Bed:
    """The common part of both kinds of source. `rest_from` are the offsets at which the source took over."""

    url: str
    schema: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "feed.toml"
        self.rest_from: list[Offset] = []
        self.configure()
        self.options = read_options({"source": self.url, "tables": f"{self.schema}.*"})
        self._offsets = open_offsets(self.options)

    def configure(self, *more: str) -> None:
        lines = [
            'name = "shop"',
            f'data_dir = "{self.directory / "state"}"',
            "[source]",
            f'url = "{self.url}"',
            f'tables = ["{self.schema}.*"]',
            "[[sink]]",
            f'url = "sqlite:///{self.directory / "copy.db"}"',
            *more,
        ]
        self.config.write_text("\n".join(lines) + "\n")

    # --- the source

    def write(self, *transactions: Sequence[tuple[str, int, str]]) -> None:
        """Insert or replace rows, each with its table."""
        raise NotImplementedError

    def alter(self, statement: str) -> None:
        raise NotImplementedError

    def burst(self, first: int, count: int) -> None:
        """Transactions of one to four rows over both tables."""
        for number in range(first, first + count):
            rows = [
                (("item", "other")[n % 2], 10 * number + n, f"{number}/{n}") for n in range(number % 4 + 1)
            ]
            self.write(rows)

    def latest(self) -> Offset:
        return self._offsets.latest()

    def at_position(self, position: str) -> Offset:
        return self._offsets.at_position(position)

    def following(self, start: Offset) -> Offset:
        """Return the end of the batch after `start`."""
        return self._offsets.following(start, None, Limit())

    # --- three ways to read it

    def alone(self, start: Offset, end: Offset, part: Part = WHOLE) -> list[dict[str, Any]]:
        return rows_of(changes(self.options, part, start, end))

    def ticket(
        self, start: Offset, end: Offset, part: Part = WHOLE, wait_seconds: float = STALL_SECONDS
    ) -> Ticket:
        return Ticket(start, end, self.options.patterns, part, lease=LEASE, wait_seconds=wait_seconds)

    def captured(self, address: str, start: Offset, end: Offset, part: Part = WHOLE) -> list[dict[str, Any]]:
        """Raises CaptureUnavailable."""
        return rows_of(client.read([address], self.ticket(start, end, part)))

    def stream(
        self, address: str, start: Offset, end: Offset, *, wait_seconds: float = STALL_SECONDS, **more: Any
    ) -> Iterator[pa.RecordBatch]:
        """Falls back."""

        def rest(at: Offset) -> Iterator[pa.RecordBatch]:
            self.rest_from.append(at)
            return changes(self.options, WHOLE, at, end)

        return client.read([address], self.ticket(start, end, WHOLE, wait_seconds), rest, **more)

    def refused(self, address: str, start: Offset, end: Offset) -> str:
        try:
            self.captured(address, start, end)
        except CaptureUnavailable as error:
            return str(error)
        raise AssertionError("it was answered")

    def status(self) -> FeedStatus | None:
        try:
            return StatusFile(self.directory / "state").load()
        except CheckpointError:
            return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._offsets.close()


class TikvBed(Bed):
    schema = "shop"

    def __init__(self, directory: Path, server: Tidb) -> None:
        self.url = f"tikv://{server.pd_address}"
        self._server = server
        server.execute("create database shop")
        for table in ("item", "other"):
            server.execute(f"create table shop.{table} (id bigint primary key, name text)")
        super().__init__(directory)

    def write(self, *transactions: Sequence[tuple[str, int, str]]) -> None:
        for rows in transactions:
            with self._server.transaction() as txn:
                for table, number, name in rows:
                    txn.insert(f"shop.{table}", {"id": number, "name": name})

    def alter(self, statement: str) -> None:
        self._server.execute(statement.replace("item", "shop.item"))


class MariaBed(Bed):
    def __init__(self, directory: Path, server: MariaDb, schema: str) -> None:
        self.url = server.url()
        self.schema = schema
        self._session = server.connect(database=schema, autocommit=False)
        for table in ("item", "other"):
            self.alter(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, name TEXT)")
        super().__init__(directory)

    def write(self, *transactions: Sequence[tuple[str, int, str]]) -> None:
        for rows in transactions:
            with self._session.cursor() as cursor:
                for table in ("item", "other"):
                    values = [(number, name) for one, number, name in rows if one == table]
                    cursor.executemany(f"REPLACE INTO {table} (id, name) VALUES (%s, %s)", values)
            self._session.commit()

    def alter(self, statement: str) -> None:
        with self._session.cursor() as cursor:
            cursor.execute(statement)

    def __exit__(self, *exc_info: object) -> None:
        self._session.close()
        super().__exit__(*exc_info)
