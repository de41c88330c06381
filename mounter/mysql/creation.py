"""The table that CREATE TABLE makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from msgspec.structs import replace

from ...codec.mysql.charset import max_bytes
from ...codec.mysql.create import TableDefinition
from ...codec.mysql.entry import Query
from ...codec.mysql.known_table import KnownTable
from ...codec.mysql.tokens import NotUnderstood
from ...events import (
    WITH_CHARSET,
    Column,
    Table,
    TableName,
)
from .alteration import Defaults
from .catalog import Catalog
from .defaults import check_text

_KEY_BYTES: Final = 767
"""Size up to which every engine and row format has a plain key."""


def created(name: TableName, definition: TableDefinition, query: Query, defaults: Defaults) -> KnownTable:
    """Return the table of a definition. Raises NotUnderstood if a default of it isn't known."""
    charset = definition.charset.resolve(defaults.database, defaults.collations)
    columns: list[Column] = []
    auto_increment = ""
    key = {column.lower(): i for i, column in enumerate(definition.key)}
    timestamps = 0
    for one in definition.columns:
        column = one.column(charset, defaults.collations)
        if column.kind in WITH_CHARSET and column.charset is None:
            raise NotUnderstood(f"the default character set of database {name[0]} isn't known")
        check_text(column, query)
        if one.implicit_timestamp:
            column = _with_implicit_default(column, is_first=not timestamps)
        timestamps += column.kind == "timestamp"
        if column.name.lower() in key:
            column = replace(column, nullable=False)
        if one.auto_increment:
            auto_increment = column.name
        columns.append(column)
    indexes = {column.name.lower(): i for i, column in enumerate(columns)}
    if unknown := key.keys() - indexes.keys():
        raise NotUnderstood(f"column {min(unknown)} of the key isn't known")
    numbers = tuple(indexes[column] for column in key) or _promoted(definition, columns, indexes)
    table = Table(
        *name,
        tuple(columns),
        numbers,
        charset.name if charset else None,
        charset.collation if charset else None,
    )
    return KnownTable(table, auto_increment, bool(key), bool(definition.unique))


def _promoted(
    definition: TableDefinition, columns: Sequence[Column], indexes: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the unique key that takes the place of the missing primary key: one of whole NOT NULL columns.

    Raises NotUnderstood if it may be one of several, or one that the server can't use as a key.
    """
    keys: list[tuple[int, ...]] = []
    for unique in definition.unique:
        try:
            numbers = tuple(indexes[name.lower()] for name in unique.columns)
        except KeyError as name:
            raise NotUnderstood(f"column {name} of a unique key isn't known") from None
        if not numbers or not any(columns[i].nullable for i in numbers):
            keys.append(numbers)
    if not keys:
        return ()
    if len(keys) > 1 or not keys[0] or sum(_key_bytes(columns[i]) for i in keys[0]) > _KEY_BYTES:
        raise NotUnderstood("a unique key that may take the place of the primary key")
    return keys[0]


def _key_bytes(column: Column) -> int:
    """Return an upper bound of a column's bytes in a key."""
    match column.kind:
        case "char" | "varchar":
            return column.length * max_bytes(column.charset or "utf8mb4")
        case "binary" | "varbinary":
            return column.length
        case "text" | "blob" | "json" | "geometry" | "vector":
            return _KEY_BYTES + 1
        case (
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float" | "double"
            | "bit" | "date" | "time" | "datetime" | "timestamp" | "year" | "enum" | "set" | "uuid"
            | "inet4" | "inet6"
        ):  # fmt: skip
            return 32
        case _:
            assert_never(column.kind)


def _with_implicit_default(column: Column, *, is_first: bool) -> Column:
    """Return a TIMESTAMP with its default under explicit_defaults_for_timestamp=OFF."""
    if is_first and column.on_update is None:
        now = f"CURRENT_TIMESTAMP({column.scale or ''})"
        return replace(column, default=now, on_update=now)
    fraction = "." + "0" * column.scale if column.scale else ""
    return replace(column, default=f"'0000-00-00 00:00:00{fraction}'")


def like(name: TableName, model: TableName, catalog: Catalog) -> KnownTable:
    """Return a table with the definition of another. Raises NotUnderstood if that isn't known."""
    known = catalog.get(model)
    if known is None:
        raise NotUnderstood(f"LIKE {model[0]}.{model[1]}, whose definition isn't known")
    details = replace(known.details, references=())
    if details.checks:
        details = replace(details, unknown="the names of the CHECKs of CREATE TABLE LIKE")
    return replace(known, details=details).named(name)
