"""Numbers of JDBC types that Canal's messages contain."""

from __future__ import annotations

from typing import Final

from ...events import Column, Kind

_TYPES: Final[dict[Kind, int]] = {
    "bit": -7, "tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5,
    "float": 7, "double": 8, "decimal": 3, "char": 1, "varchar": 12, "json": 12, "year": 12, "vector": 12,
    "date": 91, "time": 92, "datetime": 93, "timestamp": 93,
    "binary": 2004, "varbinary": 2004, "blob": 2004, "text": 2005, "enum": 4, "set": -7,
    "uuid": 12, "inet4": 12, "inet6": 12, "geometry": 2004,
}  # fmt: skip

WIDER: Final[dict[Kind, tuple[int, int]]] = {
    "tinyint": (2**7, 5),
    "smallint": (2**15, 4),
    "int": (2**31, -5),
    "bigint": (2**63, 3),
}
"""Of unsigned integers: the least value that the signed type can't hold, and the type that it has then."""


def sql_type(column: Column) -> int:
    return _TYPES[column.kind]
