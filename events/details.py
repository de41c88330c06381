"""The parts of a table's definition that don't concern its values."""

from __future__ import annotations

from msgspec import Struct


class IndexPart(Struct, frozen=True):
    column: str = ""
    """Name of the column; empty for an expression."""
    length: int = 0
    """Characters or bytes of a prefix; 0: the whole column."""
    descending: bool = False
    expression: str = ""
    """SQL text in parentheses."""


class Index(Struct, frozen=True):
    """A secondary index."""

    name: str
    parts: tuple[IndexPart, ...]
    kind: str = ""
    """UNIQUE, FULLTEXT, SPATIAL or VECTOR; empty for a plain one."""
    method: str = ""
    """BTREE or HASH, if it was chosen."""
    comment: str = ""
    parser: str = ""
    """Name of the parser of a FULLTEXT index."""
    hidden: bool = False
    """True if queries don't use it: INVISIBLE in MySQL, IGNORED in MariaDB."""
    options: str = ""
    """Options of a VECTOR index as SQL text."""


class Check(Struct, frozen=True):
    name: str
    condition: str
    """SQL text in parentheses."""
    enforced: bool = True


class ColumnDetails(Struct, frozen=True):
    """Attributes of a column that don't concern its values."""

    name: str
    auto_increment: bool = False
    invisible: bool = False
    comment: str = ""
    check: str = ""
    """Condition of MariaDB's CHECK of a column, in parentheses; empty if there is none."""


class Details(Struct, frozen=True):
    """The rest of a definition, besides columns and a primary key.

    Constants and names in SQL text are spelled as a session without special sql_mode reads them.
    """

    indexes: tuple[Index, ...] = ()
    """Secondary indexes, in the order in which they were made."""
    checks: tuple[Check, ...] = ()
    columns: tuple[ColumnDetails, ...] = ()
    """Columns that have such attributes."""
    comment: str = ""
    row_format: str = ""
    collation: str = ""
    """Of columns that are added later."""
    partitions: str = ""
    """SQL text after PARTITION BY."""
    references: tuple[tuple[str, ...], ...] = ()
    """The columns of foreign keys, which the server has indexed if need be."""
    has_primary: bool = True
    """False if a unique index takes the place of the primary key, or the table has no key."""
    unknown: str = ""
    """The part by which the definition isn't known; empty if it is known."""

    def of_column(self, name: str) -> ColumnDetails:
        low = name.lower()
        return next((one for one in self.columns if one.name.lower() == low), ColumnDetails(name))
