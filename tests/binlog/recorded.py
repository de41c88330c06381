"""Binary logs that real servers wrote, with what the same servers printed of every row."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.mysql.definition import parse_column
from tidemill.codec.mysql.known_table import KnownTable
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.position import Position
from tidemill.events import Column, Item, RowChange, Sorted, Table, TableName, Transaction
from tidemill.mounter import Catalog, Mounter
from tidemill.puller.mysql.binlog import BinlogDecoder
from tidemill.puller.mysql.commit_clock import CommitClock
from tidemill.puller.mysql.transactions import Transactions

VECTORS = Path(__file__).parents[1] / "vectors" / "binlog"
DATABASE = "dba"
_MAGIC = 4
_EVENT_SIZE = struct.Struct("<9xI")


@dataclass(frozen=True)
class Expected:
    """One row of a rows event, as the server printed it."""

    op: str
    table: str
    columns: list[dict[str, Any]]
    key: list[str]
    line: dict[str, Any]

    def image(self, when: str) -> dict[str, str | None] | None:
        return self.line[when]  # type: ignore[no-any-return]

    def exact(self, when: str, column: str) -> str | None:
        return self.line.get(f"{when}_exact", {}).get(column)  # type: ignore[no-any-return]

    def present(self, when: str) -> list[str] | None:
        return self.line.get(f"{when}_present")  # type: ignore[no-any-return]


@dataclass
class Recorded:
    """One file of a binlog."""

    server: str
    name: str
    file: str = "binlog.000001"

    followed: tuple[str, ...] = ()
    """The tables to read; without any, all but those of `unfollowed`."""

    def follows(self, table: str) -> bool:
        return table in self.followed if self.followed else table not in self.unfollowed

    @property
    def unfollowed(self) -> set[str]:
        """Tables that are versioned by transactions, whose changes are logged as statements; one whose
        generated columns the server left out; and one for which it isn't recorded which columns are in the
        rows."""
        also = {"mariadb-11.8.9/misc": "gen", "mysql-9.7.4/types_image_minimal": "t_geo"}.get(str(self), "")
        return {"svt", also}

    @property
    def has_whole_rows(self) -> bool:
        """True if the row images have all columns, or all that changed."""
        return "_noblob" not in self.name and not self.name.endswith(("_minimal", "_minimal_image"))

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"

    @cached_property
    def events(self) -> list[bytes]:
        data = gzip.decompress((VECTORS / self.server / f"{self.name}.binlog.gz").read_bytes())
        events, at = [], _MAGIC
        while at < len(data):
            (size,) = _EVENT_SIZE.unpack_from(data, at)
            events.append(data[at : at + size])
            at += size
        return events

    @cached_property
    def expected(self) -> list[Expected]:
        """The rows in the log, but none that was rolled back after it was logged."""
        lines = gzip.decompress((VECTORS / self.server / f"{self.name}.expected.jsonl.gz").read_bytes())
        columns: dict[str, list[dict[str, Any]]] = {}
        keys: dict[str, list[str]] = {}
        found: list[Expected] = []
        for line in map(json.loads, lines.splitlines()):
            if line["kind"] == "unlogged":
                void = [row for row in found if row.line["after"] == line["before"] and row.op == "insert"]
                if "ROLLBACK" in line["sql"] and void:
                    found.remove(void[-1])
            if line["kind"] != "row" or not self.follows(line["table"]) or line.get("note") == "not recorded":
                continue
            name = line["table"]
            columns[name] = line.get("columns") or columns[name]
            keys.setdefault(name, list(line.get("key") or ()))
            if (line["after"] or {}).get("label") == "undone":  # by ROLLBACK TO
                continue
            found.append(Expected(line["op"], name, columns[name], keys[name], line))
        return found


def load() -> list[Recorded]:
    return [
        Recorded(path.parent.name, path.name.removesuffix(".binlog.gz"))
        for path in sorted(VECTORS.glob("*/*.binlog.gz"))
    ]


def table_of(row: Expected) -> Table:
    """The table as its schema describes it."""
    columns = tuple(map(_column, row.columns))
    names = [column.name for column in columns]
    return Table(DATABASE, row.table, columns, tuple(names.index(name) for name in row.key))


def _column(column: dict[str, Any]) -> Column:
    text = re.sub(r"/\*.*?\*/", "", column["type"])
    # The recorded types are those of information_schema, which prints this character so.
    text = text.replace("'?'", "'🙂'")
    if column.get("charset"):
        text += f" CHARACTER SET {column['charset']}"
    found = parse_column(column["name"], text)
    if "GENERATED" in column.get("extra", "").replace("DEFAULT_GENERATED", ""):
        found = Column(**{**{f: getattr(found, f) for f in Column.__struct_fields__}, "generated": True})
    return found


class _Recorded(Catalog):
    """The tables as the record describes them."""

    def __init__(self, schema_of: Callable[[str, str], Table | None]) -> None:
        super().__init__()
        self._schema_of = schema_of

    def get(self, name: TableName) -> KnownTable | None:
        table = self._schema_of(*name)
        return None if table is None else KnownTable(table)


class Reader:
    """Reads a recorded log as a feed does: events to raw changes to rows."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._layouts = Layouts()
        self._transactions = Transactions(CommitClock(), 1 << 30)
        start = Position(recorded.file, _MAGIC)
        self.decoder = BinlogDecoder(start, self._transactions, self._follows, self._layouts.number_of)
        self._mounter = Mounter(
            self._layouts,
            "recorded",
            TablePatterns.parse([f"{DATABASE}.*"]),
            # The keys of "ddl" aren't recorded.
            catalog=Catalog() if recorded.name == "ddl" else _Recorded(self._schema_of),
        )
        self.checks_positions = True
        self.count = 0
        """Number of rows read so far."""

    def _follows(self, schema: str, table: str) -> bool:
        return schema == DATABASE and self._recorded.follows(table)

    def _schema_of(self, schema: str, table: str) -> Table | None:
        later = [row for row in self._recorded.expected[self.count :] if row.table == table]
        return table_of(later[0]) if schema == DATABASE and later else None

    def changes(self) -> list[RowChange]:
        return [change for item in self.items() if isinstance(item, Transaction) for change in item.rows]

    def items(self) -> Iterator[Item]:
        """Yield the items; after each event the decoder's position is checked if it is between two
        transactions."""
        self.decoder.resume(0.0)
        at = _MAGIC
        for event in self._recorded.events:
            at += len(event)
            self.decoder.feed([b"\0" + event])
            changes = self.decoder.take()
            if changes is None:
                continue
            position = self.decoder.position
            if self.checks_positions:
                assert position.offset == at or position.file != self._recorded.file
            for item in self._mounter.mount(Sorted(changes.changes, changes.resolved)):
                yield item
                if isinstance(item, Transaction):
                    self.count += sum(len(run) for run in item.runs)
