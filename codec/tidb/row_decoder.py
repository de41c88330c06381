"""Decoding of a table's rows from keys and values to tuples of their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from ...errors import SourceError
from ...events import Row, Table
from ..native import library
from .checksum import verify
from .columns import columns_of
from .field import UNREADABLE
from .layout import HEAD, VERSION, ValueLayout, cells_of, layout_of
from .native_rows import TidbRows, native_rows
from .old_row import FIRST_BYTES, split_row
from .old_row_code import compile_old_rows
from .row_code import Pair, RowsReader, compile_rows
from .table import to_table
from .table_info import TableInfo

_MAX_LAYOUTS: Final = 256
"""Maximum number of compiled functions per table, about 10 kB each; then all are dropped."""


class RowDecoder:
    """Reads rows of one version of a table, of either format.

    A column that a row lacks has its original default, otherwise NULL; columns that the table no longer has
    are skipped. Virtual generated columns aren't in rows and are left out of the table.
    """

    table: Final[Table]

    def __init__(
        self,
        schema: str,
        info: TableInfo,
        *,
        verify_checksums: bool = True,
        keyless: bool = False,
        only: Collection[str] | None = None,
    ) -> None:
        """With `keyless`, each row of format 1 has the columns of its key itself, and keys aren't read. With
        `only`, the table and its rows have just the columns with these names and those of the key."""
        columns, table = columns_of(schema, info), to_table(schema, info)
        if only is not None:
            columns = columns.only(only)
            names = {field.column.name for field in columns.visible}
            table = replace(table, columns=tuple([c for c in table.columns if c.name in names]), key=())
        self._columns = columns.without_key() if keyless else columns
        self.table = table
        self._verifies = verify_checksums
        self._readers: dict[bytes, RowsReader] = {}
        self._head_bytes: dict[bytes, int] = {}
        self._old_reader: RowsReader | None = None

    @cached_property
    def layout(self) -> TidbRows | None:
        """The native layout; None if the native decoder isn't in use, or doesn't know such a table."""
        if not library.in_use:
            return None
        return native_rows(self._columns, self.table, verify_checksums=self._verifies)

    def decode(self, rows: Sequence[Pair]) -> list[Row]:
        """Decode rows from these keys and values, in their order.

        Raises SourceError naming the table, the row's key and the column if one can't be read or doesn't
        match its checksum.
        """
        return self._decode(rows) if self.layout is None else self.layout.rows(rows, self.row)

    def row(self, key: bytes, value: bytes) -> Row:
        """Decode one row by Python code. Raises SourceError as above."""
        return self._decode([(key, value)])[0]

    def _decode(self, rows: Sequence[Pair]) -> list[Row]:
        decoded: list[Row] = []
        rest = iter(rows)
        pending = next(rest, None)
        try:
            while pending is not None:
                count, reader = len(decoded), self._reader(pending[1])
                pending = reader(chain((pending,), rest), decoded.append)
                if len(decoded) == count:
                    raise ValueError("the row is cut off before its values")
        except UNREADABLE as error:
            self._fail(*rows[len(decoded)], error)
        return decoded

    def _reader(self, value: bytes) -> RowsReader:
        """Return the reader of rows with the same head as this one."""
        size = self._head_bytes.get(value[: HEAD.size])
        reader = self._readers.get(value[:size]) if size else None
        return reader or self._new_reader(value)

    def _new_reader(self, value: bytes) -> RowsReader:
        if value and value[0] in FIRST_BYTES:
            if self._old_reader is None:
                self._old_reader = compile_old_rows(self._columns, self._old_row)
            return self._old_reader
        if not value or value[0] != VERSION:
            raise ValueError("its format isn't known")
        layout = layout_of(value)
        if len(self._readers) >= _MAX_LAYOUTS:
            self._readers.clear()
            self._head_bytes.clear()
        reader = compile_rows(self._columns, layout, self._check(layout))
        self._head_bytes[value[: HEAD.size]] = len(layout.head)
        self._readers[layout.head] = reader
        return reader

    def _check(self, layout: ValueLayout) -> Callable[[bytes, bytes], None]:
        def check(key: bytes, value: bytes) -> None:
            if self._verifies:
                verify(self._columns, layout, key, value)
            else:
                cells_of(layout, value)

        return check

    def _old_row(self, key: bytes, value: bytes) -> Row:
        """Decode a row of format 1 with any columns."""
        datums: dict[int, object] = dict(split_row(value))
        in_key = self._columns.key_values(key)
        return tuple([self._old_value(field, datums, in_key) for field in self._columns.visible])

    def _old_value(self, field: Any, datums: dict[int, Any], in_key: dict[int, Any]) -> Any:
        id_ = field.column.id
        if (datum := datums.get(id_)) is not None:
            flag, bare = datum
            return None if bare is None else field.read(field.storage.checked(flag, bare))
        if id_ in in_key:
            return field.read(in_key[id_])
        if id_ in self._columns.required:
            raise ValueError(f"column {field.column.name} of the key is missing")
        return field.default()

    def _fail(self, key: bytes, value: bytes, error: Exception) -> NoReturn:
        column, why = self._cause(value) or ("", error)
        raise SourceError(
            f"the row of {self._columns.full_name} with the key {key.hex()} can't be read"
            f"{column and f' at column {column}'}: {why}."
            f" Its value begins with {value[:64].hex()}; check that row in the source"
        ) from error

    def _cause(self, value: bytes) -> tuple[str, Exception] | None:
        """Return the first column that can't be read, and the error; without a name if the whole row is
        invalid."""
        try:
            if value[:1] and value[0] in FIRST_BYTES:
                cells: dict[int, Any] = dict(split_row(value))
            else:
                cells = dict(cells_of(layout_of(value), value))
        except UNREADABLE as error:
            return ("", error) if value[:1] == bytes((VERSION,)) else None
        for field in self._columns.visible:
            if (cell := cells.get(field.column.id)) is None:
                continue
            try:
                if isinstance(cell, tuple):
                    self._old_value(field, {field.column.id: cell}, {})
                else:
                    field.read(field.storage.decode(cell))
            except UNREADABLE as error:
                return field.column.name, error
        return None
