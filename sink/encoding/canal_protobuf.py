"""canal-protobuf: Canal's entries, in the packets that its server writes to message queues.

Source: Canal's protocol, and its conversion of MySQL's events.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ...codec.proto import canal
from ...events import Ddl, Op, RowChange, Table, Ts, physical_ms
from ...events.per_table import PerTable
from .canal_columns import CanalColumns
from .definition import Definition, Describe, definition_of
from .encoder import Message, Milliseconds, afters, befores, groups
from .options import CanalProtobufOptions
from .oversize import RECORD_BYTES, check_size
from .protobuf_bytes import delimited
from .statement_kind import named, statement_kind

NAME: Final = "canal-protobuf"

_STORED: Final = 3
"""Number of the field of an entry that holds its content."""
_EVENTS: Final[dict[Op, int]] = {
    "insert": canal.EventType.INSERT,
    "update": canal.EventType.UPDATE,
    "delete": canal.EventType.DELETE,
}


class CanalProtobufEncoder:
    """Writes no keys. A message is a packet of entries, each with consecutive rows of one table."""

    name = NAME

    def __init__(
        self,
        options: CanalProtobufOptions,
        now: Milliseconds,  # noqa: ARG002
        describe: Describe = definition_of,
    ) -> None:
        self._options: Final = options
        self._tables: Final = PerTable(lambda table: _TableForm(describe(table), options))
        self._open: Ts | None = None  # commit ts of the transaction whose end isn't written

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:
        packets = Packets(self._options)
        opened = self._open
        for table, op, group in groups(changes):
            ts = group[0].commit_ts
            if opened != ts and not self._options.filter_transaction_entry:
                if opened is not None:
                    packets.mark(self._end(opened))
                packets.mark(self._begin(ts))
                opened = ts
            form = self._tables[table]
            packets.add(table, form.entry(op, ts), form.rows(op, group))
        if last and opened is not None:
            packets.mark(self._end(opened))
            opened = None
        messages = packets.messages()
        self._open = opened
        return messages

    def ddl(self, ddl: Ddl) -> list[Message]:
        if not ddl.query:
            return []  # a table as its snapshot found it: no statement ran
        schema, table = named(ddl)
        kind = getattr(canal.EventType, statement_kind(ddl).name)
        header = _header(self._options, ddl.commit_ts, schema, table, kind)
        change = canal.RowChange(eventType=kind, isDdl=True, sql=ddl.query, ddlSchemaName=ddl.schema)
        return self._alone(_entry(header, canal.EntryType.ROWDATA, change))

    def watermark(self, ts: Ts) -> list[Message]:
        if not self._options.enable_tidb_extension:
            return []
        header = canal.Header(executeTime=physical_ms(ts), eventType=canal.EventType.MHEARTBEAT)
        header.props.add(key="watermarkTs", value=str(ts))
        heartbeat = canal.Entry(header=header, entryType=canal.EntryType.HEARTBEAT)
        return self._alone(heartbeat.SerializeToString())

    def _alone(self, entry: bytes) -> list[Message]:
        packets = Packets(self._options)
        packets.mark(entry)
        return packets.messages()

    def _begin(self, ts: Ts) -> bytes:
        header = _header(self._options, ts, "", "", None)
        return _entry(header, canal.EntryType.TRANSACTIONBEGIN, canal.TransactionBegin())

    def _end(self, ts: Ts) -> bytes:
        header = _header(self._options, ts, "", "", None)
        return _entry(header, canal.EntryType.TRANSACTIONEND, canal.TransactionEnd(transactionId=str(ts)))


def _header(options: CanalProtobufOptions, ts: Ts, schema: str, table: str, event: int | None) -> Any:
    header = canal.Header(
        version=1,
        serverenCode="UTF-8",
        executeTime=physical_ms(ts),
        sourceType=canal.Type.MYSQL,
        schemaName=schema,
        tableName=table,
        eventType=event,
    )
    if options.enable_tidb_extension:
        header.props.add(key="commitTs", value=str(ts))
    return header


def _entry(header: Any, kind: int, content: Any) -> bytes:
    start: bytes = canal.Entry(header=header, entryType=kind).SerializeToString()
    return start + delimited(_STORED, content.SerializeToString())


class _TableForm:
    """The form of one table's rows."""

    def __init__(self, definition: Definition, options: CanalProtobufOptions) -> None:
        self._definition: Final = definition
        self._options: Final = options
        self._columns: Final = CanalColumns(NAME, definition, options.zone)

    def rows(self, op: Op, changes: list[RowChange]) -> list[bytes]:
        match op:
            case "insert":
                return self._columns.inserts(afters(changes))
            case "delete":
                return self._columns.deletes(befores(changes))
        return self._columns.updates(befores(changes), afters(changes))

    def entry(self, op: Op, ts: Ts) -> MakeEntry:
        """Return a function that makes an entry of rows."""
        table, event = self._definition.table, _EVENTS[op]
        start = canal.RowChange(tableId=self._definition.table_id, eventType=event, isDdl=False)
        change: bytes = start.SerializeToString()

        heads: dict[int, bytes] = {}

        def make(rows: list[bytes]) -> bytes:
            count = len(rows)
            if count not in heads:
                header = _header(self._options, ts, table.schema, table.name, event)
                header.props.add(key="rowsCount", value=str(count))
                heads[count] = canal.Entry(
                    header=header, entryType=canal.EntryType.ROWDATA
                ).SerializeToString()
            return heads[count] + delimited(_STORED, b"".join([change, *rows]))

        return make


MakeEntry: TypeAlias = Callable[[list[bytes]], bytes]
"""Returns an entry with these rows, each a whole field."""

_NAME: Final = "canal-protobuf"
_HEAD: Final[bytes] = canal.Packet(type=canal.PacketType.MESSAGES).SerializeToString()
_BODY: Final = 5
_MESSAGE: Final = 2
_ROOM: Final = 32
"""Largest number of bytes by which the lengths of a packet and an entry grow with their rows."""


class Packets:
    """Fills packets with entries, up to the options' rows and bytes."""

    def __init__(self, options: CanalProtobufOptions) -> None:
        self._most: Final = options.max_batch_size
        self._limit: Final = options.max_message_bytes
        self._options: Final = options
        self._done: Final[list[Message]] = []
        self._entries: list[bytes] = []
        self._rows = 0
        self._size = 0

    def mark(self, entry: bytes) -> None:
        """Add an entry without rows."""
        self._add(entry, 0)

    def add(self, table: Table, make: MakeEntry, rows: list[bytes]) -> None:
        """Add rows of one table."""
        start = 0
        while start < len(rows):
            if self._rows == self._most:
                self._close()
            end = min(start + self._most - self._rows, len(rows))
            if self._limit:
                end = self._fitting(table, make, rows, start, end)
                if end == start:
                    self._close()
                    continue
            self._add(make(rows[start:end]), end - start)
            start = end

    def messages(self) -> list[Message]:
        """Return the packets; the object isn't used after that."""
        self._close()
        return self._done

    def _fitting(self, table: Table, make: MakeEntry, rows: list[bytes], start: int, end: int) -> int:
        """Return the end of the rows that fit; `start` if the packet has to be closed first."""
        size = self._size + len(make([])) + RECORD_BYTES + _ROOM
        for place in range(start, end):
            size += len(rows[place])
            if size > self._limit:
                if place == start and not self._entries:
                    check_size(_NAME, table, size, self._options)
                return place
        return end

    def _add(self, entry: bytes, rows: int) -> None:
        part = delimited(_MESSAGE, entry)
        if self._limit and self._entries and self._size + len(part) + RECORD_BYTES + _ROOM > self._limit:
            self._close()
        self._entries.append(part)
        self._rows += rows
        self._size += len(part)

    def _close(self) -> None:
        if self._entries:
            self._done.append(Message(None, _HEAD + delimited(_BODY, b"".join(self._entries)), self._rows))
        self._entries, self._rows, self._size = [], 0, 0
