"""Keys of a table in a database: columns whose values identify a row, or refer to one."""

from __future__ import annotations

from typing import NamedTuple


class KeyPart(NamedTuple):
    """A column of a key."""

    column: int
    """Its index in the table of the source."""
    prefix: int = 0
    """Number of characters or bytes that count; 0: all."""
    collation: str | None = None
    """Collation of a text in the target; None for other types, and for bytes."""


class Key(NamedTuple):
    """Columns whose values must be unique in a table of the target, or that a foreign key refers to."""

    name: str
    """Table and columns in the target; a foreign key has that of the columns it refers to."""
    parts: tuple[KeyPart, ...]


class TableKeys(NamedTuple):
    """Keys of one table in the target."""

    name: str
    """Name of the table in the target."""
    unique: tuple[Key, ...] = ()
    """Empty if rows have no identity, or one that isn't known: then all changes of the table conflict."""
    references: tuple[Key, ...] = ()
    """Foreign keys: the rows they refer to must not change meanwhile."""
    shared: tuple[str, ...] = ()
    """Tables that aren't changed as a whole meanwhile: as those in `taken`, or without unique keys."""
    taken: tuple[str, ...] = ()
    """Tables of which no row may change meanwhile."""
