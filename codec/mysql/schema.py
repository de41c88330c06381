"""Tables as described by information_schema."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from ...errors import SourceError
from ...events import Column, Table
from .column_type import KINDS
from .definition import parse_column
from .known import UNTOLD_KINDS
from .tokens import NotUnderstood

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys"})

_COMPRESSED: Final = "/*M!100301 COMPRESSED*/"


def is_user_schema(schema: str) -> bool:
    return schema.lower() not in SYSTEM_SCHEMAS


def table_from_information_schema(
    schema: str,
    name: str,
    columns: Iterable[Sequence[object]],
    key: Sequence[str] = (),
    checks: Collection[str] = (),
    collation: str | None = None,
    *,
    is_mariadb: bool = True,
    has_catalog: bool = False,
) -> Table:
    """Return the table described by its columns, the names of its key's, and the texts of its CHECKs.

    Of each column there are name, type, character set, collation, nullability, default and EXTRA.

    `collation` is the table's own; MySQL prints defaults differently from MariaDB, and needs no checks.
    `has_catalog` is True if the rows of the binlog will be decoded with this schema, without which some types
    aren't known. Raises SourceError, naming table, column and type, for a column that isn't supported.
    """
    made = tuple(_column(f"{schema}.{name}", row, checks, is_mariadb, has_catalog) for row in columns)
    indexes = {column.name: i for i, column in enumerate(made)}
    return Table(
        schema,
        name,
        made,
        tuple(indexes[column] for column in key),
        charset=collation.partition("_")[0] if collation else None,
        collation=collation,
    )


def _column(
    table: str, row: Sequence[Any], checks: Collection[str], is_mariadb: bool, has_catalog: bool
) -> Column:
    name, type_text, charset, collation, nullable, default, extra = row
    definition = type_text
    if charset:
        definition += f" CHARACTER SET {charset} COLLATE {collation}"
    elif type_text.startswith(("enum(", "set(")):  # of binary members; MySQL names no character set
        definition += " CHARACTER SET binary"
    if nullable == "NO":
        definition += " NOT NULL"
    extra = (extra or "").upper()
    if "ON UPDATE" in extra:
        definition += " " + extra[extra.index("ON UPDATE") :]
    try:
        if "mariadb-5.3" in type_text and "(" in type_text:
            # The binlog doesn't contain the number of fractional digits of such a column.
            raise NotUnderstood("a fraction in the format of mysql56_temporal_format=OFF")
        column = parse_column(name, definition.replace(_COMPRESSED, ""), of_mysql=not is_mariadb)
        if is_mariadb and column.kind in UNTOLD_KINDS and not has_catalog:
            raise NotUnderstood(
                f"type {column.kind} looks like others in a binlog and needs the local engine; without, it"
            )
    except NotUnderstood as what:
        raise SourceError(
            f"column {name} of table {table} is {type_text}: {what} isn't supported; change the column, or "
            f'leave the table out: add "!{table}" at the end of source.tables. '
            f"Accepted are {', '.join(KINDS)}"
        ) from None
    if column.kind == "text" and f"json_valid(`{name}`)" in checks:
        column = replace(column, kind="json", length=0)
    generated = "VIRTUAL GENERATED" in extra or "STORED GENERATED" in extra
    if generated:
        default = None
    elif is_mariadb:
        default = None if default == "NULL" else default
    else:
        default = default_sql(column, default, extra)
    return replace(column, default=default, generated=generated)


_NOW: Final = re.compile(r"CURRENT_TIMESTAMP(\(\d\))?", re.IGNORECASE)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_SPELLED: Final = frozenset({
    "tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year",
    "binary", "varbinary",
})  # fmt: skip
"""Kinds whose constants are printed as SQL: 5, 1.50, b'101', 0x6162."""


def default_sql(column: Column, default: str | None, extra: str) -> str | None:
    """Return the DEFAULT clause of COLUMN_DEFAULT and EXTRA as SQL text."""
    if default is None:
        return None
    if "DEFAULT_GENERATED" in extra:
        return default if _NOW.fullmatch(default) else f"({_ESCAPED.sub(_plain, default)})"
    if column.kind in _SPELLED:
        return default
    return "'" + default.replace("\\", "\\\\").replace("'", "''") + "'"


def _plain(match: re.Match[str]) -> str:
    return match[1]
