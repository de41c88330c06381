"""MySQL and MariaDB as the source of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from ..chain.selection.tables import TablePatterns
from ..codec.mysql.position import Position
from ..codec.mysql.tokens import qualified as quoted
from ..dialects.mysql.client import Session, Unavailable, connect, disconnect, identify, query, translated
from ..dialects.mysql.key_range import has_ranges
from ..dialects.mysql.server_rows import SESSION, ServerRows
from ..dialects.mysql.text import name
from ..dialects.read import Key, Range
from ..events import Checkpoint, Row, Table
from ..puller.mysql.failover import gtids_at
from ..puller.mysql.options import MysqlOptions
from ..snapshot.mysql.definitions import read_table
from ..snapshot.mysql.tables import SourceTable, find_tables
from ..snapshot.mysql.view import current_end
from ..sources.kind import SourceContext
from .side import Source, SourceRows


def open_mysql(options: MysqlOptions, context: SourceContext) -> Source:
    *others, last = options.servers
    for server in others:
        with suppress(Unavailable):
            return MySqlSource(server, context.tables)
    return MySqlSource(last, context.tables)


class MySqlSource:
    """Reads rows as of now, and the end of the binlog over a session of its own."""

    reads_at_checkpoint = False

    def __init__(self, options: MysqlOptions, tables: TablePatterns) -> None:
        self._options = options
        self._filter = tables
        self._session: Session = connect(options)
        self._log: Session = connect(options)
        with translated(options):
            query(self._session, SESSION)
            self._server = identify(self._log)
        self.identity = self._server.source
        self._tables: dict[str, SourceTable] = {}
        self.summing = self._reader = ServerRows(self._session, options, self._qualified)
        self._gtids: tuple[str, str] = "", ""

    def close(self) -> None:
        disconnect(self._session)
        disconnect(self._log)

    def of(self, table: Table) -> SourceRows:  # noqa: ARG002
        return self

    @staticmethod
    def _qualified(table: Table) -> str:
        return quoted(table.schema, table.name)

    def reader_of(self, table: Table, extracted: Mapping[str, str]) -> ServerRows:
        """Return a reader of one table, whatever the name it is asked by, with more columns, each of one text
        for all rows."""
        if not extracted:
            return ServerRows(self._session, self._options, lambda _: self._qualified(table))
        values = [
            f"CONVERT(x'{value.encode().hex()}' USING utf8mb4) COLLATE utf8mb4_bin AS {name(column)}"
            for column, value in extracted.items()
        ]
        columns = ", ".join([*(name(column.name) for column in table.columns), *values])
        derived = f"(SELECT {columns} FROM {self._qualified(table)}) AS shard"
        return ServerRows(self._session, self._options, lambda _: derived)

    def tables(self, checkpoint: Checkpoint) -> list[Table]:  # noqa: ARG002
        with translated(self._options):
            for listed in find_tables(self._log):
                if self._filter.matches(listed.schema, listed.name):
                    one = read_table(self._log, listed, copies_generated=self._options.copies_generated)
                    if one is not None:
                        self._tables[listed.full_name] = one
        return [one.table for one in self._tables.values()]

    def estimate(self, table: Table) -> int:
        return self._tables[table.full_name].rows_estimated

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Do nothing: rows are read as of now."""

    def end(self) -> str:
        with translated(self._options):
            position = current_end(self._log)
            query(self._log, "ROLLBACK")
        return str(replace(position, server=self._server.identity))

    def has_passed(self, position_text: str, end: str) -> bool:
        position, wanted = Position.parse(position_text), Position.parse(end)
        if position.gtid and (position.by_gtid or position.server not in ("", self._server.identity)):
            wanted = replace(wanted, gtid=self._gtids_at(wanted))
        return position.rank >= wanted.rank

    def _gtids_at(self, position: Position) -> str:
        if self._gtids[0] != str(position):
            with translated(self._options):
                self._gtids = str(position), gtids_at(self._log, position) or ""
        return self._gtids[1]

    def is_ordered(self, table: Table) -> bool:
        return bool(table.key) and has_ranges(table)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        return self._reader.page(table, Range(after, None), limit)

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        return self._reader.rows_of(table, keys)

    def every(self, table: Table) -> Iterator[list[Row]]:
        return self._reader.every(table)
