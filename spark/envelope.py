"""The raw envelope: changes of any table as Arrow batches, and back without loss.

`commit_ts`, `start_ts` and `sequence` are the order. `before` and `after` are JSON for people and queries;
`change`, with `layout`, is exact, and all that `decode` needs besides the order, `op` and `position`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from ..codec.arrow_arrays import counted, int64_array, repeated
from ..codec.ddl_bytes import decode_ddl, encode_ddl
from ..codec.images import read_images
from ..codec.mysql.images import raw_images, row_packets
from ..codec.mysql.run import EventRun, ResultRun
from ..codec.row_bytes import RowBytes
from ..errors import SinkError, SourceError
from ..events import Chunk, Ddl, Item, Row, RowChange, Run, Table, Transaction
from ..sink.files.ndjson import json_rows
from .change import NO_LAYOUT, RowCodecs
from .json_text import json_texts
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
"""The columns in order. `position` is set on a transaction's last row, `query` on a DDL."""

EXACT: Final = ("commit_ts", "start_ts", "op", "position", "change", "layout")
"""The columns that `Decoder` reads."""

_POSITION: Final = ENVELOPE.get_field_index("position")
_MAX_TABLES: Final = 1000
_Text: TypeAlias = Callable[[Row | None], str | None]
_to_json = msgspec.json.Encoder().encode


_Part: TypeAlias = tuple[Any, int, Any, int]
"""An item, the number of the first row in its transaction, a run of it or the item itself, and its rows."""


class _Lines:
    """Collects the rows of a batch, in order."""

    def __init__(self, first: int) -> None:
        """`first` is 1 if a withheld row, number 0, comes before the lines; otherwise 0."""
        self.first = self.count = first
        self.parts: list[_Part] = []
        self.positions: dict[int, str] = {}
        """Positions by row number."""

    def add(self, item: Item, number: int, part: Run | Ddl, size: int) -> None:
        if size:
            self.parts.append((item, number, part, size))
            self.count += size


class EnvelopeEncoder:
    """Encodes items as envelope batches.

    Used for one stream of items, since the rows of a split transaction are numbered through all its items.
    """

    def __init__(self, pick: Pick | None = None, *, json: bool = True) -> None:
        """`pick` selects the rows to encode; None: all.

        Without `json` the columns `before` and `after` are null, which takes two thirds of the time.
        """
        self._json = json
        self._pick = pick or Pick()
        self._layouts = RowCodecs()
        self._texts: dict[Table, _Text] = {}
        self._has_line = False  # the open transaction
        self._withheld: pa.RecordBatch | None = None

    def encode(self, items: Iterable[Item]) -> pa.RecordBatch:
        """Return the rows of `items`, possibly none.

        While a transaction is open its latest row is withheld, as it may be the transaction's last.
        """
        withheld, self._withheld = self._withheld, None
        lines = _Lines(first=0 if withheld is None else 1)
        for item in items:
            if self._pick.begins(item):
                self._has_line = False
            before = lines.count
            if isinstance(item, Ddl):
                number = self._pick.ddl(item)
                if number is not None:
                    lines.add(item, number, item, 1)
            else:
                for number, run in self._pick.runs(item):
                    lines.add(item, number, run, len(run))
            self._has_line |= lines.count > before
            if item.last and self._has_line:
                lines.positions[lines.count - 1] = item.position
                self._has_line = False
        batch = self._batch(lines)
        if withheld is not None:
            batch = pa.concat_batches([withheld, batch])
        batch = _placed(batch, lines.positions)
        if self._has_line:
            self._withheld = batch.slice(batch.num_rows - 1)
            batch = batch.slice(0, batch.num_rows - 1)
        return batch

    def _batch(self, lines: _Lines) -> pa.RecordBatch:
        """Return the lines as a batch without positions."""
        if not lines.parts:
            return to_batch([], ENVELOPE)
        items, numbers, parts, sizes = zip(*lines.parts, strict=True)
        ddls = [part if isinstance(part, Ddl) else None for part in parts]
        names = [(p.schema, p.table) if isinstance(p, Ddl) else (p.table.schema, p.table.name) for p in parts]
        columns = [
            repeated([item.commit_ts for item in items], sizes, pa.int64()),
            repeated([item.start_ts for item in items], sizes, pa.int64()),
            counted(numbers, sizes),
            repeated([schema for schema, _ in names], sizes, pa.string()),
            repeated([name for _, name in names], sizes, pa.string()),
            repeated(["ddl" if isinstance(part, Ddl) else part.op for part in parts], sizes, pa.string()),
        ]
        before, after, change, layout = self._images(lines)
        position = pa.nulls(lines.count - lines.first, pa.string())
        query = repeated([None if ddl is None else ddl.query for ddl in ddls], sizes, pa.string())
        columns += [before, after, position, query, change, layout]
        return pa.RecordBatch.from_arrays(columns, schema=ENVELOPE)

    def _images(self, lines: _Lines) -> list[pa.Array]:
        """Return the columns before, after, change and layout: encoded by table, then put in order."""
        groups: dict[Any, list[int]] = {}
        for place, (item, _, part, _) in enumerate(lines.parts):
            key = None if isinstance(part, Ddl) else (id(part.table), item.source, item.chunk)
            groups.setdefault(key, []).append(place)
        images = []
        for key, places in groups.items():
            parts = [lines.parts[place] for place in places]
            images.append(_of_ddls(parts) if key is None else self._of_runs(parts))
        if len(images) == 1:
            return images[0]
        sizes = np.array([size for _, _, _, size in lines.parts])
        firsts = np.cumsum(sizes) - sizes
        order = np.concatenate(
            [
                np.arange(firsts[place], firsts[place] + sizes[place])
                for its in groups.values()
                for place in its
            ]
        )
        back = int64_array(np.argsort(order, kind="stable"))
        return [pa.concat_arrays(arrays).take(back) for arrays in zip(*images, strict=True)]

    def _of_runs(self, parts: Sequence[_Part]) -> list[pa.Array]:
        """Return the columns of runs of one table, one source and one chunk."""
        item: Any = parts[0][0]
        runs = [part[2] for part in parts]
        table, chunk = runs[0].table, item.chunk
        count = sum([size for _, _, _, size in parts])
        raw = self._raw(item.source, runs, chunk)
        texts = self._json_texts(table, runs, count)
        if raw is None or texts is None:
            changes = [change for run in runs for change in run.changes()]
        if texts is None:
            text = self._text(table)
            texts = [
                pa.array([text(one.before) for one in changes], pa.string()),
                pa.array([text(one.after) for one in changes], pa.string()),
            ]
        if raw is None:
            code = self._layouts.of(item.source, table)
            encoded = [code.encode(one.before, one.after, chunk) for one in changes]
            raw = pa.array(encoded, pa.binary()), code.layout
        change, layout = raw
        return [*texts, change, repeated([layout], [count], pa.binary())]

    def _json_texts(self, table: Table, runs: Sequence[Run], count: int) -> list[pa.Array] | None:
        """Return the columns before and after; None if the changes are to be taken one by one."""
        if not self._json:
            return [pa.nulls(count, pa.string()), pa.nulls(count, pa.string())]
        images = read_images(runs)
        return None if images is None else [json_texts(table, image, count) for image in images]

    def _raw(self, source: str, runs: Sequence[Run], chunk: Chunk | None) -> tuple[pa.Array, bytes] | None:
        """Return the source's bytes of each change and their layout; None if they are to be encoded."""
        first, layouts = runs[0], self._layouts
        if isinstance(first, ResultRun):
            if chunk is None or first.table is not first.decoder.table:
                return None
            packets = row_packets(runs)
            return None if packets is None else (packets, layouts.of_result(source, first.table, chunk))
        if isinstance(first, EventRun):
            images = raw_images(runs) if chunk is None else None
            return None if images is None else (images[1], layouts.of_event(source, images[0]).layout)
        if type(first) is Run:  # decoded already
            return None
        from ..codec.tidb.packed import packed_changes

        packed = packed_changes(runs)
        return None if packed is None else (packed[1], layouts.of_kv(source, packed[0], chunk))

    def _text(self, table: Table) -> _Text:
        text = self._texts.get(table)
        if text is None:
            if len(self._texts) >= _MAX_TABLES:
                self._texts.clear()
            text = self._texts[table] = row_text(table)
        return text


class Decoder:
    """Decodes envelope batches, ordered by `commit_ts`, `start_ts`, `sequence`, to items."""

    def __init__(self) -> None:
        self._layouts = RowCodecs()

    def decode(self, batch: pa.RecordBatch) -> list[Item]:
        """Return the items. Raises SinkError if columns are missing or were modified.

        A transaction may be split, as in the batches: its last row has the position.
        """
        try:
            return self._decoded(batch)
        except (TypeError, ValueError, msgspec.MsgspecError, SourceError) as error:
            raise SinkError(
                f"the columns change and layout aren't as they were read ({error}): keep both as they are"
            ) from None

    def _decoded(self, batch: pa.RecordBatch) -> list[Item]:
        items: list[Item] = []
        open_: tuple[int, int, Chunk | None] | None = None
        lines = list(zip(*_exact(batch), strict=True))
        changes = batch.column("change").cast(pa.binary())
        at = 0
        while at < len(lines):
            commit_ts, start_ts, op, position, change, layout = lines[at]
            at += 1
            if op == "ddl":
                items.append(decode_ddl(change))
                open_ = None
                continue
            code = self._layouts.read(layout)
            if not isinstance(code, RowBytes):
                chunk, first = code.chunk, at - 1
                key = commit_ts, start_ts, op
                while (
                    position is None and at < len(lines) and lines[at][:3] == key and lines[at][5] == layout
                ):
                    position = lines[at][3]
                    at += 1
                decoded = code.run(changes.slice(first, at - first), op, commit_ts, start_ts).changes()
            else:
                before, after, chunk = code.decode(change)
                decoded = [RowChange(commit_ts, start_ts, code.table, op, before, after)]
            if open_ != (commit_ts, start_ts, chunk):
                open_ = commit_ts, start_ts, chunk
                rows: list[RowChange] = []
                items.append(Transaction(commit_ts, start_ts, code.source, rows, "", False, chunk))
            rows += decoded
            if position is not None:
                items[-1] = replace(items[-1], position=position, last=True)
                open_ = None
        return items


def _exact(batch: pa.RecordBatch) -> list[list[object]]:
    missing = [name for name in EXACT if name not in batch.schema.names]
    if missing:
        raise SinkError(
            f"the rows lack the column {missing[0]}: what is written must have the envelope's columns "
            f"{', '.join(EXACT)}"
        )
    return [batch.column(name).to_pylist() for name in EXACT]


def _of_ddls(parts: Sequence[_Part]) -> list[pa.Array]:
    none = pa.nulls(len(parts), pa.string())
    changes = pa.array([encode_ddl(ddl) for _, _, ddl, _ in parts], pa.binary())
    return [none, none, changes, pa.array([NO_LAYOUT] * len(parts), pa.binary())]


def _placed(batch: pa.RecordBatch, positions: dict[int, str]) -> pa.RecordBatch:
    if not positions:
        return batch
    texts: list[str | None] = [None] * batch.num_rows
    for row, position in positions.items():
        texts[row] = position
    columns = batch.columns
    columns[_POSITION] = pa.array(texts, pa.string())
    return pa.RecordBatch.from_arrays(columns, schema=ENVELOPE)


def row_text(table: Table) -> _Text:
    """Return a function from a row of `table` to its JSON object, in the form of docs/reference/ndjson.md."""
    values = json_rows(table)

    def text(row: Row | None) -> str | None:
        return None if row is None else _to_json(values((row,))[0]).decode()

    return text


def to_batch(lines: list[list[object]], schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of the rows in `lines`."""
    columns = zip(*lines, strict=True) if lines else [[]] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
