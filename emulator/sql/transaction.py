"""A transaction of rows: changes are locked and committed by Percolator when it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeAlias

from ...codec.tidb.column_type import ColumnFlag
from ...codec.tidb.columns import columns_of
from ...codec.tidb.field import Field
from ...codec.tidb.key import record_key
from ...events import Row, Ts, physical_ms
from ..pumps import Pumps
from .mutations import Mutations
from .partition import physical_id
from .schema import Schema, SqlTable

Key: TypeAlias = Any
"""The primary key's value, a tuple for several columns, or the hidden handle of a table without a clustered
key."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Storage(Protocol):
    """The part of a cluster that a transaction uses."""

    def tso(self) -> Ts: ...

    def read(self, key: bytes, ts: Ts) -> bytes | None: ...

    def write(self, mutations: list[tuple[str, bytes, bytes]], *, start_ts: Ts = 0) -> Ts: ...


class SqlTransaction:
    """A transaction: reads the rows as of its begin, and its own changes. Not thread-safe.

        with tidb.transaction() as txn:
            txn.insert("shop.orders", {"id": 1, "price": "9.99"})
        txn.commit_ts

    Leaving the block commits it; after an error inside, nothing is written. Raises ValueError for a row that
    can't be written, and Rejected at the end on a conflict with another transaction.
    """

    def __init__(self, storage: Storage, schema: Schema, pumps: Pumps) -> None:
        self._storage = storage
        self._schema = schema
        self._pumps = pumps
        self._changes: dict[bytes, tuple[str, bytes]] = {}
        self._mutations = Mutations() if pumps.by_id else None
        self.start_ts = storage.tso()
        self.commit_ts: Ts = 0
        """The commit ts; 0 before the commit, and for a transaction without changes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()

    def commit(self) -> Ts:
        """Commit; return the commit ts."""
        if self._changes and not self.commit_ts:
            mutations = [(op, key, value) for key, (op, value) in sorted(self._changes.items())]
            if self._mutations is None:
                self.commit_ts = self._write(mutations)
            else:
                self.commit_ts = self._pumps.write(
                    self.start_ts,
                    partial(self._write, mutations),
                    prewrite_key=mutations[0][1],
                    prewrite_value=self._mutations.encode(self._schema.public_version),
                )
        return self.commit_ts

    def _write(self, mutations: list[tuple[str, bytes, bytes]]) -> Ts:
        return self._storage.write(mutations, start_ts=self.start_ts)

    def insert(
        self, name: str, row: Mapping[str, object] | Sequence[object], handle: int | None = None
    ) -> Key:
        """Insert a row, given by column names or in the order of the columns; return its key.

        A missing column gets its default. `handle` is for tables with a hidden one.
        """
        table = self._schema.table(name)
        values = self._filled(table, row)
        key, value, handle_used = self._encoded(table, values, handle)
        if self._value(key) is not None:
            raise ValueError(f"{name} already has a row {handle_used!r}")
        self._changes[key] = ("put" if key in self._changes else "insert", value)
        if self._mutations is not None:
            self._mutations.insert(table, key, values)
        return handle_used

    def update(self, name: str, key: Key, values: Mapping[str, object]) -> Row:
        """Change columns of a row; return the new row."""
        table = self._schema.table(name)
        old_key, before = self._find(table, name, key)
        names = [column.name for column in table.decoder.table.columns]
        unknown = values.keys() - set(names)
        if unknown:
            raise ValueError(f"{name} has no column {', '.join(sorted(unknown))}; it has {', '.join(names)}")
        after = tuple(values.get(column, old) for column, old in zip(names, before, strict=True))
        hidden = None if _is_clustered(table) else key
        new_key, value, _ = self._encoded(table, after, hidden)
        if new_key != old_key:
            if self._value(new_key) is not None:
                raise ValueError(f"{name} already has the row that {key!r} would become")
            self._changes[old_key] = ("delete", b"")
        self._changes[new_key] = ("put", value)
        if self._mutations is not None:
            self._mutations.update(table, before, after)
        return after

    def delete(self, name: str, key: Key) -> Row:
        """Delete a row; return the old row."""
        table = self._schema.table(name)
        raw, before = self._find(table, name, key)
        self._changes[raw] = ("delete", b"")
        if self._mutations is not None:
            self._mutations.delete(table, raw, before)
        return before

    def get(self, name: str, key: Key) -> Row | None:
        """Return a row by its key; None if there is none."""
        table = self._schema.table(name)
        row = self._lookup(table, key)
        return row[1] if row else None

    # --- rows

    def _find(self, table: SqlTable, name: str, key: Key) -> tuple[bytes, Row]:
        row = self._lookup(table, key)
        if row is None:
            raise ValueError(f"{name} has no row {key!r}")
        return row

    def _lookup(self, table: SqlTable, key: Key) -> tuple[bytes, Row] | None:
        for raw in self._keys(table, key):
            value = self._value(raw)
            if value is not None:
                return raw, table.decoder.decode([(raw, value)])[0]
        return None

    def _keys(self, table: SqlTable, key: Key) -> list[bytes]:
        """Return the possible keys of the row: in a partitioned table one per partition."""
        info = table.info
        handle = key if not _is_clustered(table) else self._handle(table, key)
        partition = info.partition
        ids = [part.id for part in partition.definitions] if partition else [info.id]
        return [record_key(id_, handle) for id_ in ids]

    def _handle(self, table: SqlTable, key: Key) -> int | bytes:
        columns = columns_of(table.database.name, table.info)
        ids = columns.common_handle or (columns.handle,)
        values = key if isinstance(key, tuple) else (key,)
        fields: dict[int | None, Field] = {field.column.id: field for field in columns.visible}
        bare = {id_: fields[id_].write(value) for id_, value in zip(ids, values, strict=True)}
        return table.encoder.handle({id_: value for id_, value in bare.items() if id_ is not None})

    def _value(self, key: bytes) -> bytes | None:
        if key in self._changes:
            op, value = self._changes[key]
            return None if op == "delete" else value
        return self._storage.read(key, self.start_ts)

    def _encoded(self, table: SqlTable, row: Row, handle: int | None) -> tuple[bytes, bytes, Key]:
        """Return the raw key, the value, and the key as users see it."""
        table_id = physical_id(table.info, table.decoder.table, row)
        if _is_clustered(table):
            key, value = table.encoder.encode(table.written(row), table_id=table_id)
            parts = tuple(row[place] for place in table.decoder.table.key)
            return key, value, parts[0] if len(parts) == 1 else parts
        number = self._schema.new_row_id(table.info.id) if handle is None else handle
        key, value = table.encoder.encode(table.written(row), number, table_id)
        return key, value, number

    def _filled(self, table: SqlTable, row: Mapping[str, object] | Sequence[object]) -> Row:
        columns = columns_of(table.database.name, table.info).visible
        names = [field.column.name for field in columns]
        if not isinstance(row, Mapping):
            if len(row) != len(names):
                raise ValueError(f"{table.info.name} has {len(names)} columns, the row has {len(row)}")
            row = dict(zip(names, row, strict=True))
        if unknown := row.keys() - set(names):
            raise ValueError(f"{table.info.name} has no column {', '.join(sorted(unknown))}")
        values = row
        return tuple(
            values[field.column.name] if field.column.name in values else self._default(table, field)
            for field in columns
        )

    def _default(self, table: SqlTable, field: Field) -> object:
        column = field.column
        if column.flags & ColumnFlag.AUTO_INCREMENT:
            return self._schema.new_row_id(table.info.id)
        if column.default_bit is not None:
            return int.from_bytes(column.default_bit, "big")
        if column.default == "CURRENT_TIMESTAMP":
            return self._now(field)
        if column.default is not None:
            return field.read(field.write(column.default))
        if column.flags & ColumnFlag.NOT_NULL:
            raise ValueError(f"column {column.name} of {table.info.name} has no default: give a value")
        return None

    def _now(self, field: Field) -> datetime:
        """Return the present time; the session's zone is UTC."""
        moment = _EPOCH + timedelta(milliseconds=physical_ms(self.start_ts))
        moment = moment.replace(
            microsecond=moment.microsecond // 10 ** (6 - field.scale) * 10 ** (6 - field.scale)
        )
        return moment if field.kind == "timestamp" else moment.replace(tzinfo=None)


def _is_clustered(table: SqlTable) -> bool:
    return table.info.pk_is_handle or table.info.is_common_handle
