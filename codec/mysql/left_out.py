"""Tables without their generated columns, which a feed may leave out of its copies."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ...events import Details, Index
from .known_table import KnownTable
from .tokens import NotUnderstood, Tokens


def with_generated(known: KnownTable) -> KnownTable:
    """Return the table with all its columns."""
    return replace(known, table=known.complete, whole=None)


def leave_out_generated(known: KnownTable) -> KnownTable:
    """Return the table without its generated columns. A key that has one of them isn't a key any more.

    Raises NotUnderstood for a table that has no others.
    """
    whole = known.complete
    kept = [i for i, column in enumerate(whole.columns) if not column.generated]
    if len(kept) == len(whole.columns):
        return with_generated(known)
    if not kept:
        raise NotUnderstood("a table of generated columns only")
    places = {i: place for place, i in enumerate(kept)}
    key = tuple(places[i] for i in whole.key) if places.keys() >= set(whole.key) else ()
    table = replace(whole, columns=tuple(whole.columns[i] for i in kept), key=key)
    return replace(known, table=table, whole=whole)


def copied_details(known: KnownTable) -> Details:
    """Return the details that a copy of the table can have: without what names a column that is left out."""
    if known.whole is None:
        return known.details
    left_out = {column.name.lower() for column in known.whole.columns if column.generated}
    details = known.details
    return replace(
        details,
        indexes=tuple(index for index in details.indexes if not _names(index, left_out)),
        checks=tuple(check for check in details.checks if not _mentions(check.condition, left_out)),
        columns=tuple(
            replace(one, check="") if _mentions(one.check, left_out) else one
            for one in details.columns
            if one.name.lower() not in left_out
        ),
        partitions="" if _mentions(details.partitions, left_out) else details.partitions,
        references=tuple(
            columns for columns in details.references if left_out.isdisjoint(map(str.lower, columns))
        ),
        has_primary=details.has_primary and bool(known.table.key),
    )


def _names(index: Index, left_out: Collection[str]) -> bool:
    return any(
        part.column.lower() in left_out or _mentions(part.expression, left_out) for part in index.parts
    )


def _mentions(expression: str, left_out: Collection[str]) -> bool:
    """Return True if a word or name of an SQL text is that of a column, which it may also be by chance."""
    tokens = Tokens(expression)
    while (token := tokens.take()).kind != "end":
        if token.kind in ("word", "name") and token.value.lower() in left_out:
            return True
    return False
