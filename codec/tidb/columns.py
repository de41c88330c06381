"""The origin of a row's columns: which of a table's columns are visible, and which are in its key."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct
from msgspec.structs import replace

from ...errors import SourceError
from .column_type import ColumnFlag
from .datum import decode_datums
from .field import Field, field_of
from .key import decode_record_key
from .table_info import PUBLIC, ColumnInfo, IndexInfo, TableInfo


class Columns(Struct, frozen=True):
    """The columns of a table's rows."""

    full_name: str
    stored: tuple[Field, ...]
    """Public columns that are in a row or its key: all except virtual generated ones, in the table's
    order."""
    visible: tuple[Field, ...]
    """Columns that users see."""
    handle: int | None
    """Id of the column with the value of the integer handle; None if the handle isn't a column's value."""
    common_handle: tuple[int, ...]
    """Ids of a clustered key's columns in key order."""
    prefixes: frozenset[int]
    """Ids of the key's columns of which the key contains only a prefix."""
    required: frozenset[int] = frozenset()
    """Ids of columns that every row must have; for rows without a key."""

    def key_values(self, key: bytes) -> dict[int, object]:
        """Return the bare values by column id that a row's key contains. Raises ValueError if they can't be
        read."""
        if self.handle is None and not self.common_handle:
            return {}
        _, handle = decode_record_key(key)
        if self.handle is not None:
            return {self.handle: self.handle_value(handle)}
        return self._datums(handle)

    def without_key(self) -> Columns:
        """Return the same columns for rows that have the key's columns themselves."""
        ids = self.common_handle if self.handle is None else (self.handle,)
        return replace(self, handle=None, common_handle=(), prefixes=frozenset(), required=frozenset(ids))

    def only(self, names: Collection[str]) -> Columns:
        """Return the same columns of rows, of which just those with these names and the key's are visible."""
        key = {self.handle, *self.common_handle}
        kept = [field for field in self.visible if field.column.name in names or field.column.id in key]
        return replace(self, visible=tuple(kept))

    def handle_value(self, handle: int | bytes) -> int:
        if not isinstance(handle, int):
            raise ValueError("the key's handle isn't an integer")
        flags = [field.column.flags for field in self.stored if field.column.id == self.handle]
        if not flags:
            raise ValueError("the column that the key holds isn't one of rows")
        return handle & (1 << 64) - 1 if flags[0] & ColumnFlag.UNSIGNED else handle

    def _datums(self, handle: int | bytes) -> dict[int, object]:
        if isinstance(handle, int):
            raise ValueError("the key's handle is an integer, not a clustered key's columns")
        datums = decode_datums(handle)
        if len(datums) != len(self.common_handle):
            raise ValueError(f"the key holds {len(datums)} columns, not {len(self.common_handle)}")
        fields = {field.column.id: field for field in self.stored}
        return {
            id_: fields[id_].storage.checked(flag, bare)
            for id_, (flag, bare) in zip(self.common_handle, datums, strict=True)
            if id_ not in self.prefixes
        }


def columns_of(schema: str, info: TableInfo) -> Columns:
    """Return a table's columns. Raises SourceError for a column of an unknown type."""
    full_name = f"{schema}.{info.name}"
    stored = tuple(_field(full_name, column) for column in info.columns if _is_stored(column))
    index = primary_index(info) if info.is_common_handle else None
    ids = [column.id for column in info.columns]
    parts = index.columns if index else ()
    return Columns(
        full_name=full_name,
        stored=stored,
        visible=tuple(field for field in stored if not field.column.hidden),
        handle=_handle(info),
        common_handle=tuple(ids[part.offset] for part in parts),
        prefixes=frozenset(ids[part.offset] for part in parts if part.length != -1),
    )


def _field(full_name: str, column: ColumnInfo) -> Field:
    try:
        return field_of(column)
    except ValueError as error:
        raise SourceError(
            f"column {column.name} of {full_name} can't be read: {error}. Leave the table out of the feed,"
            " or follow it with a newer version"
        ) from error


def _is_stored(column: ColumnInfo) -> bool:
    return column.state == PUBLIC and (column.stored or not column.generated)


def _handle(info: TableInfo) -> int | None:
    if not info.pk_is_handle:
        return None
    return next((column.id for column in info.columns if column.flags & ColumnFlag.PRI_KEY), None)


def primary_index(info: TableInfo) -> IndexInfo | None:
    """Return the index that is the primary key; None without one, or if the key is the integer handle."""
    return next((index for index in info.indexes if index.primary and index.state == PUBLIC), None)
