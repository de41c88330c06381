"""Columns of a lake's table: those of all its files, in types that one column can hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from ....errors import SinkError

DATE: Final = "date"
"""The column by which tables are partitioned: the UTC date of the commit ts."""


def united(name: str, lake: str, schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return the columns of all schemas, in the order in which they come.

    `name` is the table's and `lake` the kind's, for errors. Raises SinkError if a column has two types, or if
    names in a struct differ only in the case of letters.
    """
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            have = fields.get(field.name)
            fields[field.name] = field if have is None else _both(name, lake, have, field)
    return pa.schema(list(fields.values()))


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type as a lake has it: strings and bytes of any length."""
    if pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) else kind


def _both(name: str, lake: str, have: pa.Field, field: pa.Field) -> pa.Field:
    if pa.types.is_struct(have.type) and pa.types.is_struct(field.type):
        schemas = [pa.schema(list(have.type)), pa.schema(list(field.type))]
        inner = united(f"{name}.{have.name}", lake, schemas)
        _check_letters(name, lake, inner)
        return pa.field(have.name, pa.struct(list(inner)), have.nullable)
    if plain(have.type) != plain(field.type):
        raise SinkError(
            f"{name}.{field.name} has the type {plain(have.type)}, and is {plain(field.type)} in its new "
            f"rows, which one {lake} column can't hold: give the feed another prefix, where it loads all "
            "tables"
        )
    return have


def _check_letters(name: str, lake: str, schema: pa.Schema) -> None:
    """Raise SinkError for names that differ only in the case of letters, which most readers don't tell
    apart."""
    names: dict[str, str] = {}
    for field in schema:
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise SinkError(
                f"{name}: readers of {lake} don't tell the columns {other} and {field.name} apart: give the "
                "feed another prefix, where it loads all tables"
            )
