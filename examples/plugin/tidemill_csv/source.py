"""A file of lines as a source: an actor reads it, the sorter orders it, `mount` decodes items.

A position is the number of bytes up to the end of a transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tidemill.actors import PooledActor, Target
from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.blocks import block_of
from tidemill.config import Finding
from tidemill.errors import CheckpointError, Retryable, SourceError
from tidemill.events import (
    PUT,
    Changes,
    CreateTable,
    Ddl,
    Item,
    KvChange,
    RowChange,
    Sorted,
    Table,
    Transaction,
    Ts,
    Wait,
)
from tidemill.puller.puller import Connected, PullerStatistics
from tidemill.sources.source import Source, SourceInfo, StartContext

from .line import Change, decode

LINES = 1000
"""Maximum number of lines per message."""
KEYSPACE = 1


class CsvReader(PooledActor):
    """Sends the file's lines to the sorter, a message a turn, and looks for more at its end."""

    def __init__(self, path: Path, start: int, poll_seconds: float, writer: Target) -> None:
        super().__init__()
        self._file: BinaryIO = path.open("rb")
        self._file.seek(start)
        self._poll_seconds = poll_seconds
        self._writer = writer
        self._number = 0  # of the next line in its transaction

    def on_start(self) -> None:
        self.post("read")

    def on_receive(self, _message: Any) -> None:
        changes, resolved = [], 0
        for _ in range(LINES):
            offset = self._file.tell()
            line = self._file.readline()
            if not line.endswith(b"\n"):  # the line is still being written
                self._file.seek(offset)
                break
            record = decode(line)
            key = self._number.to_bytes(8, "big") + self._file.tell().to_bytes(8, "big")
            changes.append(KvChange(record.ts, record.ts, PUT, key, line))
            self._number += 1
            if record.what == "commit":
                resolved, self._number = record.ts, 0
        if changes:
            self.send(self._writer, Changes(block_of(changes), resolved))
            self.post("read")
        else:
            self.after(self._poll_seconds, "read")

    def on_stop(self) -> None:
        self._file.close()

    def on_failure(self, *_exc_info: Any) -> None:
        self._file.close()


class CsvSource(Source):
    def __init__(self, path: Path, poll_seconds: float, tables: TablePatterns) -> None:
        self.address = str(path)
        self._path = path
        self._poll_seconds = poll_seconds
        self._filter = tables
        self._tables: dict[str, Table] = {}
        """Tables by full name, as of the last decoded line."""
        self._rows: list[RowChange] = []

    def look(self) -> SourceInfo:
        names, end = {}, 0
        try:
            with self._path.open("rb") as file:
                while (line := file.readline()).endswith(b"\n"):
                    record = decode(line)
                    if record.what == "table":
                        table = msgspec.json.decode(record.content, type=Table)
                        names[table.schema, table.name] = None
                    elif record.what == "commit":
                        end = file.tell()
        except OSError as error:
            raise Retryable(f"{self._path}: {error.strerror}") from error
        return SourceInfo(f"csv {self._path}", str(end), list(names))

    def survey(self) -> Iterator[Finding]:
        info = self.look()
        yield Finding("ok", f"{self._path} has {info.end} bytes of whole transactions")
        for schema, table in info.tables:
            if self._filter.matches(schema, table):
                yield Finding("ok", f"follows {schema}.{table}", tables=(f"{schema}.{table}",))

    def rank(self, position: str) -> int:
        if not position.isdecimal():
            raise CheckpointError(f"{position!r} is not a number of bytes")
        return int(position)

    def behind(self, sink: str, position: str, end: str) -> str:
        return f"sink {sink} is at byte {position}, and {self._path} has only {end}: it was replaced"

    def start(self, context: StartContext) -> None:
        checkpoint = context.start
        offset = 0 if checkpoint is None else self.rank(checkpoint.position)
        self._define_up_to(offset)
        writer = context.sorter.add_table(KEYSPACE, 0 if checkpoint is None else checkpoint.ts)
        self._reader = context.blocking.spawn(
            CsvReader,
            self._path,
            offset,
            self._poll_seconds,
            writer,
            name="csv reader",
            supervisor=context.coordinator,
        )
        context.coordinator.tell(Connected(f"csv {self._path}", self.address))

    def _define_up_to(self, offset: int) -> None:
        with self._path.open("rb") as file:
            while file.tell() < offset:
                record = decode(file.readline())
                if record.what == "table":
                    table = msgspec.json.decode(record.content, type=Table)
                    self._tables[table.full_name] = table

    def mount(self, released: Sorted) -> list[Item]:
        items: list[Item] = []
        source = f"csv {self._path}"
        for change in released.changes:
            line = decode(change.value)
            ts, position = line.ts, str(int.from_bytes(change.key[8:], "big"))
            if line.what == "commit":
                items.append(Transaction(ts, ts, source, self._rows, position))
                self._rows = []
            elif line.what == "table":
                table = msgspec.json.decode(line.content, type=Table)
                is_new = self._tables.get(table.full_name) is None
                self._tables[table.full_name] = table
                if is_new and self._filter.matches(table.schema, table.name):
                    if self._rows:
                        raise SourceError(f"{self._path}: {table.full_name} is defined after rows of its ts")
                    query = f"CREATE TABLE {table.full_name}"
                    made = CreateTable(table)
                    items.append(Ddl(ts, ts, source, table.schema, table.name, query, (made,), last=False))
            else:
                self._take(line.ts, line.what, msgspec.json.decode(line.content, type=Change))
        if released.continues and self._rows:
            ts = self._rows[0].commit_ts
            items.append(Transaction(ts, ts, source, self._rows, last=False))
            self._rows = []
        return items

    def _take(self, ts: Ts, op: Any, change: Change) -> None:
        table = self._tables[change.table]
        if self._filter.matches(table.schema, table.name):
            before = None if change.before is None else tuple(change.before)
            after = None if change.after is None else tuple(change.after)
            self._rows.append(RowChange(ts, ts, table, op, before, after))

    def acknowledged(self, ts: Ts) -> None:
        """Do nothing: the file is kept."""

    def statistics(self) -> PullerStatistics | None:
        return None

    def waits(self) -> list[Wait]:
        return []

    def table_name(self, table_id: int) -> str:
        """Return the name of the keyspace in a Wait."""
        return self._path.name

    def check_seek(self, position: str) -> None:
        """Accept any position that `rank` understands: the whole file can be read again."""
        self.rank(position)

    def stop(self) -> None:
        self._reader.stop(block=False)

    def close(self) -> None:
        """Do nothing: the reader has closed the file."""
