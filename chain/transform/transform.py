"""Changes of the columns and values of some tables."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...errors import SinkError
from ...events import Column, Row, Table
from ..selection.tables import TablePatterns

Change: TypeAlias = Callable[[Any], Any]

_TEXTS: Final = ("char", "varchar", "text")
_HASHABLE: Final = (
    *_TEXTS, "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "enum", "set", "uuid",
    "binary", "varbinary", "blob",
)  # fmt: skip


class Transform(Struct, frozen=True):
    """The columns of some tables that are kept, and those whose values are replaced; NULL stays NULL."""

    tables: TablePatterns
    keep: frozenset[str] = frozenset()
    """Columns that are kept, in lower case; empty: all that `drop` doesn't name."""
    drop: frozenset[str] = frozenset()
    mask: Mapping[str, str] = {}
    """Text columns, in lower case, each with the text that replaces its values."""
    hash: frozenset[str] = frozenset()
    """Columns whose values become the 64 hexadecimal digits of an HMAC-SHA256, equal for equal values."""
    key: bytes = b""
    """The key of the hash."""

    def keeps(self, column: str) -> bool:
        name = column.lower()
        return (not self.keep or name in self.keep) and name not in self.drop

    def rule(self, column: str) -> tuple[bool, str | None, bool]:
        """Return what is done to a column of this name; equal for columns that are treated alike."""
        name = column.lower()
        return self.keeps(column), self.mask.get(name), name in self.hash

    def replaces(self, column: str) -> bool:
        """Return True if the values of a kept column are replaced."""
        return self.rule(column)[1:] != (None, False)

    def column(self, table: str, column: Column) -> Column:
        """Return a kept column as sinks get it. Raises SinkError if its values can't be replaced."""
        name = column.name.lower()
        text = self.mask.get(name, "")
        if name in self.mask and (
            column.kind not in _TEXTS or (column.kind != "text" and len(text) > column.length)
        ):
            raise _refused(table, column, f"masked by {text!r}: it is {column.kind}, or too short")
        if name not in self.hash:
            return column
        if column.kind not in _HASHABLE:
            raise _refused(table, column, f"hashed: its values ({column.kind}) have no one form as text")
        ascii_text = {"charset": "ascii", "collation": "ascii_bin", "default": None, "members": ()}
        numeric = {"unsigned": False, "scale": 0, "width": 0, "zerofill": False}
        return replace(column, kind="char", length=64, on_update=None, **numeric, **ascii_text)

    def change(self, column: Column) -> Change | None:
        """Return the function of a column's values; None if they stay."""
        name = column.name.lower()
        if name in self.hash:
            return self._hashed
        text = self.mask.get(name)
        return None if text is None else lambda value: None if value is None else text

    def _hashed(self, value: object) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str | int | bytes | Decimal):
            raise SinkError(f"transform: hash: {type(value).__name__} has no one form as text")
        data = value if isinstance(value, bytes) else str(value).encode()
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()


class TableTransform:
    """A Transform for one version of a table."""

    def __init__(self, transform: Transform, table: Table, *, needs_key: bool) -> None:
        """Raises SinkError if the table can't be transformed so; with `needs_key`, also if its key is."""
        name = table.full_name
        kept = [index for index, column in enumerate(table.columns) if transform.keeps(column.name)]
        columns = tuple(transform.column(name, table.columns[index]) for index in kept)
        if not kept:
            raise SinkError(f"transform: table {name}: no column is left: exclude the table from the sink")
        for index in table.key if needs_key else ():
            column = table.columns[index]
            if transform.rule(column.name) != (True, None, False):
                raise _refused(
                    name, column, "changed: it is in the primary key, by which this sink finds rows"
                )
        has_key = set(table.key) <= set(kept)
        key = tuple(kept.index(index) for index in table.key) if has_key else ()
        self.table = replace(table, columns=columns, key=key)
        self._kept = kept
        self._changes = [transform.change(table.columns[index]) for index in kept]
        self._is_projection = not any(self._changes)

    def row(self, row: Row | None) -> Row | None:
        if row is None:
            return None
        if self._is_projection:
            return tuple([row[index] for index in self._kept])
        return tuple(
            [
                row[index] if change is None else change(row[index])
                for index, change in zip(self._kept, self._changes, strict=True)
            ]
        )


def same_forms(before: Column | None, after: Column) -> bool:
    """Return True if a change of this definition can't change the text of any value."""
    if before is None or before.nullable > after.nullable or before.length > after.length:
        return False
    families = (("varchar", "text"), ("tinyint", "smallint", "mediumint", "int", "bigint"))
    return before.unsigned == after.unsigned and any(
        before.kind in family and after.kind in family for family in families
    )


def _refused(table: str, column: Column, what: str) -> SinkError:
    return SinkError(
        f"transform: table {table}: column {column.name} can't be {what}: leave it out of this [[transform]]"
    )
