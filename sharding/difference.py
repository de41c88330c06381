"""Differences between definitions of a table."""

from __future__ import annotations

from msgspec.structs import replace

from ..events import Column, Table


def difference(have: Table, wanted: Table) -> str:
    """Return how the columns or key differ, as a phrase after "it"; empty if they are the same."""
    theirs = {column.name.lower(): column for column in wanted.columns}
    own = {column.name.lower(): column for column in have.columns}
    differences = [f"lacks column {theirs[name].name}" for name in theirs if name not in own]
    differences += [f"has column {own[name].name} more" for name in own if name not in theirs]
    differences += [
        f"has column {own[name].name} as {described(own[name])} in place of {described(theirs[name])}"
        for name in own
        if name in theirs and _type(own[name]) != _type(theirs[name])
    ]
    keys = [[table.columns[index].name.lower() for index in table.key] for table in (have, wanted)]
    if not differences and keys[0] != keys[1]:
        differences.append(f"has the key ({', '.join(keys[0])}) in place of ({', '.join(keys[1])})")
    return "; ".join(differences)


def _type(column: Column) -> Column:
    """Return what of a column decides about its values."""
    return replace(column, name="", default=None, on_update=None, generated=False)


def described(column: Column) -> str:
    """Return a column's type for people."""
    size = ",".join(map(str, filter(None, (column.length, column.scale))))
    words = [
        f"{column.kind}({size})" if size else column.kind,
        "unsigned" if column.unsigned else "",
        column.collation or column.charset or "",
        "" if column.nullable else "NOT NULL",
    ]
    return " ".join(filter(None, words))
