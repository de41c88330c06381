"""The kinds of columns, and their properties.

A new kind is a name in `Kind` and an entry of `KINDS`; mypy then names each place that has to decide about it
(docs/how-to/add-a-column-type.md).
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal[
    "tinyint", "smallint", "mediumint", "int", "bigint",
    "decimal", "float", "double", "bit",
    "char", "varchar", "text", "binary", "varbinary", "blob",
    "date", "time", "datetime", "timestamp", "year",
    "enum", "set", "json",
    "uuid", "inet4", "inet6", "geometry", "vector",
]  # fmt: skip
"""Name of a kind. Checkpoints and messages contain the names."""

KeyOrder: TypeAlias = Literal[
    "integer", "decimal", "float", "date", "moment", "duration", "bytes", "address", "collation", "members",
    "unknown",
]  # fmt: skip
"""How the source orders the values of a key's column; unknown: a key of such a column isn't compared here."""


class KindTraits(Struct, frozen=True, kw_only=True):
    """Properties of each column of a kind. `Column` says how the values appear in Python."""

    python: type
    """Type of the values, except of dates that Python can't represent."""
    order: KeyOrder
    is_integer: bool = False
    """True for an integer of a fixed number of bits, which has a display width."""
    is_float: bool = False
    is_text: bool = False
    """True for a string of any characters."""
    is_bytes: bool = False
    """True for a string of any bytes."""
    has_charset: bool = False
    has_members: bool = False
    is_of_mariadb: bool = False
    """True if only MariaDB has such columns, and its binlog shows them as strings of bytes."""

    @property
    def is_temporal(self) -> bool:
        return self.python in (date, datetime, timedelta)


KINDS: Final[dict[Kind, KindTraits]] = {
    "tinyint": KindTraits(python=int, order="integer", is_integer=True),
    "smallint": KindTraits(python=int, order="integer", is_integer=True),
    "mediumint": KindTraits(python=int, order="integer", is_integer=True),
    "int": KindTraits(python=int, order="integer", is_integer=True),
    "bigint": KindTraits(python=int, order="integer", is_integer=True),
    "decimal": KindTraits(python=Decimal, order="decimal"),
    "float": KindTraits(python=float, order="float", is_float=True),
    "double": KindTraits(python=float, order="float", is_float=True),
    "bit": KindTraits(python=int, order="integer"),
    "char": KindTraits(python=str, order="collation", is_text=True, has_charset=True),
    "varchar": KindTraits(python=str, order="collation", is_text=True, has_charset=True),
    "text": KindTraits(python=str, order="unknown", is_text=True, has_charset=True),
    "binary": KindTraits(python=bytes, order="bytes", is_bytes=True),
    "varbinary": KindTraits(python=bytes, order="bytes", is_bytes=True),
    "blob": KindTraits(python=bytes, order="unknown", is_bytes=True),
    "date": KindTraits(python=date, order="date"),
    "time": KindTraits(python=timedelta, order="duration"),
    "datetime": KindTraits(python=datetime, order="moment"),
    "timestamp": KindTraits(python=datetime, order="moment"),
    "year": KindTraits(python=int, order="integer"),
    "enum": KindTraits(python=str, order="members", has_charset=True, has_members=True),
    "set": KindTraits(python=str, order="unknown", has_charset=True, has_members=True),
    "json": KindTraits(python=str, order="unknown"),
    "uuid": KindTraits(python=str, order="unknown", is_of_mariadb=True),
    "inet4": KindTraits(python=str, order="address", is_of_mariadb=True),
    "inet6": KindTraits(python=str, order="address", is_of_mariadb=True),
    "geometry": KindTraits(python=bytes, order="unknown"),
    "vector": KindTraits(python=bytes, order="unknown"),
}

INTEGERS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_integer)
FLOATS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_float)
TEXTS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_text)
BYTE_STRINGS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_bytes)
WITH_CHARSET: Final = frozenset(kind for kind, traits in KINDS.items() if traits.has_charset)
WITH_MEMBERS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.has_members)
TEMPORAL: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_temporal)
OF_MARIADB: Final = frozenset(kind for kind, traits in KINDS.items() if traits.is_of_mariadb)

AS_INT: Final = frozenset(kind for kind, traits in KINDS.items() if traits.python is int)
"""Kinds whose values are `int`."""
AS_STR: Final = frozenset(kind for kind, traits in KINDS.items() if traits.python is str)
AS_BYTES: Final = frozenset(kind for kind, traits in KINDS.items() if traits.python is bytes)
WITH_DATE: Final = frozenset(kind for kind, traits in KINDS.items() if issubclass(traits.python, date))
MOMENTS: Final = frozenset(kind for kind, traits in KINDS.items() if traits.python is datetime)
"""Kinds of a date and a time of day."""
