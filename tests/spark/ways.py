"""The ways in which Spark reads changes, and how what each gave is compared with a local feed's items.

Here the readers are called as Spark calls them, but in this process, which costs less than a query.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

import pyarrow as pa
from msgspec.structs import replace

from tidemill.events import Ddl, Item, RowChange, timestamp
from tidemill.spark.data_source import TidemillSource
from tidemill.spark.envelope import ENVELOPE, Decoder, EnvelopeEncoder
from tidemill.spark.offsets.offset import Offset
from tidemill.spark.read.stream_reader import LEASE, StreamReader

from . import history
from .test_typed import plain

Found: TypeAlias = list[list[pa.Table]]
"""Rows by micro-batch and partition; a batch query is one micro-batch."""
KeyOf: TypeAlias = Callable[[RowChange], Any]
ORDER: Final = ("commit_ts", "start_ts", "sequence")


def batch(options: dict[str, Any]) -> Found:
    reader = _source(options).reader(_source(options).schema())
    return [_read(reader, reader.partitions())]


def stream(options: dict[str, Any], borders: Sequence[Offset]) -> Found:
    """A micro-batch between each offset and the next, each of a driver that was started again."""
    found: Found = []
    with _driver(options) as reader:
        start = {**reader.initialOffset(), LEASE: "query"}
        assert Offset.read(start) == borders[0]
    for border in borders[1:]:
        with _driver(options) as reader:
            end = up_to(reader, start, border)
            found.append(_read(reader, reader.partitions(start, end)))
            start = end
    return found


@contextmanager
def _driver(options: dict[str, Any]) -> Iterator[StreamReader]:
    reader = _source(options).streamReader(_source(options).schema())
    assert isinstance(reader, StreamReader)
    try:
        yield reader
    finally:
        reader.stop()


def up_to(reader: StreamReader, start: dict[str, Any], border: Offset) -> dict[str, Any]:
    """The end of a batch, as if nothing had come behind `border` yet; before it where the rest is of no
    interest."""
    reader._end = border
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert start["ts"] <= end["ts"] <= border.ts
    return end


def _source(options: dict[str, Any]) -> TidemillSource:
    return TidemillSource({name: str(value) for name, value in options.items()})


def _read(reader: Any, partitions: Sequence[Any]) -> list[pa.Table]:
    def table(partition: Any) -> pa.Table:
        sent = pickle.loads(pickle.dumps(partition))
        return pa.Table.from_batches(reader.read(sent), reader.output.schema)

    with ThreadPoolExecutor(max(1, len(partitions))) as pool:
        return list(pool.map(table, partitions))


# --- comparisons


def check(
    found: Found, borders: Sequence[Offset], wanted: Sequence[Item], place: Callable[[str], str] = str
) -> None:
    """The rows of one partition are those of the items in every column, in their order.

    Of the positions, only what `place` returns has to be the same.
    """
    _check_borders(found, borders)
    parts = [part.select(ENVELOPE.names).cast(ENVELOPE) for part in chain.from_iterable(found)]
    rows = pa.concat_tables([ENVELOPE.empty_table(), *parts])
    assert _placed(rows.to_pylist(), place) == _placed(EnvelopeEncoder().encode(wanted).to_pylist(), place)
    decoder = Decoder()
    items = [item for some in rows.to_batches() for item in decoder.decode(some)]
    assert history.lines(items) == history.lines(wanted)


def _placed(rows: list[dict[str, Any]], place: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return the rows with their places. The bytes of a schema change have its position, too."""
    for row in rows if place is not str else ():
        row["position"] = row["position"] and place(row["position"])
        row["change"] = None if row["op"] == "ddl" else row["change"]
    return rows


def check_parts(
    found: Found,
    borders: Sequence[Offset],
    wanted: Sequence[Item],
    key_of: KeyOf,
    place: Callable[[str], str] = str,
) -> None:
    """The rows of several partitions are those of the items: each partition's in its order, each key's too,
    within a micro-batch in one partition. Positions are compared as in `check`."""
    _check_borders(found, borders)
    for part in chain.from_iterable(found):
        order = list(zip(*(part[name].to_pylist() for name in ORDER), strict=True))
        assert order == sorted(set(order))
        ends = [at for at, position in zip(order, part["position"].to_pylist(), strict=True) if position]
        assert ends == [at for at, after in pairwise([*order, (0, 0, 0)]) if at[:2] != after[:2]]
    assert _texts(chain.from_iterable(found)) == _texts([_table(wanted)])
    keys: dict[Any, list[RowChange]] = defaultdict(list)
    for parts in found:
        decoded = [_by_key(_items(part), key_of) for part in parts]
        assert sum(map(len, decoded)) == len({key for part in decoded for key in part})
        for part in decoded:
            for key, changes in part.items():
                keys[key] += changes
    assert keys == _by_key(wanted, key_of)
    items = [item for part in chain.from_iterable(found) for item in _items(part)]
    assert _ddls(items, place) == _ddls(wanted, place)


def _ddls(items: Iterable[Item], place: Callable[[str], str]) -> list[str]:
    ddls = [item for item in items if isinstance(item, Ddl)]
    return sorted(repr(replace(ddl, position=place(ddl.position))) for ddl in ddls)


def _check_borders(found: Found, borders: Sequence[Offset]) -> None:
    for parts, (start, end) in zip(found, pairwise(borders), strict=True):
        for ts in chain.from_iterable(part["commit_ts"].to_pylist() for part in parts):
            assert start.ts < ts <= end.ts


def _table(items: Iterable[Item]) -> pa.Table:
    return pa.Table.from_batches([EnvelopeEncoder().encode(items)])


def _items(table: pa.Table) -> list[Item]:
    decoder = Decoder()
    return [item for some in table.to_batches() for item in decoder.decode(some)]


def _texts(tables: Iterable[pa.Table]) -> list[str]:
    """The rows as people read them, in some order."""
    names = ("commit_ts", "start_ts", "schema", "table", "op", "before", "after", "query")
    return sorted(
        repr(row) for table in tables for row in zip(*(table[n].to_pylist() for n in names), strict=True)
    )


def _by_key(items: Iterable[Item], key_of: KeyOf) -> dict[Any, list[RowChange]]:
    found: dict[Any, list[RowChange]] = defaultdict(list)
    for item in items:
        for row in () if isinstance(item, Ddl) else item.rows:
            found[row.table.full_name, key_of(row)].append(row)
    return dict(found)


def check_typed(found: Found, borders: Sequence[Offset], wanted: Sequence[Item], name: str) -> None:
    """The rows of a table with its columns; what a row's layout lacks of these is null."""
    _check_borders(found, borders)
    rows = pa.concat_tables(chain.from_iterable(found))
    columns = [field.name for field in rows.schema.field("after").type]
    lines = []
    for item in wanted:
        changes = () if isinstance(item, Ddl) else [row for row in item.rows if row.table.full_name == name]
        for number, row in enumerate(changes, 0 if opens(item, lines) else lines[-1]["sequence"] + 1):
            images = {"before": _image(row, row.before, columns), "after": _image(row, row.after, columns)}
            time = timestamp(row.commit_ts)
            order = {"commit_ts": row.commit_ts, "commit_time": time, "start_ts": row.start_ts}
            order["sequence"] = number
            lines.append({**order, "op": row.op, **images})
    assert rows.to_pylist() == lines


def opens(item: Item, lines: list[dict[str, Any]]) -> bool:
    """True if the transaction has no line yet."""
    return not lines or (item.commit_ts, item.start_ts) != (lines[-1]["commit_ts"], lines[-1]["start_ts"])


def _image(row: RowChange, values: Any, columns: Sequence[str]) -> dict[str, Any] | None:
    if values is None:
        return None
    named = {c.name: plain(c, value) for c, value in zip(row.table.columns, values, strict=True)}
    return {name: named.get(name) for name in columns}
