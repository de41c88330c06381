"""simple: rows whose columns have no types, and messages with the tables' definitions.

Source: TiCDC's documentation of its simple protocol, and messages that TiCDC wrote. This is its JSON form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...events import (
    BYTE_STRINGS,
    Column,
    Ddl,
    Op,
    RowChange,
    Ts,
)
from .columns import Fields, Parts, RowParts, Writer
from .definition import Definition
from .definitions import Effect
from .encoder import afters, befores, by_transaction
from .json_text import html_json_bytes
from .simple_encoder import NAME, AnySimpleEncoder, SimpleTable
from .simple_schema import table_schema
from .value_lines import HTML_STRINGS, value_lines, wrapped

_OPS: Final[dict[Op, bytes]] = {"insert": b"INSERT", "update": b"UPDATE", "delete": b"DELETE"}


class SimpleEncoder(AnySimpleEncoder):
    """Writes JSON."""

    def _form(self, definition: Definition) -> SimpleTable:
        return _TableForm(definition, self._options, self._compress, self._large)

    def _ddl(self, kind: str, ddl: Ddl, now: int, effect: Effect) -> bytes:
        message: dict[str, object] = {"sql": ddl.query, "commitTs": ddl.commit_ts, "buildTs": now}
        if effect.after is not None:
            message |= _schema(effect.after)
        if effect.before is not None:
            message["preTableSchema"] = table_schema(effect.before)
        return _message(kind, message)

    def _bootstrap(self, now: int, definition: Definition) -> bytes:
        return _message("BOOTSTRAP", {"commitTs": 0, "buildTs": now} | _schema(definition))

    def _watermark(self, ts: Ts, now: int) -> bytes:
        return _message("WATERMARK", {"commitTs": ts, "buildTs": now})


def _message(kind: str, message: dict[str, object]) -> bytes:
    return html_json_bytes({"version": 1, "type": kind} | message)


def _schema(definition: Definition) -> dict[str, object]:
    return {"tableSchema": table_schema(definition)}


class _TableForm(SimpleTable):
    def _head(self) -> bytes:
        table, number = self._definition.table, self._definition.table_id
        head = {"version": 1, "database": table.schema, "table": table.name, "tableID": number}
        return html_json_bytes(head)[:-1]

    def _fields(self, places: Sequence[int]) -> RowParts:
        columns = self._definition.table.columns
        ordered = sorted(places, key=lambda place: columns[place].name)
        names = [html_json_bytes(columns[place].name) + b":" for place in ordered]
        writers = [self._writer(columns[place]) for place in ordered]
        return Fields(list(zip(ordered, names, writers, strict=True)), b",")

    def _writer(self, column: Column) -> Writer:
        if column.kind in BYTE_STRINGS:
            return HTML_STRINGS
        lines = value_lines(NAME, self._definition.table, column, self._options.zone)
        if lines is None:
            return HTML_STRINGS
        if column.kind == "timestamp":
            zone = html_json_bytes(self._options.time_zone)
            return wrapped(lines, b'{"location":%b,"value":"' % zone, b'"}')
        return wrapped(lines, b'"', b'"')

    def _mark(self, *, only_key: bool, location: str) -> bytes:
        stored = b',"claimCheckLocation":%b' % html_json_bytes(location) if location else b""
        return stored + (b',"handleKeyOnly":true' if only_key else b"")

    def _parts(self, op: Op, changes: list[RowChange], now: int, columns: RowParts, mark: bytes) -> Parts:
        start: Parts = [
            b'%b,"type":"%b","commitTs":' % (self._start, _OPS[op]),
            by_transaction(changes, lambda change: b"%d" % change.commit_ts),
            b',"buildTs":%d,"schemaVersion":%d%b' % (now, self._definition.version, mark),
        ]
        new: Parts = [] if op == "delete" else [b',"data":{', *columns.of(afters(changes)), b"}"]
        old: Parts = [] if op == "insert" else [b',"old":{', *columns.of(befores(changes)), b"}"]
        return [*start, *new, *old, b"}"]
