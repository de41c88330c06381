"""The raw envelope: changes of any table as Arrow batches, and back without loss.

`commit_ts`, `start_ts` and `sequence` are the order. `before` and `after` are JSON for people and queries;
`change`, with `layout`, is exact, and all that `decode` needs besides the order, `op` and `position`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from ..errors import SinkError
from ..events import Chunk, Ddl, Item, Row, RowChange, Table, Transaction
from ..sink.files.ndjson import json_rows
from .change import NO_LAYOUT, Layouts, RowBytes, decode_ddl, encode_ddl
from .read.pick import Pick

ENVELOPE: Final = pa.schema(
    [
        pa.field("commit_ts", pa.int64(), nullable=False),
        pa.field("start_ts", pa.int64(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("schema", pa.string(), nullable=False),
        pa.field("table", pa.string(), nullable=False),
        pa.field("op", pa.string(), nullable=False),
        pa.field("before", pa.string()),
        pa.field("after", pa.string()),
        pa.field("position", pa.string()),
        pa.field("query", pa.string()),
        pa.field("change", pa.binary(), nullable=False),
        pa.field("layout", pa.binary(), nullable=False),
    ]
)
"""The columns, in their order. `position` is set on the last row of a transaction; `query` on a DDL."""

EXACT: Final = ("commit_ts", "start_ts", "op", "position", "change", "layout")
"""The columns that `Decoder` reads."""

_POSITION: Final = ENVELOPE.get_field_index("position")
_MAX_TABLES: Final = 1000
_Text: TypeAlias = Callable[[Row | None], str | None]
_to_json = msgspec.json.Encoder().encode


class Encoder:
    """Items to envelope batches; one for each stream of items, as the rows of a transaction are numbered
    through its pieces."""

    def __init__(self, pick: Pick | None = None, *, json: bool = True) -> None:
        """Only rows that are picked become lines.

        Without `json` the columns `before` and `after` are null, which takes two thirds of the time.
        """
        self._json = json
        self._pick = pick or Pick()
        self._layouts = Layouts()
        self._texts: dict[bytes, _Text] = {}
        self._has_line = False  # the open transaction
        self._held: list[list[Any]] = []

    def encode(self, items: Iterable[Item]) -> pa.RecordBatch:
        """The rows of `items`, maybe none; items without rows leave nothing.

        While a transaction is open its last row is held back: it may turn out to be the one that ends it.
        """
        lines, self._held = self._held, []
        for item in items:
            if self._pick.begins(item):
                self._has_line = False
            before = len(lines)
            if isinstance(item, Ddl):
                self._ddl(item, lines)
            else:
                self._rows(item, lines)
            self._has_line |= len(lines) > before
            if item.last and self._has_line:
                lines[-1][_POSITION] = item.position
                self._has_line = False
        if self._has_line:
            self._held = [lines.pop()]
        return to_batch(lines, ENVELOPE)

    def _ddl(self, ddl: Ddl, lines: list[list[Any]]) -> None:
        number = self._pick.ddl(ddl)
        if number is not None:
            head = [ddl.commit_ts, ddl.start_ts, number, ddl.schema, ddl.table, "ddl"]
            lines.append([*head, None, None, None, ddl.query, encode_ddl(ddl), NO_LAYOUT])

    def _rows(self, item: Transaction, lines: list[list[Any]]) -> None:
        commit_ts, start_ts, chunk = item.commit_ts, item.start_ts, item.chunk
        table: Table | None = None
        for number, row in self._pick.rows(item):
            if row.table is not table:
                table = row.table
                schema, name = table.schema, table.name
                code = self._layouts.of(item.source, table)
                layout, encode, text = code.layout, code.encode, self._text(code)
            before, after = row.before, row.after
            lines.append(
                [
                    commit_ts, start_ts, number, schema, name, row.op, text(before), text(after),
                    None, None, encode(before, after, chunk), layout,
                ]
            )  # fmt: skip

    def _text(self, code: RowBytes) -> _Text:
        if not self._json:
            return _nothing
        found = self._texts.get(code.layout)
        if found is None:
            if len(self._texts) >= _MAX_TABLES:
                self._texts.clear()
            found = self._texts[code.layout] = row_text(code.table)
        return found


class Decoder:
    """Envelope batches to items; the rows in the order of `commit_ts`, `start_ts`, `sequence`."""

    def __init__(self) -> None:
        self._layouts = Layouts()

    def decode(self, batch: pa.RecordBatch) -> list[Item]:
        """Raises SinkError if the columns aren't those of the envelope, or not as they were read.

        A transaction is whole or in pieces, as the batch has it: its last row has the position.
        """
        try:
            return self._decoded(batch)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise SinkError(
                f"the columns change and layout aren't as they were read ({error}): keep both as they are"
            ) from None

    def _decoded(self, batch: pa.RecordBatch) -> list[Item]:
        items: list[Item] = []
        open_: tuple[int, int, Chunk | None] | None = None
        for commit_ts, start_ts, op, position, change, layout in zip(*_exact(batch), strict=True):
            if op == "ddl":
                items.append(decode_ddl(change))
                open_ = None
                continue
            code = self._layouts.read(layout)
            before, after, chunk = code.decode(change)
            if open_ != (commit_ts, start_ts, chunk):
                open_ = commit_ts, start_ts, chunk
                rows: list[RowChange] = []
                items.append(Transaction(commit_ts, start_ts, code.source, rows, "", False, chunk))
            rows.append(RowChange(commit_ts, start_ts, code.table, op, before, after))
            if position is not None:
                items[-1] = replace(items[-1], position=position, last=True)
                open_ = None
        return items


def _exact(batch: pa.RecordBatch) -> list[list[Any]]:
    missing = [name for name in EXACT if name not in batch.schema.names]
    if missing:
        raise SinkError(
            f"the rows lack the column {missing[0]}: what is written must have the envelope's columns "
            f"{', '.join(EXACT)}"
        )
    return [batch.column(name).to_pylist() for name in EXACT]


def row_text(table: Table) -> _Text:
    """Rows of `table` as JSON objects, in the form of docs/ndjson.md."""
    values = json_rows(table)

    def text(row: Row | None) -> str | None:
        return None if row is None else _to_json(values((row,))[0]).decode()

    return text


def _nothing(_row: Row | None) -> None:
    return None


def to_batch(lines: list[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Rows to columns."""
    columns = zip(*lines, strict=True) if lines else [[]] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
